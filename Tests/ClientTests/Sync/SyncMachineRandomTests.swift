import Glibc
import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

/// Seeds of random runs: the first few, or `THICKET_SEEDS=17` / `THICKET_SEEDS=0-5000` to replay one or run many.
enum Seeds {
    /// Every seed in an open and in a sealed bucket.
    static func generations(_ count: Int) -> [Generation] {
        list(count).flatMap { [Generation(seed: $0, isSealed: false), Generation(seed: $0, isSealed: true)] }
    }

    struct Generation: Sendable, CustomTestStringConvertible {
        let seed: Int
        let isSealed: Bool
        var testDescription: String { "\(seed)\(isSealed ? " sealed" : "")" }
    }

    static func list(_ count: Int) -> [Int] {
        guard let named = getenv("THICKET_SEEDS") else { return Array(0..<count) }
        let ends = String(cString: named).split(separator: "-").compactMap { Int($0) }
        return Array((ends.first ?? 0)...max(ends.first ?? 0, ends.last ?? 0))
    }
}

@Suite("Random runs of several clients and a server, with cuts, crashes and failing disks", .nonceWatch)
struct SyncMachineRandomTests {
    @Test(
        "each typed text is on the server and on all clients at the end, exactly once", arguments: Seeds.generations(24)
    )
    func insertionsSurvive(generation: Seeds.Generation) throws {
        let seed = generation.seed
        var world = try Simulation(
            clients: 2 + seed % 3, seed: UInt64(seed), isSealed: generation.isSealed)
        // Concurrent creations of one object are a case in which the protocol lets the later one win.
        for key in ["doc0", "doc1"] { try world.insertSomething(0, key) }
        let isReady = world.settle()
        #expect(isReady)
        for _ in 0..<1_200 {
            try world.step { world, index in try world.insertSomething(index, "doc\(world.below(2))") }
        }
        try check(&world, seed)
        let truth = try world.truth()
        for (key, words) in world.typed {
            let text = truth[key]?.object["t"]?.stringValue ?? ""
            let counts: [UnicodeScalar: Int] = text.unicodeScalars.reduce(into: [:]) { $0[$1, default: 0] += 1 }
            for word in words.flatMap(\.unicodeScalars) {
                #expect(counts[word] == 1, "seed \(seed): \(word) is there \(counts[word] ?? 0) times")
            }
            #expect(text.unicodeScalars.count == words.count, "seed \(seed): other text was inserted")
        }
    }

    @Test("after any edits all clients end with the server's objects", arguments: Seeds.generations(24))
    func everythingConverges(generation: Seeds.Generation) throws {
        let seed = generation.seed
        var world = try Simulation(
            clients: 2 + seed % 3, seed: UInt64(seed), isSealed: generation.isSealed)
        world.mayForget = !generation.isSealed
        for _ in 0..<1_200 {
            try world.step { world, index in try world.editAnything(index, "doc\(world.below(4))") }
        }
        try check(&world, seed)
    }

    @Test("clients survive damaged messages of a server", arguments: Seeds.generations(20))
    func nonsense(generation: Seeds.Generation) throws {
        let seed = generation.seed
        var world = try Simulation(clients: 2, seed: UInt64(seed) &+ 77, isSealed: generation.isSealed)
        for _ in 0..<1_000 {
            try world.step { world, index in
                do { try world.editAnything(index, "doc\(world.below(4))") } catch let error as ClientError {
                    // A sealed object whose messages were damaged reports it.
                    guard generation.isSealed, error.code == .integrity else { throw error }
                }
            }
            if world.chance(10) { world.damage(world.below(2)) }
        }
        // Undetected damage may leave differences, but every client still works.
        for index in world.clients.indices {
            let key = try EntityKey("after")
            let isKept = try world.act(index) {
                [bucket = world.bucket, now = world.now] (machine) throws(ClientError) in
                try machine.set(bucket, key, to: ["by": .number(JSONNumber(Int64(index)))], now: now)
            }
            _ = world.settle(rounds: 2_000)
            // A client believes a damaged name of its user, and then rejects the real name as another account.
            if case .offline(.wrongAccount) = world.clients[index].machine.status { continue }
            let status = world.clients[index].machine.status
            #expect(
                !isKept || world.hasOnServer("after"), "seed \(seed): \(status)")
        }
    }

    private func check(_ world: inout Simulation, _ seed: Int) throws {
        let isSettled = world.settle()
        #expect(isSettled, "seed \(seed): a client never settles\(isSettled ? "" : world.picture)")
        #expect(world.problems.isEmpty, "seed \(seed): \(world.problems.first ?? "")")
        #expect(world.alarms.isEmpty, "seed \(seed): a false alarm: \(String(describing: world.alarms.first))")
        let truth = try world.truth()
        for index in world.clients.indices {
            let keys = try world.clients[index].machine.keys(world.bucket, after: nil, limit: 1_000)
            #expect(keys.map(\.text) == truth.keys.sorted(), "seed \(seed): client \(index) has other keys")
            for key in keys {
                let local = try world.clients[index].machine.object(world.bucket, key)
                let ghost = try world.clients[index].machine.ghost(world.bucket, key)
                #expect(local == truth[key.text]?.object, "seed \(seed): client \(index), \(key) differs")
                #expect(
                    ghost.object == truth[key.text]?.object, "seed \(seed): client \(index), ghost of \(key) differs")
                #expect(ghost.version == truth[key.text]?.version)
                guard world.clients[index].hasReader else { continue }
                #expect(
                    world.clients[index].shown[key.text] == local, "seed \(seed): client \(index) got other events")
            }
        }
    }
}
