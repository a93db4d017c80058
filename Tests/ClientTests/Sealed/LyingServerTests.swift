import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// A server that lies about one object of a sealed bucket, at a moment that a seed picks, to devices that continue to
/// type.
///
/// Each lie is reported; no device shows text that was not typed; a device keeps what it typed; and with the two ways
/// of repair all devices converge. `THICKET_SEEDS=17` replays one seed.
@Suite("A server that lies about sealed objects", .nonceWatch)
struct LyingServerTests {
    enum Lie: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case dropsNewest, dropsOlder, reorders, replays, swapsOperation, rollsBack, garbage, removes, clears
        case damagesSnapshot, movesSnapshot, swapsSnapshot
        /// Each device is shown its own history, both consistent; then the server continues one of them for both, with
        /// an operation from the other.
        case forks
        /// A change that was acknowledged to one device is withheld from all others, and no device is notified.
        case dropsQuietly

        var testDescription: String { rawValue }
        /// Only one operation is wrong, and the object continues.
        var isMisfit: Bool { self == .replays || self == .garbage || self == .swapsOperation }
    }

    private static let doc = "doc0"

    @Test("every lie of the server is reported, shows no false text, and can be repaired", arguments: Lie.allCases)
    func lies(lie: Lie) throws {
        for seed in Seeds.list(3) {
            var world: Simulation = try Simulation(clients: 2, seed: UInt64(seed) &* 1_009 &+ 5, isSealed: true)
            world.mayForget = false
            for key in [Self.doc, "doc1"] { try world.insertSomething(0, key) }
            try live(&world, "\(lie), seed \(seed): before", rounds: 60 + world.below(200))
            #expect(world.alarms.isEmpty, "\(lie), seed \(seed): a false alarm")
            try send(lie, &world)
            var own: [Set<UnicodeScalar>] = [[], []]
            for index in 0..<2 { own[index] = try letters(world, index) }
            for index in 0..<2 { world.cut(index) }
            for _ in 0..<120 {
                try world.step { world, index in try Self.type(&world, index) }
            }
            let isQuiet = passAnHour(&world)
            #expect(isQuiet, "\(lie), seed \(seed): a client never settles \(isQuiet ? "" : world.picture)")
            let problems = try (0..<2).map { index in
                try world.clients[index].machine.problem(world.bucket, try EntityKey(Self.doc))
            }
            let isReported = !world.alarms.isEmpty || problems.contains { $0 != nil }
            #expect(isReported, "\(lie), seed \(seed): not noticed")
            if lie.isMisfit { #expect(world.alarms.contains { $0.kind == .misfit }, "\(lie), seed \(seed)") }
            try checkGenuine(world, own, "\(lie), seed \(seed)")
            try repair(&world, "\(lie), seed \(seed)")
        }
    }

    @Test("an honest server raises no alarm", arguments: Seeds.list(6))
    func honest(seed: Int) throws {
        var world = try Simulation(clients: 3, seed: UInt64(seed) &* 77 &+ 3, isSealed: true)
        world.mayForget = false
        for _ in 0..<1_500 { try world.step { world, index in try Self.anything(&world, index) } }
        let isQuiet = world.settle()
        #expect(isQuiet, "seed \(seed): a client never settles \(isQuiet ? "" : world.picture)")
        #expect(world.alarms.isEmpty, "seed \(seed): \(world.alarms)")
    }

    // MARK: - Typing

    private static func type(_ world: inout Simulation, _ index: Int, _ key: String? = nil) throws {
        do { try world.insertSomething(index, key ?? "doc\(world.below(2))") } catch let error as ClientError {
            guard error.code == .integrity else { throw error }
        }
    }

    private static func anything(_ world: inout Simulation, _ index: Int) throws {
        try world.editAnything(index, "doc\(world.below(3))")
    }

    /// Long enough for every device to write to `heads` and to read it.
    private func passAnHour(_ world: inout Simulation) -> Bool {
        var isQuiet = world.settle()
        for _ in 0..<3 {
            world.now += SealedHeads.intervalSeconds * 1_000
            isQuiet = world.settle() && isQuiet
        }
        return isQuiet
    }

    private func live(_ world: inout Simulation, _ what: String, rounds: Int) throws {
        for _ in 0..<rounds { try world.step { world, index in try Self.type(&world, index) } }
        let isQuiet = world.settle()
        #expect(isQuiet, "\(what): a client never settles")
        // At least one snapshot to lie about, and operations after it.
        for _ in 0..<70 {
            try Self.type(&world, 0)
            _ = world.settle()
        }
        for index in 0..<2
        where try world.clients[index].machine.object(world.bucket, try EntityKey(Self.doc)) == nil {
            Issue.record("\(what): client \(index) has no object")
        }
    }

    private func letters(_ world: Simulation, _ index: Int) throws -> Set<UnicodeScalar> {
        var machine = world.clients[index].machine
        let text = try machine.object(world.bucket, try EntityKey(Self.doc))?["t"]?.stringValue
        return Set((text ?? "").unicodeScalars)
    }

    /// The text shown was typed, each letter once; and everything that a device saw or typed is kept.
    private func checkGenuine(
        _ world: Simulation, _ own: [Set<UnicodeScalar>], _ what: String
    ) throws {
        let typed: Set<UnicodeScalar> = Set((world.typed[Self.doc] ?? []).flatMap(\.unicodeScalars))
        for index in 0..<2 {
            var machine = world.clients[index].machine
            let object = try machine.object(world.bucket, try EntityKey(Self.doc))
            let text = object?["t"]?.stringValue ?? ""
            let shown: Set<UnicodeScalar> = Set(text.unicodeScalars)
            #expect(shown.count == text.unicodeScalars.count, "\(what): client \(index) shows something twice")
            #expect(shown.isSubset(of: typed), "\(what): client \(index) shows text that was not typed")
            #expect(own[index].isSubset(of: shown), "\(what): client \(index) lost something")
            #expect(object.map { $0.count == 1 } ?? false, "\(what): client \(index) shows another object")
        }
    }

    private func repair(_ world: inout Simulation, _ what: String) throws {
        let (bucket, key) = (world.bucket, try EntityKey(Self.doc))
        for round in 0..<8 {
            var isWhole = true
            for index in 0..<2 {
                guard try world.clients[index].machine.problem(bucket, key) != nil else { continue }
                isWhole = false
                let now = world.now
                // The first client keeps its own, the other takes the server's; after a clash both are asked again.
                var keeps = index == 0
                if !keeps {
                    do { try check(&world, index) { try $0.takeServers(bucket, key, now: now) } } catch let error
                        as ClientError
                    {
                        guard error.code == .integrity else { throw error }
                        keeps = true
                    }
                }
                if keeps { try check(&world, index) { try $0.keepMine(bucket, key, now: now) } }
                _ = world.settle()
            }
            if isWhole { break }
            #expect(round < 7, "\(what): the repair does not end")
        }
        let first = try world.clients[0].machine.object(bucket, key)
        #expect(try world.clients[1].machine.object(bucket, key) == first, "\(what): they do not come together")
        #expect(try world.truth()[Self.doc]?.object == first, "\(what): the server has another object")
    }

    private func check(
        _ world: inout Simulation, _ index: Int, _ body: (inout SyncMachine) throws -> (Bool, [SyncAction])
    ) throws {
        let (isDone, actions) = try body(&world.clients[index].machine)
        #expect(isDone)
        world.perform(index, actions)
    }

    // MARK: - Lies

    private func send(_ lie: Lie, _ world: inout Simulation) throws {
        guard let keys = world.keys else { return }
        if lie == .forks { return try fork(&world, keys.serverKey(of: Self.doc)) }
        if lie == .dropsQuietly { return try drop(&world, keys.serverKey(of: Self.doc)) }
        let (key, other) = (keys.serverKey(of: Self.doc), keys.serverKey(of: "doc1"))
        var entity = try #require(world.server.buckets["notes"]?.entities[key])
        let neighbour = try #require(world.server.buckets["notes"]?.entities[other]?.object)
        var sealed = try SealedEntity(try #require(entity.object))
        let position = sealed.newest?.position ?? 0
        switch lie {
        case .dropsNewest: sealed.tail.removeFirst(1 + world.below(sealed.tail.count))
        case .dropsOlder: sealed.tail.remove(at: 1 + world.below(sealed.tail.count - 1))
        case .reorders:
            let place = world.below(sealed.tail.count - 1)
            sealed.tail.swapAt(place, place + 1)
        case .replays: sealed.tail.insert(sealed.tail[world.below(sealed.tail.count)], at: 0)
        case .swapsOperation: sealed.tail.insert(try SealedEntity(neighbour).tail[0], at: 0)
        case .garbage:
            var bytes = SealedObject.bytes(of: sealed.tail[0])
            bytes[bytes.count - 1] ^= 1
            sealed.tail.insert(Base64.encodeURL(bytes), at: 0)
        case .rollsBack:
            let step = entity.steps[entity.steps.count / 2]
            sealed = try SealedEntity(try #require(step.before))
        case .removes: entity.object = nil
        case .clears: entity.object = ["t": "clear"]
        case .damagesSnapshot:
            var bytes = SealedObject.bytes(of: sealed.snapshots[position] ?? "")
            bytes[bytes.count / 2] ^= 1
            sealed.snapshots[position] = Base64.encodeURL(bytes)
        case .movesSnapshot:
            sealed.snapshots[position + 1] = sealed.snapshots.removeValue(forKey: position)
            sealed.tail.removeLast()
        case .swapsSnapshot: sealed.snapshots[position] = try SealedEntity(neighbour).newest?.text
        case .forks, .dropsQuietly: break
        }
        if lie != .removes, lie != .clears { entity.object = sealed.object }
        entity.version += 1
        world.server.buckets["notes"]?.entities[key] = entity
        world.server.forgetLog("notes")
    }

    /// Each device types at a server of its own. Then the second one's server continues for both, with an operation of
    /// the first one in its history.
    private func fork(_ world: inout Simulation, _ key: String) throws {
        var word = ""
        let common = world.server
        for index in 0..<2 { world.cut(index) }
        for index in 0..<2 {
            world.server = common
            try typeAlone(&world, index)
            if index == 0 { word = try #require(try branch(world, key).tail.first) }
        }
        var sealed = try branch(world, key)
        sealed.tail.insert(word, at: 0)
        replace(key, by: sealed, &world, versions: 1)
    }

    /// The first device types and gets an acknowledgement. For all others the object stays as it was, under the version
    /// that the first one knows, which leaves no device anything to ask for.
    private func drop(_ world: inout Simulation, _ key: String) throws {
        let sealed = try branch(world, key)
        world.cut(1)
        try typeAlone(&world, 0)
        replace(key, by: sealed, &world, versions: 0)
    }

    private func typeAlone(_ world: inout Simulation, _ index: Int) throws {
        for _ in 0..<(1 + world.below(6)) {
            try Self.type(&world, index, Self.doc)
            let isQuiet = world.settle(only: index)
            #expect(isQuiet, "client \(index) does not get to the end of its branch")
        }
        world.cut(index)
    }

    private func branch(_ world: Simulation, _ key: String) throws -> SealedEntity {
        try SealedEntity(try #require(world.server.buckets["notes"]?.entities[key]?.object))
    }

    private func replace(_ key: String, by sealed: SealedEntity, _ world: inout Simulation, versions: Version) {
        world.server.buckets["notes"]?.entities[key]?.object = sealed.object
        world.server.buckets["notes"]?.entities[key]?.version += versions
        world.server.forgetLog("notes")
    }
}
