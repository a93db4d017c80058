import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// Devices of a sealed bucket, as the suites about sealed objects set them up and inspect them.
extension Simulation {
    /// `clients` devices, online and settled.
    static func sealed(_ clients: Int, seed: UInt64) throws -> Simulation {
        var world = try Simulation(clients: clients, seed: seed, isSealed: true)
        for index in 0..<clients { world.goOnline(index) }
        world.expectSettled()
        return world
    }

    /// Expects that all clients, or only one, settle.
    mutating func expectSettled(only: Int? = nil, _ line: SourceLocation = #_sourceLocation) {
        let isQuiet = settle(only: only)
        #expect(isQuiet, "a client never settles \(isQuiet ? "" : picture)", sourceLocation: line)
    }

    /// The object as a device shows it.
    mutating func object(_ index: Int, _ key: EntityKey) throws -> JSONObject? {
        try clients[index].machine.object(bucket, key)
    }

    mutating func set(_ index: Int, _ key: EntityKey, to object: JSONObject) throws {
        perform(index, try clients[index].machine.set(bucket, key, to: object, now: now))
    }

    mutating func remove(_ index: Int, _ key: EntityKey) throws {
        perform(index, try clients[index].machine.remove(bucket, key, now: now))
    }

    /// The key by which the server knows an object.
    func serverKey(_ name: String) throws -> String { try #require(keys).serverKey(of: name) }

    /// The server loses its log, and knows no client's position: every client reads the index.
    mutating func forgetPositions() {
        server.forgetLog(bucket.text)
        server.buckets[bucket.text]?.epoch += 1
    }
}

extension Simulation {
    /// A holder of the keys stores an object with another name under a server key.
    mutating func putMisnamed(_ name: String, under key: String, nonce: UInt8) throws {
        guard let keys else { return }
        let made = SealedObject(
            author: AuthorID(rawValue: 9),
            log: SealedLog(
                place: keys.place(serverKey: key), appKey: name, incarnation: Array(repeating: 5, count: 16),
                object: ["t": "x"]))
        let snapshot = made.sealedSnapshot(
            id: Array(repeating: 1, count: 16), nonce: Array(repeating: nonce, count: 12),
            with: try keys.sealer(serverKey: key))
        server.buckets["notes"]?.entities[key] = ModelServer.Entity(
            version: 1, object: SealedEntity(snapshots: [0: Base64.encodeURL(snapshot)]).object)
    }
}
