import ThicketProtocol
import ThicketSealed

/// Objects that this program is too old for: they stop, and a newer program reads them further (docs/decisions/0044).
extension SyncMachine {
    /// The server shows the object in a format that only newer programs know. It is neither read nor overwritten: it is
    /// stored for a newer program, and waiting edits continue to wait.
    mutating func stop(_ number: Int, _ key: EntityKey, at next: Ghost) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed else { return }
        let before = entity.local
        let events = sealed.serverShowedNewerShape()
        entity.sealed = sealed
        entity.record.edits.held = next
        putSealed(number, key, entity)
        try tellSealed(number, key, before: before, events)
    }

    /// The server's state can be read again, so edits that it refused meanwhile may be sent.
    func comeBack(_ entity: inout Entity, _ sealed: inout SealedObject) {
        sealed.leaveNewerShape()
        entity.sealed = sealed
        entity.record.edits.held = nil
        (entity.record.edits.refusal, entity.record.edits.attempts) = (nil, 0)
    }

    /// Sends what has waited: the change that was in flight again, or a new one.
    mutating func sendOn(_ number: Int, _ key: EntityKey) {
        guard cache[address(number, key)]?.record.edits.pending != nil else { return queueSealed(number, key) }
        channels[number].resend.append(key)
    }

    // MARK: - Newer rules

    /// Reads objects further that had stopped at operations of newer rules or at a newer format; once per run, because
    /// this may be the newer program.
    mutating func readOn(_ number: Int) throws(ClientError) {
        guard channels[number].sealing?.hasReadOn == false else { return }
        channels[number].sealing?.hasReadOn = true
        for key in try store.keysHeld(channels[number].record.name) {
            let entity = try entity(number, key)
            guard let held = entity.record.edits.held, let sealed = entity.sealed,
                sealed.problem == nil
            else { continue }
            if sealed.stop == .rules {
                try tryNewerRules(number, key, held)
            } else if held.object != nil, entity.record.edits.wanted == nil,
                entity.record.ghost.object != nil || sealed.stop == .shape
            {
                try jumpSealed(number, key, to: held)
            }
        }
    }

    private mutating func tryNewerRules(_ number: Int, _ key: EntityKey, _ held: Ghost) throws(ClientError) {
        var entity = try entity(number, key)
        // The last state before the removal shows why the object is gone.
        guard held.object != nil else { return try want(number, key, held.version - 1) }
        entity.sealed?.tryNewerRules()
        putSealed(number, key, entity)
        // A requested state will arrive, and is then read as far as possible.
        guard entity.record.edits.wanted ?? 0 <= held.version else { return }
        try jumpSealed(number, key, to: held)
        guard let sealed = cache[address(number, key)]?.sealed, sealed.problem == nil, !sealed.isStopped
        else { return }
        sendOn(number, key)
    }

    /// The server reports that an object is gone that had stopped at newer rules. Only those rules reveal whether a
    /// device removed it: the local state is kept, and a newer program requests the server's last content.
    mutating func goneUnread(_ number: Int, _ key: EntityKey, at version: Version) throws(ClientError) {
        var entity = try entity(number, key)
        // An index does not show when the object was removed, but not before its last known version.
        let known = entity.record.edits.held.map { $0.object == nil ? $0.version : $0.version + 1 }
        let last = max(version, known ?? version)
        // A pending request for the last content remains valid.
        let isAsked = entity.record.edits.held?.object == nil && entity.record.edits.wanted == last - 1
        entity.record.edits.held = Ghost(version: last, object: nil)
        if !isAsked { entity.record.edits.wanted = nil }
        putSealed(number, key, entity)
    }
}
