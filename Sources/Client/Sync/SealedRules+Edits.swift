import ThicketProtocol
import ThicketSealed

/// The app's edits in a sealed bucket.
extension SealedRules {
    static func add(
        _ bucket: inout BucketMachine, _ edit: Edit, _ key: EntityKey, name: String, isWhole: Bool,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        guard !SealedHeads.isReserved(name) else {
            throw ClientError(
                .invalidName, "'\(name)' is reserved for an internal object of sealed buckets")
        }
        try append(&bucket, edit, key, name: name, isWhole: isWhole, &turn)
    }

    static func retryRefused(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try keep(&bucket, key, try bucket.entity(key, &turn).sealed, &turn) { $0.edits.forgetRefusal() }
        queue(&bucket, key, &turn)
    }

    /// As `add`, also for the object that the devices keep for themselves.
    static func append(
        _ bucket: inout BucketMachine, _ edit: Edit, _ key: EntityKey, name: String, isWhole: Bool = false,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        sealed.name(name)
        let isAllWhole = isWhole && (sealed.later == nil || sealed.isLaterWhole)
        let step = try apply(edit, &sealed)
        let isStep = isStep(after: entity.record.edits, sealed) && sealed.isLaterWhole == isAllWhole
        sealed.isLaterWhole = isAllWhole
        try keep(&bucket, key, sealed, &turn) { entity, done in
            if isStep { done.laterStep = step }
            (entity.record.edits.refusal, entity.record.edits.attempts) = (nil, 0)
        }
        queue(&bucket, key, &turn)
        if edit == .remove { try SealedUpkeep.forgetInHeads(&bucket, key, &turn) }
        let (shown, after) = (entity.local, shownObject(sealed))
        guard shown != nil || after != nil else { return }
        bucket.report(key, before: shown, after: after, by: edit, .local, &turn)
    }

    /// Whether an edit can be stored as a step: only if edits waited before it and still wait after it, and none of
    /// them was refused.
    private static func isStep(after known: EditState, _ sealed: SealedObject) -> Bool {
        known.sealed.later != nil && sealed.later != nil && known.refusal == nil && known.attempts == 0
    }

    /// Applies an edit of the app.
    ///
    /// - Returns: the diff, if it was applied unchanged to an existing object.
    private static func apply(_ edit: Edit, _ sealed: inout SealedObject) throws(ClientError) -> ObjectDiff? {
        do {
            switch edit {
            case .remove: try sealed.delete()
            case .modify(let diff) where sealed.object == nil:
                try sealed.create(try JSONDiff.apply(diff, to: JSONObject()))
            case .modify(let diff): return try apply(diff, &sealed) ? diff : nil
            }
            return nil
        } catch {
            throw Self.error(error, sealed)
        }
    }

    /// Applies a diff; an operation that the sealed rules cannot express is applied as the difference that it makes.
    ///
    /// - Returns: whether the diff was applied unchanged.
    private static func apply(_ diff: ObjectDiff, _ sealed: inout SealedObject) throws -> Bool {
        do throws(SealedEditError) {
            try sealed.edit(diff)
            return true
        } catch {
            guard case .doesNotFit(let why) = error, why.kind == .unknownOperation,
                let object = sealed.object
            else { throw error }
            try sealed.edit(to: try JSONDiff.apply(diff, to: object))
            return false
        }
    }

    private static func error(_ error: any Error, _ sealed: SealedObject) -> ClientError {
        if case .readOnly? = error as? SealedEditError {
            guard sealed.stop != .shape else {
                return ClientError(
                    .integrity, "the object is read-only: it was written in a newer shape; update this program")
            }
            guard let problem = sealed.problem else {
                return ClientError(
                    .integrity,
                    "the object is read-only: operation \(sealed.log.position + 1) was written under newer rules; "
                        + "update this program")
            }
            return ClientError(
                .integrity, "the object is read-only: \(problem); choose between this device's and the server's first")
        }
        return ClientError(.misfit, "the edit does not fit the object: \(error)")
    }

    static func discard(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        sealed.discardEdits()
        try keep(&bucket, key, sealed, &turn) { record in
            let held = record.edits.held
            record.edits = EditState()
            record.edits.held = held
        }
        try report(&bucket, key, before: entity.local, [.changed(nil)], origin: .local, &turn)
    }
}
