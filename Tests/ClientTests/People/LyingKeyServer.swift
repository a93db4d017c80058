import Synchronization
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@testable import ThicketKeyLog

/// A log that accepts and shows anything. With honest entries it has the leaves of an honest log.
struct LyingLog {
    var key: Ed25519.SigningKey
    private var tree = MerkleLog()
    private var map = SparseMerkleMap()
    private var places = [Digest256: UInt64]()
    /// What is shown as a user's entries.
    var chains = [String: [KeyLogEntry]]()

    init(key: Ed25519.SigningKey) { self.key = key }

    var size: UInt64 { UInt64(tree.count) }

    /// Appends an entry behind those shown for the user, or in their place.
    mutating func commit(_ entry: KeyLogEntry, of user: String? = nil, replacing: Bool = false) {
        let user = user ?? entry.user
        places[entry.hash] = UInt64(tree.count)
        tree.append(entry.hash)
        map.set(KeyLogEntry.mapKey(of: user), to: entry.hash)
        tree.append(KeyLogHead.mapLeaf(map.root))
        chains[user] = (replacing ? [] : chains[user] ?? []) + [entry]
    }

    func head(_ time: UInt64) -> KeyLogHead? {
        tree.root().flatMap {
            try? KeyLogHead(size: UInt64(tree.count), root: $0, mapRoot: map.root, time: time, key: key)
        }
    }

    func way(_ older: UInt64, _ newer: UInt64) -> [Digest256]? {
        tree.consistencyProof(oldSize: Int(older), newSize: Int(newer))
    }

    func lookup(_ user: String, from: UInt64, known: UInt64, time: UInt64) -> KeyLogLookup? {
        guard let head = head(time), let root = tree.inclusionProof(index: tree.count - 1) else { return nil }
        let chain: [KeyLogEntry] = (chains[user] ?? []).filter { $0.sequence >= from }
        let place = chain.last.flatMap { places[$0.hash] } ?? 0
        return KeyLogLookup(
            head: head, known: known, consistency: known == 0 ? [] : way(known, size) ?? [], mapRootProof: root,
            mapProof: map.proof(of: KeyLogEntry.mapKey(of: user)), chain: chain, index: place,
            inclusion: chain.isEmpty ? [] : tree.inclusionProof(index: Int(place)) ?? [])
    }
}

/// A server's answers, from a log that a test changes.
final class LyingKeyServer: KeyLogServer {
    struct World {
        var log: LyingLog
        var time: UInt64
        var names = [String: String]()
        var isDown = false
        var withholds = false
        var refusesAppends = false
        var lookups = 0
        var rotations = [[UInt8]]()
        var witnesses = [KeyLogWitness]()
        /// Changes an answer before it is sent.
        var change: (@Sendable (KeyLogLookup) -> KeyLogLookup)?
    }

    static let start: UInt64 = 3_600_000_000
    private let world: Mutex<World>

    init(key: Ed25519.SigningKey = .random()) {
        world = Mutex(World(log: LyingLog(key: key), time: Self.start))
    }

    func set(_ body: (inout World) throws -> Void) rethrows { try world.withLock { try body(&$0) } }
    func look<Value: Sendable>(_ body: (World) -> Value) -> Value { world.withLock { body($0) } }
    var now: UInt64 { look(\.time) }

    private func up<Value: Sendable>(_ body: (inout World) -> Value) throws(ClientError) -> Value {
        let value = world.withLock { world -> Value? in world.isDown ? nil : body(&world) }
        guard let value else { throw ClientError(.network, "the network is down") }
        return value
    }

    func logState() async throws(ClientError) -> LogState {
        try up { world in
            var state = LogState(key: world.log.key.verifyingKey.octets, head: world.log.head(world.time)?.bytes)
            state.rotations = world.rotations
            state.witnesses = world.witnesses.map { ($0.key.octets, $0.head.bytes, $0.signature) }
            return state
        }
    }

    func lookup(_ user: String, from: UInt64, known: UInt64) async throws(ClientError) -> [UInt8]? {
        // Other callers come in between.
        await Task.yield()
        return try up { world in
            world.lookups += 1
            let lookup = world.log.lookup(user, from: from, known: known, time: world.time)
            return lookup.map { (world.change?($0) ?? $0).bytes }
        }
    }

    func lookup(
        name: String, from: UInt64, fromName: UInt64, known: UInt64
    ) async throws(ClientError) -> NamedAnswer? {
        try up { world in
            let folded = KeyLogHandle.folded(name)
            guard let handle = try? KeyLogHandle.name(folded, app: LogPerson.app),
                let named = world.log.lookup(handle, from: fromName, known: known, time: world.time)
            else { return nil }
            let user = world.names[folded]
            let account = user.flatMap { world.log.lookup($0, from: from, known: known, time: world.time) }
            return NamedAnswer(user: user, name: named.bytes, account: account?.bytes)
        }
    }

    func consistency(older: UInt64, newer: UInt64) async throws(ClientError) -> [UInt8]? {
        try up { world in
            guard !world.withholds, older < newer, newer <= world.log.size, let way = world.log.way(older, newer)
            else { return nil }
            return KeyLogConsistency(older: older, newer: newer, proof: way).bytes
        }
    }

    func append(_ entries: [[UInt8]]) async throws(ClientError) {
        let isDone = try up { world in
            guard !world.refusesAppends else { return false }
            for bytes in entries {
                guard let entry = try? KeyLogEntry(bytes) else { return false }
                world.log.commit(entry)
            }
            return true
        }
        guard isDone else { throw ClientError(.refused, "bad_entry", number: 400) }
    }
}

/// An account of a test.
struct LogPerson: Sendable {
    static let app = "chat"
    let own: OwnEntries

    init(_ user: String, name: String = "", signing: Ed25519.SigningKey = .random(), earlier: [OwnEntries.Pair] = []) {
        own = OwnEntries(
            app: Self.app, user: user, name: name,
            current: .init(signing: signing, encryption: X25519.PrivateKey.random().publicKey), earlier: earlier)
    }

    /// The same account with new keys.
    func rotated() -> LogPerson { LogPerson(own.user, name: own.name, earlier: own.earlier + [own.current]) }

    func keys() throws -> PublicKeys { try own.keys(as: own.user).current }
    func entries(at time: UInt64 = 1_000) throws -> [KeyLogEntry] { try own.first(now: time) }

    func book(_ server: LyingKeyServer, _ storage: any PeopleStorage = MemoryPeopleStorage()) throws -> KeyBook {
        let own = own
        return try KeyBook(
            app: Self.app, user: own.user, server: server, storage: storage, now: { server.now },
            readOwn: { () async throws(ClientError) in own })
    }
}

/// The code of the error with which a call fails; nil: it does not fail.
func peopleCode(_ body: () async throws -> Void) async -> String? {
    do { try await body() } catch { return (error as? PeopleError)?.code ?? "\(error)" }
    return nil
}
