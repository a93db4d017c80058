import ThicketProtocol
import ThicketSealed

/// The app's edits in a sealed bucket.
extension SyncMachine {
    /// - Parameters:
    ///   - name: the app's key.
    ///   - isWhole: the edit replaces the whole object.
    mutating func addSealed(
        _ edit: Edit, to number: Int, _ key: EntityKey, name: String, isWhole: Bool = false
    ) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed else { return }
        sealed.name(name)
        let before = sealed.object
        let isAllWhole = isWhole && (sealed.later == nil || sealed.isLaterWhole)
        var step: ObjectDiff?
        do {
            switch edit {
            case .remove: try sealed.delete()
            case .modify(let diff):
                if before == nil {
                    try sealed.create(try JSONDiff.apply(diff, to: JSONObject()))
                } else {
                    step = try take(diff, &sealed) ? diff : nil
                }
            }
        } catch {
            throw Self.told(error, sealed)
        }
        if sealed.isLaterWhole != isAllWhole { step = nil }
        sealed.isLaterWhole = isAllWhole
        // A step is recorded only if edits waited before and still wait after this edit, and none of them was refused.
        let known = entity.record.edits
        if known.sealed.later == nil || sealed.later == nil || known.refusal != nil || known.attempts != 0 {
            step = nil
        }
        entity.sealed = sealed
        entity.record.edits.refusal = nil
        entity.record.edits.attempts = 0
        let shown = entity.local
        putSealed(number, key, entity, laterStep: step)
        queueSealed(number, key)
        if edit == .remove { try forgetInHeads(number, key) }
        let after = shownObject(sealed)
        guard shown != nil || after != nil else { return }
        tell(number, key, before: shown, after: after, by: edit, .local)
    }

    /// Applies a diff; an operation that the sealed rules cannot express is applied as the difference that it makes.
    ///
    /// - Returns: whether the diff was applied unchanged.
    private func take(_ diff: ObjectDiff, _ sealed: inout SealedObject) throws -> Bool {
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

    private static func told(_ error: any Error, _ sealed: SealedObject) -> ClientError {
        if case .readOnly? = error as? SealedEditError {
            guard sealed.stop != .shape else {
                return ClientError(
                    .integrity, "the object is read-only: it was written in a newer shape; update this program")
            }
            guard let problem = sealed.problem else {
                return ClientError(
                    .integrity,
                    "the object is read-only: operation \(sealed.log.position + 1) was written under newer rules; update this "
                        + "program")
            }
            return ClientError(
                .integrity, "the object is read-only: \(problem); choose between this device's and the server's first")
        }
        return ClientError(.misfit, "the edit does not fit the object: \(error)")
    }

    /// In an open bucket, nothing unsealed may overwrite a sealed object.
    func checkOpen(_ number: Int, _ key: EntityKey) throws(ClientError) {
        guard let ghost = cache[address(number, key)]?.record.ghost.object,
            SealedEntity.looksSealed(ghost)
        else { return }
        throw ClientError(.sealed, "the object is sealed: open the bucket with its secret")
    }

    mutating func discardSealed(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed else { return }
        let before = entity.local
        sealed.discardEdits()
        entity.sealed = sealed
        let held = entity.record.edits.held
        entity.record.edits = EditState()
        entity.record.edits.held = held
        putSealed(number, key, entity)
        try tellSealed(number, key, before: before, [.changed(nil)], .local)
    }
}
