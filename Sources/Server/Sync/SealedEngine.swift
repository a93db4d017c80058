import ThicketProtocol
import ThicketSealedShape

/// Decides one change of a sealed bucket: orders it without reading its content; performs no I/O.
///
/// Positions are absolute: the operation at index i of a tail of length L, after a snapshot at position N, is at N + L
/// − i. An insertion at index 0 therefore does not depend on changes since its author's version, and a compaction
/// depends only on the length of the tail.
struct SealedEngine {
    /// Maximum bytes of one snapshot as base64url, and half of the maximum for all snapshots of an object; more is
    /// answered with 413. The tail has its own bound, so that a large object never blocks an edit.
    let snapshotBytesMax: Int
    /// Version before the first version of a key that never existed (raised by restores).
    let versionBase: Version

    /// Checks the shape before any look-up.
    static func shape(of submitted: SubmittedChange, _ change: CheckedChange) throws(ChangeRejection)
        -> SealedShape
        .Change
    {
        do {
            let shape = try SealedShape.check(submitted.request)
            // The key of an `EMPTY` is the bucket's own name.
            if case .empty = change.intent { return shape }
            try SealedShape.check(key: change.key.text)
            return shape
        } catch {
            throw ChangeRejection(error)
        }
    }

    /// - Parameters:
    ///   - state: newest state; nil when the key never existed.
    ///   - born: version that the newest creation made.
    ///   - isWhole: the operation sets an object as a whole. It is accepted only on the newest version, so that its
    ///     author first sees the changes of others (docs/decisions/0086).
    ///   - base: returns the object at a version since its creation; nil when it is not kept. Called for late
    ///     compactions only.
    func decide<Failure: Error>(
        _ shape: SealedShape.Change, source: Version?, isWhole: Bool = false, state: ObjectState?, born: Version?,
        base: (Version) throws(Failure) -> JSONObject?
    ) throws(Failure) -> ChangeEngine.Outcome {
        if case .creation(let snapshot) = shape {
            return Result { () throws(ChangeRejection) in try creation(snapshot, after: state) }
        }
        guard let state, !state.isDeleted, let source else {
            return .failure(ChangeRejection(.notFound, "an operation on a missing object"))
        }
        guard source <= state.version, source >= born ?? state.version else {
            return .failure(
                ChangeRejection(
                    .badVersion, "sv \(source) does not belong to this object, which begins at \(born ?? 0)"))
        }
        switch shape {
        case .insertion where isWhole && source != state.version:
            return .failure(
                ChangeRejection(.badVersion, "sv \(source) of a whole object, the newest is \(state.version)"))
        case .insertion(let operation):
            return Result { () throws(ChangeRejection) in try insertion(operation, into: state) }
        case .compaction(let compaction):
            guard let seen: JSONObject = source == state.version ? state.value : try base(source) else {
                return .failure(ChangeRejection(.badVersion, "sv \(source) of a compaction is not kept"))
            }
            return Result { () throws(ChangeRejection) in try self.compaction(compaction, madeOn: seen, onto: state) }
        case .creation, .removal:
            return .failure(ChangeRejection(.invalidRequest, "no operation"))
        }
    }

    // MARK: The three

    /// The server never merges two creations of one key: the second client must read the existing object.
    private func creation(_ snapshot: String, after state: ObjectState?) throws(ChangeRejection) -> Decision {
        guard state?.isDeleted ?? true else { throw ChangeRejection(.badVersion, "the object already exists") }
        try checkSize(of: snapshot)
        return decision(
            SealedEntity.creation(snapshot), SealedEntity(snapshots: [0: snapshot]).object, on: nil,
            version: state?.version ?? versionBase)
    }

    private func insertion(_ operation: String, into state: ObjectState) throws(ChangeRejection) -> Decision {
        guard case .array(var tail)? = state.value["d"] else { throw Self.unreadable }
        let bytes = tail.reduce(0) { $0 + ($1.stringValue?.utf8.count ?? 0) }
        do {
            try SealedShape.checkRoom(for: operation, operations: tail.count, bytes: bytes)
        } catch {
            throw ChangeRejection(error)
        }
        let isFirst = tail.isEmpty
        tail.insert(.string(operation), at: 0)
        var value = state.value
        value["d"] = .array(tail)
        // base64url is never escaped, so the operation adds its text, two quotes and a comma.
        let size = state.size + operation.utf8.count + (isFirst ? 2 : 3)
        return Decision(
            isRemoval: false, source: state.version, edit: .value(SealedEntity.insertion(operation)),
            state: ObjectState(
                version: state.version + 1, isDeleted: false, value: value, size: size, nodes: state.nodes + 1))
    }

    private func compaction(
        _ compaction: SealedShape.Compaction, madeOn base: JSONObject, onto state: ObjectState
    ) throws(ChangeRejection) -> Decision {
        guard let seen: SealedEntity = try? .init(base), var entity: SealedEntity = try? .init(state.value),
            let newest = entity.newest?.position
        else { throw Self.unreadable }
        do {
            try compaction.check(on: seen)
        } catch {
            throw ChangeRejection(error)
        }
        try checkSize(of: compaction.snapshot)
        // Another client has compacted up to this position or further.
        guard compaction.position > newest else {
            throw ChangeRejection(.emptyChange, "position \(compaction.position) is already covered")
        }
        let removed = compaction.removedSnapshots.filter { entity.snapshots[$0] != nil }
        for position in removed { entity.snapshots[position] = nil }
        entity.snapshots[compaction.position] = compaction.snapshot
        let bytes = entity.snapshots.values.reduce(0) { $0 + $1.utf8.count }
        guard entity.snapshots.count <= SealedLimits.snapshotsMax, bytes <= 2 * snapshotBytesMax else {
            throw ChangeRejection(
                .badVersion, "other clients have compacted too: read again, and remove their snapshots")
        }
        guard compaction.position - newest <= entity.tail.count else { throw Self.unreadable }
        let covered = (entity.tail.count - (compaction.position - newest))..<entity.tail.count
        entity.tail.removeSubrange(covered)
        return decision(
            Self.diff(compaction, removing: removed, covered), entity.object, on: state.version,
            version: state.version)
    }

    private static func diff(
        _ compaction: SealedShape.Compaction, removing removed: [Int], _ covered: Range<Int>
    ) -> ObjectDiff {
        var named: [(key: String, operation: Operation)] = [
            (key: String(compaction.position), operation: .insert(.string(compaction.snapshot)))
        ]
        for position in removed { named.append((key: String(position), operation: .remove)) }
        let tail: [(index: Int, operation: Operation)] = covered.map { (index: $0, operation: .remove) }
        return ObjectDiff([
            (key: "s", operation: .object(ObjectDiff(named))), (key: "d", operation: .list(ListDiff(tail))),
        ])
    }

    // MARK: Steps

    /// The row is written from the parsed values, so that no other member of the request gets into the log.
    private func decision(
        _ diff: ObjectDiff, _ object: JSONObject, on source: Version?, version: Version
    ) -> Decision {
        Decision(
            isRemoval: false, source: source, edit: .value(diff),
            state: ObjectState(
                version: version + 1, isDeleted: false, value: object, size: object.serialized().count))
    }

    private func checkSize(of snapshot: String) throws(ChangeRejection) {
        guard snapshot.utf8.count <= snapshotBytesMax else {
            throw ChangeRejection(
                .tooLarge, "\(snapshot.utf8.count) bytes of a snapshot, the maximum is \(snapshotBytesMax)")
        }
    }

    private static let unreadable = ChangeRejection(.serverError, "a stored object of a sealed bucket is invalid")
}
