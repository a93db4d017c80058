import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The changes that a server accepts in a sealed bucket without being able to read them: nothing that could be clear
/// text.
public enum SealedShape {
    /// A change that has the shape.
    public enum Change: Sendable, Equatable {
        /// A new object with the snapshot of position 0.
        case creation(snapshot: String)
        /// An operation inserted before all others.
        case insertion(String)
        /// A snapshot for operations that leave the tail.
        case compaction(Compaction)
        /// `-` of the object, or `EMPTY` of the bucket.
        case removal
    }

    /// A change that replaces operations of the tail by a snapshot.
    public struct Compaction: Sendable, Equatable {
        /// Position of the new snapshot.
        public var position: Int
        /// The new snapshot, base64url.
        public var snapshot: String
        /// Older snapshots that it removes, ascending; the last is its base.
        public var removedSnapshots: [Int]
        /// Elements of the tail that it removes, by their indexes.
        public var removedTail: Range<Int>

        /// A compaction that is not checked against an entity.
        public init(position: Int, snapshot: String, removedSnapshots: [Int], removedTail: Range<Int>) {
            self.position = position
            self.snapshot = snapshot
            self.removedSnapshots = removedSnapshots
            self.removedTail = removedTail
        }

        /// Checks that it removes exactly what it covers, of the object that its author knew.
        /// - Throws: `SealedShapeError`.
        public func check(on entity: SealedEntity) throws(SealedShapeError) {
            guard let newest = entity.newest?.position, removedSnapshots.last == newest,
                removedSnapshots.allSatisfy({ entity.snapshots[$0] != nil }), entity.snapshots[position] == nil,
                removedTail.upperBound == entity.tail.count
            else { throw SealedShapeError(.badCompaction) }
        }
    }

    /// Checks a received change before any of it is stored.
    ///
    /// - Throws: `SealedShapeError`, with the code of the refusal. `Compaction.check(on:)` checks that a compaction
    ///   removes what it covers, once its source version is known; `checkRoom` checks the size of the tail.
    public static func check(_ request: ChangeRequest) throws(SealedShapeError) -> Change {
        switch request.operation {
        case .remove, .empty: return .removal
        case .drop, .other: throw SealedShapeError(.otherChange)
        case .modify: break
        }
        guard request.object == nil else { throw SealedShapeError(.wholeObject) }
        guard let sent = request.diff, let diff = diff(sent) else {
            throw SealedShapeError(.otherChange)
        }
        return try check(diff, changeID: request.ccid, isCreation: (request.sv ?? 0) == 0)
    }

    private static func diff(_ sent: JSONFragment) -> ObjectDiff? {
        if case .node(let node) = sent { return try? ObjectDiff(node) }
        return try? ObjectDiff(sent.value)
    }

    /// The same for a diff that was parsed already.
    /// - Parameter isCreation: whether the change had no `sv`.
    public static func check(
        _ diff: ObjectDiff, changeID: String, isCreation: Bool
    ) throws(SealedShapeError) -> Change {
        if isCreation { return .creation(snapshot: try creation(diff)) }
        if diff.operations.count == 1, case .list(let list)? = diff["d"] {
            return .insertion(try insertion(list, changeID))
        }
        return .compaction(try compaction(diff))
    }

    private static func creation(_ diff: ObjectDiff) throws(SealedShapeError) -> String {
        guard diff.operations.count == 3, case .insert(let shape)? = diff["z"], case .insert(let named)? = diff["s"],
            case .insert(let tail)? = diff["d"]
        else { throw SealedShapeError(.otherChange) }
        let entity = try SealedEntity(["z": shape, "s": named, "d": tail])
        guard entity.tail.isEmpty, entity.snapshots.count == 1, let text = entity.snapshots[0] else {
            throw SealedShapeError(.otherChange)
        }
        try check(text, .snapshot)
        return text
    }

    private static func insertion(_ list: ListDiff, _ changeID: String) throws(SealedShapeError) -> String {
        guard list.operations.count == 1, list.operations[0].index == 0,
            case .insert(let value) = list.operations[0].operation
        else { throw SealedShapeError(.otherChange) }
        guard let text = value.stringValue else { throw SealedShapeError(.notSealed) }
        let header = try check(text, .operation)
        guard Hex.encode(header.id).utf8.elementsEqual(changeID.utf8) else { throw SealedShapeError(.otherChangeID) }
        return text
    }

    private static func compaction(_ diff: ObjectDiff) throws(SealedShapeError) -> Compaction {
        guard diff.operations.count == 2, case .object(let named)? = diff["s"], case .list(let list)? = diff["d"] else {
            throw SealedShapeError(.otherChange)
        }
        var added: (position: Int, text: String)?
        var removed = [Int]()
        for (key, operation) in named.operations {
            guard let position = SealedEntity.position(key) else { throw SealedShapeError(.badPosition) }
            switch operation {
            case .remove: removed.append(position)
            case .insert(.string(let text)) where added == nil: added = (position, text)
            default: throw SealedShapeError(.otherChange)
            }
        }
        removed.sort()
        guard let added, let old = removed.last, removed.count <= SealedLimits.snapshotsMax else {
            throw SealedShapeError(.badCompaction)
        }
        try check(added.text, .snapshot)
        let tail = try self.removed(list)
        guard added.position > old, tail.count == added.position - old else { throw SealedShapeError(.badCompaction) }
        return Compaction(
            position: added.position, snapshot: added.text, removedSnapshots: removed, removedTail: tail)
    }

    /// Accepts only removals of adjacent elements.
    private static func removed(_ list: ListDiff) throws(SealedShapeError) -> Range<Int> {
        guard let first = list.operations.first?.index else { throw SealedShapeError(.badCompaction) }
        for (offset, entry) in list.operations.enumerated() {
            guard case .remove = entry.operation else { throw SealedShapeError(.otherChange) }
            guard entry.index == first + offset else { throw SealedShapeError(.badCompaction) }
        }
        return first..<(first + list.operations.count)
    }

    /// Checks that a text can be a sealed value of this kind: strict base64url, a known suite, a length that padding
    /// gives.
    /// - Returns: the header of the value.
    @discardableResult
    package static func check(_ text: String, _ kind: SealedHeader.Kind) throws(SealedShapeError) -> SealedHeader {
        guard let bytes = Base64.decodeURL(Array(text.utf8)[...]), let header = SealedHeader(of: bytes),
            header.kind == kind, SealedValue.canHave(bytes.count, kind)
        else { throw SealedShapeError(.notSealed) }
        return header
    }

    /// Bytes of a server key: lower-case base32 of 20 bytes.
    public static let keyBytes = 32

    /// Checks that a key can be a server key, and not the app's own key.
    public static func check(key: String) throws(SealedShapeError) {
        let isBase32 = key.utf8.allSatisfy { byte in
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "2")...UInt8(ascii: "7")).contains(byte)
        }
        guard isBase32, key.utf8.count == keyBytes else { throw SealedShapeError(.clearKey) }
    }

    /// Checks a whole object: of an import or a restore, or shown to a client.
    public static func check(object: JSONObject) throws(SealedShapeError) -> SealedEntity {
        let entity = try SealedEntity(object)
        for text in entity.snapshots.values { try check(text, .snapshot) }
        for text in entity.tail { try check(text, .operation) }
        return entity
    }

    /// Checks that the tail has room for one more operation; otherwise 413 until a client compacts.
    ///
    /// - Parameters:
    ///   - operations: number in the tail.
    ///   - bytes: of their texts together.
    public static func checkRoom(
        for operation: String, operations: Int, bytes: Int
    ) throws(SealedShapeError) {
        guard operations < SealedLimits.tailOperationsMax,
            bytes + operation.utf8.count <= SealedLimits.tailBytesMax
        else { throw SealedShapeError(.tailTooLong) }
    }
}
