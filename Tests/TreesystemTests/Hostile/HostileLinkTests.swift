import Testing
import ThicketCrypto
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Every answer of the server is harmed in turn, in a history in which no two devices change the same thing: each
/// conflict would be a false one.
@Suite("Trees over a hostile link", .nonceWatch)
struct HostileLinkTests {
    private struct Outcome: Equatable {
        var paths = [String]()
        var contents = [String?]()
        var problems = [String]()
    }

    private static let nodesMade = 7
    private static let paths = ["home/c2", "home/c2/b", "home/d", "home/d/e", "home/e"]

    /// Changes that both devices make, in turn, while the first one's answers are harmed.
    private static func history(_ world: TreeWorld) throws {
        let (ann, other) = (world.devices[0], world.devices[1])
        try world.settleDown()
        try ann.create("a", in: world)
        try ann.create("a/b", "1", in: world)
        try ann.create("c", "2", in: world)
        try ann.run(world)
        try other.create("d", "theirs", in: world)
        try other.run(world)
        try ann.write("a/b", "3", in: world)
        try ann.exchangeOnce(world)
        try ann.write("a/b", "4", in: world)
        try ann.move("c", to: "c2", in: world)
        try ann.run(world)
        try other.create("d/e", "below", in: world)
        try other.write("d", "theirs 2", in: world)
        try other.run(world)
        try ann.move("a/b", to: "c2/b", in: world)
        try ann.create("e", "5", in: world)
        try ann.create("gone", "6", in: world)
        try ann.exchangeOnce(world)
        try ann.remove("gone", in: world)
        try ann.remove("a", in: world)
        try world.settleDown()
        // A lazy device knows what is below the other one's nodes when it opens them.
        try ann.openAll(world)
    }

    private static func outcome(_ world: TreeWorld) throws -> Outcome {
        let ann = world.devices[0]
        var outcome = Outcome()
        outcome.paths = try ann.paths()
        outcome.contents = ["c2", "c2/b", "d", "d/e", "e"].map { try? ann.content($0) }
        let server = try ann.serversSkeleton(world.server)
        for device in world.devices where try device.skeleton() != server {
            outcome.problems.append("device \(device.number) shows something else than the server has")
        }
        // Late changes may be sent as one; but no node is made that the history does not make.
        let made = Set(world.server.log.map(\.key.text)).count
        if made > Self.nodesMade { outcome.problems.append("\(made) nodes were made") }
        for device in world.devices {
            if !device.machine.queue.isEmpty { outcome.problems.append("\(device.summary)") }
            for event in device.events {
                switch event {
                case .conflict, .integrity, .operationFailed, .gap: outcome.problems.append("\(event)")
                default: break
                }
            }
        }
        return outcome
    }

    /// The outcome when an answer is harmed, and the number of answers.
    private static func play(
        _ answer: Int, _ harm: LinkHarm, lazy: Set<Int> = []
    ) throws -> (outcome: Outcome, answers: Int) {
        // Histories of one seed have the same keys and nonces for other bytes; a single one must not.
        let seals = SealRecorder()
        defer { #expect(seals.count > 0 && seals.reuses.isEmpty) }
        return try SealRecorder.$current.withValue(seals) {
            let world = try TreeWorld(seed: 17, devices: 2, lazy: lazy)
            world.isHostile = false
            world.devices[0].harm = (answer, harm)
            try history(world)
            return (try outcome(world), world.devices[0].answers)
        }
    }

    @Test(
        "A17b: each answer in turn lost, repeated, late and overtaken: no conflict, no second node, no lost edit",
        arguments: LinkHarm.allCases)
    func eachAnswer(harm: LinkHarm) throws {
        let (calm, answers) = try Self.play(-1, harm)
        #expect(calm.paths == Self.paths && calm.contents == ["2", "4", "theirs 2", "below", "5"])
        #expect(calm.problems.isEmpty && answers >= 15, "\(calm.problems), \(answers) answers")
        for answer in 0..<answers {
            let (outcome, _) = try Self.play(answer, harm)
            #expect(outcome == calm, "answer \(answer)")
        }
    }

    @Test("A17b: on a lazy device, every fourth answer, lists included: the same", arguments: LinkHarm.allCases)
    func lazyDevice(harm: LinkHarm) throws {
        let (calm, answers) = try Self.play(-1, harm, lazy: [0])
        #expect(calm.paths == Self.paths && calm.problems.isEmpty, "\(calm)")
        for answer in stride(from: 0, to: answers, by: 4) {
            let (outcome, _) = try Self.play(answer, harm, lazy: [0])
            #expect(outcome == calm, "answer \(answer)")
        }
    }

    @Test("A17b: a conflict that is real is reported, so that its absence says something")
    func realConflict() throws {
        let world = try TreeWorld(seed: 18, devices: 2)
        world.isHostile = false
        let (ann, other) = (world.devices[0], world.devices[1])
        try ann.create("a", "1", in: world)
        try world.settleDown()
        try ann.write("a", "mine", in: world)
        try other.write("a", "theirs", in: world)
        try world.settleDown()
        #expect(try !Self.outcome(world).problems.isEmpty)
    }
}
