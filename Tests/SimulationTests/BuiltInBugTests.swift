import Testing
import ThicketBlocking
import ThicketNonces
import ThicketSimulation

@Suite("Bugs that are built in, found by the simulation", .blocking, .nonceWatch)
struct BuiltInBugTests {
    @Test(
        // Some of these bugs use a nonce twice.
        "a bug that is built in is found", .noncesGiven,
        arguments: [
            Mutant.groupWithoutAnswer, .silentFeed, .broadcastBeforeCommit, .noDuplicateCheck, .unsavedPending,
            .lyingDisk, .plainRestore, .eagerHeads, .mixedFeed, .forgetfulCompaction, .freshSealing, .takesClear,
            .bareRemoval,
        ])
    func mutants(mutant: Mutant) {
        let found: Bool = (1...200).contains { seed in
            !Simulation.run(seed: seed, kind: mutant.kind, mutant: mutant).problems.isEmpty
        }
        #expect(found, "200 seeds do not find \(mutant.rawValue)")
    }

    @Test("a failing seed shrinks to one that fails still, and the printed changes play it again")
    func shrinks() throws {
        let seed: UInt64 = 4
        let whole: SimulationResult = Simulation.run(seed: seed, kind: .storm, mutant: .staleSource)
        try #require(!whole.problems.isEmpty)
        let small: Shrinking.Outcome = try #require(
            Shrinking.run(seed: seed, kind: .storm, mutant: .staleSource, runsMax: 60) { _ in })
        #expect(!small.changes.isEmpty)
        #expect(small.result.events < whole.events)
        #expect(small.story.contains(small.command))
        #expect(small.command.contains("--mutant staleSource"))
        #expect(whole.failureText.contains("--seed 4 --storms --mutant staleSource --verbose"))
        let again: SimulationResult = Simulation.run(
            seed: small.result.seed, with: small.changes, kind: .storm, mutant: .staleSource)
        #expect(again.traceHash == small.result.traceHash)
        #expect(!again.problems.isEmpty)
    }
}
