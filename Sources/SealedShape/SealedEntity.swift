import ThicketProtocol

/// A sealed object as the server holds it: `{"z":1,"s":{"<n>":"…"},"d":["newest",…,"oldest"]}`.
public struct SealedEntity: Sendable, Equatable {
    /// The version of the shape.
    public static let shape: Int64 = 1

    /// Sealed snapshots by position, as base64url; the largest position counts.
    public var snapshots: [Int: String]
    /// Sealed operations, the newest first, as base64url.
    public var tail: [String]

    /// An entity from its texts, which are not checked.
    public init(snapshots: [Int: String], tail: [String] = []) {
        self.snapshots = snapshots
        self.tail = tail
    }

    /// The snapshot that counts.
    public var newest: (position: Int, text: String)? {
        snapshots.max { $0.key < $1.key }.map { (position: $0.key, text: $0.value) }
    }

    /// Position of the newest operation.
    public var position: Int { (newest?.position ?? 0) + tail.count }

    /// Whether it must be an object of this shape or of a newer one: it has `z`, `s` and `d`.
    public static func looksSealed(_ object: JSONObject) -> Bool {
        object.contains("z") && object.contains("s") && object.contains("d")
    }

    /// Whether an object of a sealed bucket was written by a newer program: `z` is a whole number beyond `shape`,
    /// whatever the other members are.
    public static func isNewer(_ object: JSONObject) -> Bool { (object["z"]?.intValue ?? 0) > shape }

    /// Reads an object.
    /// - Throws: `SealedShapeError` unless it has exactly this shape, `newerShape` where `isNewer`. Sealed values are
    ///   not opened.
    public init(_ object: JSONObject) throws(SealedShapeError) {
        let shape = object["z"]?.intValue ?? 0
        guard shape <= Self.shape else { throw SealedShapeError(.newerShape) }
        guard object.count == 3, shape == Self.shape, let named = object["s"]?.objectValue,
            let list = object["d"]?.arrayValue
        else { throw SealedShapeError(.otherMembers) }
        guard (1...SealedLimits.snapshotsMax).contains(named.count) else { throw SealedShapeError(.tooManySnapshots) }
        var snapshots = [Int: String]()
        for (key, value) in named.pairs {
            guard let position = Self.position(key) else { throw SealedShapeError(.badPosition) }
            guard let text = value.stringValue else { throw SealedShapeError(.notSealed) }
            snapshots[position] = text
        }
        var tail = [String]()
        tail.reserveCapacity(list.count)
        for element in list {
            guard let text = element.stringValue else { throw SealedShapeError(.notSealed) }
            tail.append(text)
        }
        self.init(snapshots: snapshots, tail: tail)
    }

    /// The object as the server holds it.
    public var object: JSONObject {
        let named: [JSONObject.Pair] = snapshots.sorted { $0.key < $1.key }.map {
            (key: String($0.key), value: .string($0.value))
        }
        return [
            "z": .number(JSONNumber(Self.shape)), "s": .object(JSONObject(named)),
            "d": .array(tail.map { .string($0) }),
        ]
    }

    /// A position as a key of `s`: canonical decimal, at most 15 digits.
    package static func position(_ key: String) -> Int? {
        guard (1...15).contains(key.utf8.count), key.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            key.utf8.count == 1 || key.utf8.first != 0x30
        else { return nil }
        return Int(key)
    }
}

/// The changes that sealed clients send, as `v`.
extension SealedEntity {
    /// A new object, to be sent without `sv`.
    public static func creation(_ snapshot: String) -> ObjectDiff {
        ObjectDiff([
            (key: "z", operation: .insert(.number(JSONNumber(shape)))),
            (key: "s", operation: .insert(["0": .string(snapshot)])),
            (key: "d", operation: .insert([])),
        ])
    }

    /// An operation, always inserted before all others.
    public static func insertion(_ operation: String) -> ObjectDiff {
        ObjectDiff([(key: "d", operation: .list(ListDiff([(index: 0, operation: .insert(.string(operation)))])))])
    }

    /// A compaction: adds the snapshot of `position`, removes the older snapshots that are known, and removes the
    /// operations that it covers from the tail.
    /// - Returns: nil when `position` is not one of the tail's.
    public func compaction(_ snapshot: String, at position: Int) -> ObjectDiff? {
        guard let newest, position > newest.position, position <= self.position else { return nil }
        let known: [Int] = snapshots.keys.filter { $0 < position }.sorted()
        var named: [(key: String, operation: Operation)] = [
            (key: String(position), operation: .insert(.string(snapshot)))
        ]
        for older in known { named.append((key: String(older), operation: .remove)) }
        let covered = position - newest.position
        let removed: [(index: Int, operation: Operation)] = ((tail.count - covered)..<tail.count).map {
            (index: $0, operation: .remove)
        }
        return ObjectDiff([
            (key: "s", operation: .object(ObjectDiff(named))), (key: "d", operation: .list(ListDiff(removed))),
        ])
    }
}
