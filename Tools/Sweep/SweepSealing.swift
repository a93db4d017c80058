import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// What devices send to the sealed bucket of a sweep: creations, operations, compactions and removals, sealed as devices do.
/// An operation holds its own ccid and a snapshot those that it covers, so that the sweep, which has the keys, sees what
/// became of each of them.
struct SweepSealing {
    /// One change as it is sent.
    struct Sent: Sendable {
        /// `sv`; nil for a creation.
        let source: Version?
        /// nil for a removal.
        let diff: ObjectDiff?
        let isCompaction: Bool
    }

    private struct Object {
        var entity: SealedEntity
        var version: Version
        /// ccids of all operations, in their order.
        var operations: [String]
        var isGone: Bool = false
    }

    private var objects: [String: Object] = [:]
    /// Objects that have a change in this group: one each, so that the refusal of one makes no other wrong.
    private var used: Set<String> = []
    private(set) var compactions: Int = 0
    /// Operations in a tail from which on it is compacted.
    private static let tailMax: Int = 6

    private static let keys: SealedBucketKeys? = try? SealedBucketKeys(
        owner: "ann@example.com", app: "sweep", bucket: "b3",
        secrets: [0: SecureBytes(copying: .init(repeating: 9, count: 32))])

    mutating func beginGroup() { used = [] }

    /// The next change of an object.
    /// - Parameter number: of the change in the workload.
    /// - Returns: nil when it has one in this group.
    mutating func change(of name: String, number: Int, _ random: inout SeededRandom) -> SweepChange? {
        guard let keys: SealedBucketKeys = Self.keys, used.insert(name).inserted,
            let sealer: ObjectSealer = try? keys.sealer(serverKey: keys.serverKey(of: name))
        else { return nil }
        let id: [UInt8] = Self.identifier(number)
        let ccid: String = Hex.encode(id)
        let sent: Sent
        if var object: Object = objects[name], !object.isGone {
            let tail: Int = object.entity.tail.count
            if tail >= Self.tailMax {
                sent = compaction(&object, id, sealer)
            } else if Int.random(in: 0..<12, using: &random) == 0 {
                sent = Sent(source: object.version, diff: nil, isCompaction: false)
                object.isGone = true
            } else {
                let sealed: String = Self.seal([ccid], .operation, id, position: 0, sealer)
                // Operations are taken on any version since the creation.
                let source: Version = object.version - Version(Int.random(in: 0...min(tail, 3), using: &random))
                sent = Sent(source: source, diff: SealedEntity.insertion(sealed), isCompaction: false)
                object.entity.tail.insert(sealed, at: 0)
                object.operations.append(ccid)
            }
            object.version += 1
            objects[name] = object
        } else {
            let sealed: String = Self.seal([ccid], .snapshot, id, position: 0, sealer)
            sent = Sent(source: nil, diff: SealedEntity.creation(sealed), isCompaction: false)
            objects[name] = Object(
                entity: SealedEntity(snapshots: [0: sealed]), version: (objects[name]?.version ?? 0) + 1,
                operations: [ccid])
        }
        var change: SweepChange = .init(
            bucket: SweepWorkload.sealedBucket, key: keys.serverKey(of: name), ccid: ccid,
            isRemoval: sent.diff == nil, length: 0)
        change.sealed = sent
        return change
    }

    private mutating func compaction(_ object: inout Object, _ id: [UInt8], _ sealer: ObjectSealer) -> Sent {
        let position: Int = object.entity.position
        let sealed: String = Self.seal(object.operations, .snapshot, id, position: position, sealer)
        let diff: ObjectDiff? = object.entity.compaction(sealed, at: position)
        object.entity = SealedEntity(snapshots: [position: sealed])
        compactions += 1
        return Sent(source: object.version, diff: diff, isCompaction: true)
    }

    /// The ccids that an object holds, as a device reads them.
    /// - Throws: `SweepError` for what is not sealed, does not open, or holds one twice.
    static func read(_ body: [UInt8], _ key: String) throws -> Set<String> {
        guard let keys: SealedBucketKeys = Self.keys, let object: JSONObject = try JSONValue(parsing: body).objectValue
        else { throw SweepError("\(key) of the sealed bucket is no object") }
        let entity: SealedEntity = try SealedShape.check(object: object)
        let sealer: ObjectSealer = try keys.sealer(serverKey: key)
        guard let newest: (position: Int, text: String) = entity.newest else { throw SweepError("\(key): no snapshot") }
        var found: [String] = try open(newest.text, .snapshot, position: newest.position, sealer)
        for text: String in entity.tail.reversed() { found += try open(text, .operation, position: 0, sealer) }
        guard Set(found).count == found.count else { throw SweepError("\(key) holds an operation twice") }
        guard found.count == entity.position + 1 else { throw SweepError("\(key) lacks an operation") }
        return Set(found)
    }

    private static func open(
        _ text: String, _ kind: SealedHeader.Kind, position: Int, _ sealer: ObjectSealer
    ) throws(SweepError) -> [String] {
        guard let clear: [UInt8] = sealer.open(SealedObject.bytes(of: text), kind: kind, position: position)?.clear
        else {
            throw SweepError("a sealed value of the store does not open")
        }
        return String(decoding: clear, as: UTF8.self).split(separator: " ").map(String.init)
    }

    private static func seal(
        _ ccids: [String], _ kind: SealedHeader.Kind, _ id: [UInt8], position: Int, _ sealer: ObjectSealer
    ) -> String {
        let clear: [UInt8] = Array(ccids.joined(separator: " ").utf8)
        // Sweeps share their keys: what differs in two of them has another nonce, and the same has the same.
        let nonce: [UInt8] = Array(Hash.sha256(Array("\(kind) \(position) ".utf8) + id + clear).prefix(12))
        return Base64.encodeURL(sealer.seal(clear, kind: kind, id: id, position: position, nonce: nonce))
    }

    /// 16 bytes that no other change has.
    private static func identifier(_ number: Int) -> [UInt8] {
        [UInt8](repeating: 0x5E, count: 8) + (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
