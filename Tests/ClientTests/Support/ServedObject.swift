import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// One object at the server of a sealed bucket: its state at each version of a script, and the object that this opens
/// to.
///
/// A removal is one version of a script and two here, that of the tombstone and that of the `-` after it: `wire`.
struct ServedObject {
    struct State {
        /// The server's state; nil: removed.
        var entity: SealedEntity?
        /// The log that it opens to; after a removal, the last one.
        var log: SealedLog
        /// As apps see it.
        var object: JSONObject? { entity == nil ? nil : log.object }
        /// Deleted, and not yet removed.
        var isDeleted: Bool { entity != nil && log.object == nil }
    }

    /// The app's own key, and the one by which the server knows the object.
    let name: String
    let key: EntityKey
    let sealer: ObjectSealer
    private let place: SealedPlace
    /// By version of the script.
    private(set) var states = [Version: State]()
    private var removals = [Version]()
    /// The script has not stated every change: the content of the newest version is not known.
    var isLost = false

    init(_ name: String, _ keys: SealedBucketKeys) throws {
        let serverKey = keys.serverKey(of: name)
        (self.name, key) = (name, try EntityKey(serverKey))
        (sealer, place) = (try keys.sealer(serverKey: serverKey), keys.place(serverKey: serverKey))
    }

    var newest: Version { states.keys.max() ?? 0 }
    var current: State? { states[newest] }

    // MARK: - Versions

    /// The server's version where the script counts `version`.
    func wire(_ version: Version) -> Version { version + Version(removals.filter { $0 <= version }.count) }

    /// The inverse: the last version of the script that is not beyond `wire`.
    func script(_ wire: Version) -> Version {
        (0...max(0, wire)).last { self.wire($0) <= wire } ?? wire
    }

    mutating func recordRemoval(at version: Version) { removals.append(version) }

    // MARK: - Changes of others

    /// Another client creates it, or it existed before anything that is known of it.
    mutating func make(_ object: JSONObject, at version: Version, _ random: inout SeededRandom) {
        let log = SealedLog(
            place: place, appKey: name, incarnation: random.bytes(SealedLog.incarnationBytes), object: object)
        let sealed = sealer.seal(
            SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: random.bytes(16), position: 0,
            nonce: random.bytes(12))
        states[version] = State(entity: SealedEntity(snapshots: [0: Base64.encodeURL(sealed)]), log: log)
        isLost = false
    }

    /// Another client that has read it up to version `source` writes into it.
    ///
    /// - Parameters:
    ///   - diff: of the object at `source`; nil: it is deleted.
    ///   - id: 16 bytes, the change's ccid.
    mutating func write(
        _ diff: ObjectDiff?, by author: AuthorID, on source: Version, at version: Version, id: [UInt8],
        _ random: inout SeededRandom
    ) throws -> SealedLog.Verdict {
        guard let state = states[source], let head = state.log.chain[state.log.position] else {
            throw NotAnObject()
        }
        var content = SealedOperation.Content.tombstone
        if let diff {
            let edit = try ThicketSealed.Edit(.object(diff))
            // As devices do it: `+` and `r` are distinguished by the member's state.
            content = .edit(try edit.apply(to: state.object.map { .object($0) }).edit ?? edit)
        }
        let operation = SealedOperation(
            base: state.log.position, head: head, incarnation: state.log.incarnationTag, author: author,
            content: content)
        let sealed = sealer.seal(
            operation.clearBytes(), kind: .operation, id: id, position: 0, nonce: random.bytes(12))
        return try receive(operation: sealed, on: source, at: version)
    }

    /// Others change it from its state to `target`, by one operation for each version between: they insert a member,
    /// change it repeatedly, and remove it with the last operation.
    mutating func lead(
        to target: JSONObject, at version: Version, by author: AuthorID, _ random: inout SeededRandom
    ) throws {
        while newest < version {
            let next: Version = newest + 1
            var stop = target
            if next < version { stop["·"] = .number(JSONNumber(next)) }
            let diff = JSONDiff.diff(
                from: current?.object ?? JSONObject(), to: stop, keepsShortEqualities: true)
            _ = try write(diff, by: author, on: newest, at: next, id: random.bytes(16), &random)
        }
        isLost = false
    }

    // MARK: - Changes of the device

    /// Receives the sealed snapshot of a creation.
    mutating func receive(creation text: String, at version: Version) throws {
        guard let bytes = Base64.decodeURL(Array(text.utf8)[...]),
            let log = SealedObject.log(of: bytes, at: 0, place, sealer)
        else { throw NotAnObject() }
        states[version] = State(entity: SealedEntity(snapshots: [0: text]), log: log)
    }

    /// Receives a sealed operation on top of the state at `source`, whatever its author had read.
    mutating func receive(operation sealed: [UInt8], on source: Version, at version: Version) throws
        -> SealedLog.Verdict
    {
        guard var state = states[source], state.entity != nil else { throw NotAnObject() }
        let verdict = state.log.append(
            sealed, clear: sealer.open(sealed, kind: .operation, position: 0)?.clear)
        state.entity?.tail.insert(Base64.encodeURL(sealed), at: 0)
        states[version] = state
        return verdict
    }

    /// The `-` after a tombstone.
    mutating func remove(at version: Version) {
        guard var state = states[version] ?? current else { return }
        state.entity = nil
        states[version] = state
    }
}

extension SeededRandom {
    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next() >> 32) }
    }
}
