package import ThicketProtocol
import ThicketSealed

/// What the app does in a sealed bucket.
extension SyncMachine {
    /// - Parameter name: the app's own key.
    mutating func addSealed(
        _ edit: Edit, to number: Int, _ key: EntityKey, name: String
    ) throws(ClientError) {
        var entity: Entity = try entity(number, key)
        guard var sealed: SealedObject = entity.sealed else { return }
        sealed.name(name)
        let before: JSONObject? = sealed.object
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
        // With edits in front of it that wait, and behind it, the edit alone is what happened to them.
        let known: EditState = entity.record.edits
        if known.sealed.later == nil || sealed.later == nil || known.refusal != nil || known.attempts != 0 {
            step = nil
        }
        entity.sealed = sealed
        entity.record.edits.refusal = nil
        entity.record.edits.attempts = 0
        let shown: JSONObject? = entity.local
        putSealed(number, key, entity, laterStep: step)
        queueSealed(number, key)
        if edit == .remove { try forgetInHeads(number, key) }
        let after: JSONObject? = shownObject(sealed)
        guard shown != nil || after != nil else { return }
        tell(number, key, before: shown, after: after, by: edit, .local)
    }

    /// What the rules have no form for goes as the difference it makes.
    /// - Returns: whether it went as it is.
    private func take(_ diff: ObjectDiff, _ sealed: inout SealedObject) throws -> Bool {
        do throws(SealedEditError) {
            try sealed.edit(diff)
            return true
        } catch {
            guard case .doesNotFit(let why) = error, why.kind == .unknownOperation,
                let object: JSONObject = sealed.object
            else { throw error }
            try sealed.edit(to: try JSONDiff.apply(diff, to: object))
            return false
        }
    }

    private static func told(_ error: any Error, _ sealed: SealedObject) -> ClientError {
        if case .readOnly? = error as? SealedEditError {
            guard let problem: SealedIntegrity = sealed.problem else {
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

    /// An open bucket: nothing clear is written over what somebody has sealed.
    func checkOpen(_ number: Int, _ key: EntityKey) throws(ClientError) {
        guard let ghost: JSONObject = cache[address(number, key)]?.record.ghost.object,
            SealedEntity.looksSealed(ghost)
        else { return }
        throw ClientError(.sealed, "the object is sealed: open the bucket with its secret")
    }

    mutating func discardSealed(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity: Entity = try entity(number, key)
        guard var sealed: SealedObject = entity.sealed else { return }
        let before: JSONObject? = entity.local
        sealed.discardEdits()
        entity.sealed = sealed
        let held: Ghost? = entity.record.edits.held
        entity.record.edits = EditState()
        entity.record.edits.held = held
        putSealed(number, key, entity)
        try tellSealed(number, key, before: before, [.changed(nil)], .local)
    }

    // MARK: - Repair

    /// What makes an object read-only; nil: nothing does.
    package mutating func problem(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> String? {
        let number: Int = try number(bucket)
        return try entity(number, try wireKey(number, key)).sealed?.problem?.description
    }

    /// *Keep mine*: the object begins anew with what the app sees, and what the server holds is removed.
    ///
    /// - Returns: false when there is nothing to choose.
    package mutating func keepMine(
        _ bucket: BucketName, _ key: EntityKey, now: Int64
    ) throws(ClientError) -> (Bool, [SyncAction]) {
        let number: Int = try number(bucket)
        let key: EntityKey = try wireKey(number, key)
        guard try entity(number, key).sealed?.problem != nil else { return (false, []) }
        let actions: [SyncAction] = try turn(now) { machine throws(ClientError) in
            var entity: Entity = try machine.entity(number, key)
            entity.sealed?.keepMine()
            if let held: Ghost = entity.record.edits.held { entity.record.ghost = held }
            if entity.record.ghost.object == nil { entity.sealed?.hasReplaced() }
            machine.landed(number, key)
            let walk: Int64 = entity.record.walk
            entity.record.edits = EditState()
            entity.record.walk = walk
            machine.putSealed(number, key, entity, isGhostNew: true)
            machine.queueSealed(number, key)
        }
        return (true, actions)
    }

    /// *Take the server's*: the object is what the server shows. What the app saw is told as a conflict.
    ///
    /// - Returns: false when there is nothing to choose.
    /// - Throws: `integrity` when what the server shows does not open, or holds two histories at once.
    package mutating func takeServers(
        _ bucket: BucketName, _ key: EntityKey, now: Int64
    ) throws(ClientError) -> (Bool, [SyncAction]) {
        let number: Int = try number(bucket)
        let key: EntityKey = try wireKey(number, key)
        let known: Entity = try entity(number, key)
        guard let problem: SealedIntegrity = known.sealed?.problem else { return (false, []) }
        let next: Ghost = known.record.edits.held ?? known.record.ghost
        let actions: [SyncAction] = try turn(now) { machine throws(ClientError) in
            var entity: Entity = known
            guard var sealed: SealedObject = entity.sealed else { return }
            let before: JSONObject? = entity.local
            if let object: JSONObject = next.object {
                let sealer: ObjectSealer = try machine.sealer(number, key)
                guard let shown: SealedEntity = try? SealedEntity(object),
                    let events: [SealedEvent] = try? sealed.takeServers(shown, with: sealer),
                    machine.isNamed(sealed.log, key, on: number)
                else { throw ClientError(.integrity, "what the server shows does not open: \(problem)") }
                guard sealed.problem == nil else {
                    throw ClientError(.integrity, "what the server shows does not hold together: \(problem)")
                }
                machine.landed(number, key)
                entity.record.edits = EditState()
                try machine.finish(number, key, &entity, sealed, Shown(next: next, entity: shown), events)
                try machine.tellSealed(number, key, before: before, events, .local)
                return try machine.correctHeads(number, key)
            }
            machine.landed(number, key)
            let events: [SealedEvent] = sealed.takeRemoval()
            sealed.removedAfterTombstone()
            entity.sealed = sealed
            entity.record.ghost = next
            entity.record.edits = EditState()
            machine.putSealed(number, key, entity, isGhostNew: true)
            try machine.tellSealed(number, key, before: before, events, .local)
        }
        return (true, actions)
    }
}
