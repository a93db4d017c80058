import Testing
import ThicketBlocking
import ThicketNonces
import ThicketSimulation

@Suite("Built-in bugs that the simulation finds", .blocking, .nonceWatch)
struct BuiltInBugTests {
    /// Each bug begins at the first seed that finds it: the seeds before it cost most of the time.
    @Test(
        // Some of these bugs use a nonce twice.
        "the simulation finds a built-in bug within 200 seeds", .noncesGiven,
        arguments: [
            (Mutant.groupWithoutAnswer, 1), (.silentFeed, 1), (.broadcastBeforeCommit, 1), (.noDuplicateCheck, 2),
            (.unsavedPending, 1), (.lyingDisk, 33), (.plainRestore, 2), (.eagerHeads, 1), (.mixedFeed, 1),
            (.forgetfulCompaction, 1), (.freshSealing, 2), (.acceptsClear, 3), (.bareRemoval, 1),
        ] as [(Mutant, UInt64)])
    func mutants(mutant: Mutant, first: UInt64) {
        let found = (first...200).first { seed in
            !Simulation.run(seed: seed, kind: mutant.kind, mutant: mutant).problems.isEmpty
        }
        #expect(found != nil, "200 seeds do not find \(mutant.rawValue)")
        Self.report(mutant, found, first)
    }

    /// A seed counts only if it is right without the bug.
    @Test(
        "the simulation finds a built-in bug of trees within 100 seeds that are right without it", .noncesGiven,
        arguments: [
            (Mutant.batchInParts, 1), (.noCycleCheck, 63), (.noNameCheck, 2), (.unstoredAnswer, 2), (.dividedBatch, 1),
            (.removesUnknown, 1), (.forgottenOperation, 4), (.earlyPosition, 1), (.unsyncedBlob, 1),
            (.uncountedReference, 1),
        ] as [(Mutant, UInt64)])
    func treeMutants(mutant: Mutant, first: UInt64) {
        let found = (first...100).first { seed in
            func problems(_ mutant: Mutant?) -> [String] {
                Simulation.run(seed: seed, kind: .storm, hasTrees: true, mutant: mutant).problems
            }
            return !problems(mutant).isEmpty && problems(nil).isEmpty
        }
        #expect(found != nil, "100 seeds do not find \(mutant.rawValue)")
        Self.report(mutant, found, first)
    }

    /// For the lists above: what seeds play changes with the code.
    private static func report(_ mutant: Mutant, _ found: UInt64?, _ first: UInt64) {
        if let found, found != first { print("\(mutant.rawValue) is found by seed \(found), not by \(first)") }
    }

    @Test("a failing seed shrinks to one that still fails, and the printed changes replay it")
    func shrinks() throws {
        let seed: UInt64 = 4
        let whole = Simulation.run(seed: seed, kind: .storm, mutant: .staleSource)
        try #require(!whole.problems.isEmpty)
        let small = try #require(
            Shrinking.run(seed: seed, kind: .storm, mutant: .staleSource, runsMax: 20) { _ in })
        #expect(!small.changes.isEmpty)
        #expect(small.result.events < whole.events)
        #expect(small.story.contains(small.command))
        #expect(small.command.contains("--mutant staleSource"))
        #expect(whole.failureText.contains("--seed 4 --storms --mutant staleSource --verbose"))
        let again = Simulation.run(
            seed: small.result.seed, with: small.changes, kind: .storm, mutant: .staleSource)
        #expect(again.traceHash == small.result.traceHash)
        #expect(!again.problems.isEmpty)
    }
}
