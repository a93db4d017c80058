import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// The changes of devices to the sealed bucket of a sweep: creations, operations, compactions and removals, sealed as
/// devices do. An operation holds its own ccid and a snapshot those that it covers, so that the sweep, which has the
/// keys, sees the fate of each of them.
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
        var isGone = false
    }

    private var objects = [String: Object]()
    /// Objects that have a change in this group: one each, so that the refusal of one invalidates no other.
    private var used = Set<String>()
    private(set) var compactions = 0
    /// Length of a tail, in operations, from which on it is compacted.
    private static let tailMax = 6

    private static let keys = try? SealedBucketKeys(
        owner: "ann@example.com", app: "sweep", bucket: "b3",
        secrets: [0: SecureBytes(copying: .init(repeating: 9, count: 32))])

    mutating func beginGroup() { used = [] }

    /// The next change of an object.
    /// - Parameter number: of the change in the workload.
    /// - Returns: nil if the object has a change in this group.
    mutating func change(of name: String, number: Int, _ random: inout SeededRandom) -> SweepChange? {
        guard let keys = Self.keys, used.insert(name).inserted,
            let sealer = try? keys.sealer(serverKey: keys.serverKey(of: name))
        else { return nil }
        let id = Self.identifier(number)
        let ccid = Hex.encode(id)
        let sent: Sent
        if var object = objects[name], !object.isGone {
            let tail = object.entity.tail.count
            if tail >= Self.tailMax {
                sent = compaction(&object, id, sealer)
            } else if Int.random(in: 0..<12, using: &random) == 0 {
                sent = Sent(source: object.version, diff: nil, isCompaction: false)
                object.isGone = true
            } else {
                let sealed = Self.seal([ccid], .operation, id, position: 0, sealer)
                // Operations are accepted on any version since the creation.
                let source = object.version - Version(Int.random(in: 0...min(tail, 3), using: &random))
                sent = Sent(source: source, diff: SealedEntity.insertion(sealed), isCompaction: false)
                object.entity.tail.insert(sealed, at: 0)
                object.operations.append(ccid)
            }
            object.version += 1
            objects[name] = object
        } else {
            let sealed = Self.seal([ccid], .snapshot, id, position: 0, sealer)
            sent = Sent(source: nil, diff: SealedEntity.creation(sealed), isCompaction: false)
            objects[name] = Object(
                entity: SealedEntity(snapshots: [0: sealed]), version: (objects[name]?.version ?? 0) + 1,
                operations: [ccid])
        }
        var change = SweepChange(
            bucket: SweepWorkload.sealedBucket, key: keys.serverKey(of: name), ccid: ccid,
            isRemoval: sent.diff == nil, length: 0)
        change.sealed = sent
        return change
    }

    private mutating func compaction(_ object: inout Object, _ id: [UInt8], _ sealer: ObjectSealer) -> Sent {
        let position = object.entity.position
        let sealed = Self.seal(object.operations, .snapshot, id, position: position, sealer)
        let diff = object.entity.compaction(sealed, at: position)
        object.entity = SealedEntity(snapshots: [position: sealed])
        compactions += 1
        return Sent(source: object.version, diff: diff, isCompaction: true)
    }

    /// The ccids that an object holds, as a device reads them.
    /// - Throws: `SweepError` for a value that is not sealed, does not open, or holds a ccid twice.
    static func read(_ body: [UInt8], _ key: String) throws -> Set<String> {
        guard let keys = Self.keys, let object = try JSONValue(parsing: body).objectValue
        else { throw SweepError("\(key) of the sealed bucket is no object") }
        let entity = try SealedShape.check(object: object)
        let sealer = try keys.sealer(serverKey: key)
        guard let newest = entity.newest else { throw SweepError("\(key): no snapshot") }
        var found = try open(newest.text, .snapshot, position: newest.position, sealer)
        for text in entity.tail.reversed() { found += try open(text, .operation, position: 0, sealer) }
        guard Set(found).count == found.count else { throw SweepError("\(key) holds an operation twice") }
        guard found.count == entity.position + 1 else { throw SweepError("\(key) lacks an operation") }
        return Set(found)
    }

    private static func open(
        _ text: String, _ kind: SealedHeader.Kind, position: Int, _ sealer: ObjectSealer
    ) throws(SweepError) -> [String] {
        guard let clear = sealer.open(SealedObject.bytes(of: text), kind: kind, position: position)?.clear
        else {
            throw SweepError("a sealed value of the store does not open")
        }
        return String(decoding: clear, as: UTF8.self).split(separator: " ").map(String.init)
    }

    private static func seal(
        _ ccids: [String], _ kind: SealedHeader.Kind, _ id: [UInt8], position: Int, _ sealer: ObjectSealer
    ) -> String {
        let clear: [UInt8] = Array(ccids.joined(separator: " ").utf8)
        // Sweeps share their keys: different values have different nonces, and equal values have equal ones.
        let nonce = Array(Hash.sha256(Array("\(kind) \(position) ".utf8) + id + clear).prefix(12))
        return Base64.encodeURL(sealer.seal(clear, kind: kind, id: id, position: position, nonce: nonce))
    }

    /// 16 bytes, unique to a change.
    private static func identifier(_ number: Int) -> [UInt8] {
        [UInt8](repeating: 0x5E, count: 8) + (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
