import Testing
import ThicketCrypto
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("A tree on a failing disk")
struct FailingDiskTests {
    @Test(
        "random changes over failing disks: a turn is made whole or not at all, and nothing is lost",
        .nonceWatch, arguments: TreeWorld.seeds.prefix(4))
    func randomFailures(seed: UInt64) throws {
        let world = try TreeWorld(seed: 77_000 + seed, devices: 4)
        var life = WorldLife()
        for number in 0..<800 {
            world.hasFailingDisks = number % 100 < 80
            if world.chance(25) { try life.act(world, world.devices[world.roll(3)]) }
            try world.step()
            let watcher = world.devices[3]
            #expect(try IndexApp.index(watcher.store) == watcher.places())
        }
        try life.settle(world)
        try life.check(world)
    }

    @Test(
        "a turn that fails at any of its statements changes nothing, and succeeds when it is repeated",
        .noncesGiven, arguments: Turn.all)
    func everyStatement(turn: Turn) throws {
        let whole = try TurnRun(turn, failsAt: nil)
        var failures = 0
        while true {
            // Runs of one world have the same keys and nonces for different bytes; a single run must not.
            let seals = SealRecorder()
            let run = try SealRecorder.$current.withValue(seals) { try TurnRun(turn, failsAt: failures + 1) }
            #expect(seals.count > 0 && seals.reuses.isEmpty)
            guard run.hasFailed else { break }
            failures += 1
            #expect(run.paths == whole.paths, "statement \(failures)")
        }
        #expect(failures > 3, "the turn has \(failures) statements")
    }
}

/// A kind of turn: what leads to it, and the turn.
struct Turn: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let prepare: @Sendable (TreeWorld) throws -> Void
    /// Local turns are called again after their failure; the network's messages come again by themselves.
    let isLocal: Bool
    let make: @Sendable (TreeWorld) throws -> Void

    static let all: [Turn] = [
        local("create") { world in _ = try world.ann.create("new", in: world) },
        local("move") { world in try world.ann.move("a/b", to: "c/moved", in: world) },
        local("content") { world in try world.ann.write("a", "other", in: world) },
        local("remove a branch with changes") { world in try world.ann.remove("a", in: world) },
        remote("new, moved and removed nodes") { world in
            _ = try world.other.create("new", in: world)
            try world.other.move("a/b", to: "c/moved", in: world)
            try world.other.remove("a", in: world)
        },
        remote("a conflict of names, of places and of contents") { world in
            _ = try world.ann.create("new", in: world)
            try world.ann.move("c", to: "a/c", in: world)
            try world.ann.write("a", "mine", in: world)
            _ = try world.other.create("new", in: world)
            try world.other.move("c", to: "d", in: world)
            try world.other.write("a", "theirs", in: world)
        },
        remote("a removed node with a new one below it") { world in
            _ = try world.ann.create("a/new", in: world)
            try world.other.remove("a", in: world)
        },
        Turn(
            testDescription: "the answer to a batch",
            prepare: { world in
                _ = try world.ann.create("new", in: world)
                try world.ann.deliverToServer(world)
            }, isLocal: false, make: { try $0.ann.deliverToDevice($0) }),
        Turn(
            testDescription: "a refusal",
            prepare: { world in
                try world.other.write("a", "theirs", in: world)
                try world.other.run(world)
                try world.ann.write("a", "mine", in: world)
                try world.ann.deliverToServer(world)
            }, isLocal: false, make: { try $0.ann.deliverToDevice($0) }),
        Turn(
            testDescription: "the end of a listing that misses nodes",
            prepare: { world in
                try world.other.remove("a", in: world)
                try world.other.run(world)
                try world.ann.forgetPosition(world)
                for _ in 0..<2 { try world.ann.deliverToServer(world) }
            }, isLocal: false,
            make: { world in
                while try world.ann.deliverToDevice(world) {}
            }),
    ]

    private static func local(_ name: String, _ make: @escaping @Sendable (TreeWorld) throws -> Void) -> Turn {
        Turn(
            testDescription: "local: \(name)", prepare: { try $0.ann.write("a/b", "waiting", in: $0) }, isLocal: true,
            make: make)
    }

    private static func remote(_ name: String, _ change: @escaping @Sendable (TreeWorld) throws -> Void) -> Turn {
        Turn(
            testDescription: "remote: \(name)",
            prepare: { world in
                try change(world)
                try world.other.run(world)
            }, isLocal: false, make: { try $0.ann.deliverToDevice($0) })
    }
}

/// A run of a turn in a world of two devices, of which the first one's disk fails.
struct TurnRun {
    let hasFailed: Bool
    /// What the device shows when all is done.
    let paths: [String]

    init(_ turn: Turn, failsAt statement: Int?) throws {
        let world = try TreeWorld(seed: 5, devices: 2, pageNodes: 100)
        world.isHostile = false
        for path in ["a", "a/b", "c"] { _ = try world.ann.create(path, in: world) }
        try world.settleDown()
        try turn.prepare(world)
        let disk = statement.map { FailingDisk(at: $0) }
        world.ann.disk = disk
        do { try turn.make(world) } catch let error as TreeError where error.code == .store {
            #expect(turn.isLocal && disk?.hasFailed == true)
        }
        hasFailed = disk?.hasFailed ?? false
        if hasFailed {
            try world.ann.restart(world)
            if turn.isLocal { try turn.make(world) }
        }
        try world.settleDown()
        paths = try world.ann.paths()
        #expect(try world.ann.store.orphans().isEmpty && world.ann.store.stranded().isEmpty)
    }
}

extension TreeWorld {
    var ann: WorldDevice { devices[0] }
    var other: WorldDevice { devices[1] }
}
