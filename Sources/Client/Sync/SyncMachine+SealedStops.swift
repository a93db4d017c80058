import ThicketProtocol
import ThicketSealed

/// Objects that this program is too old for: they stop, and a newer one reads them on (docs/decisions/0061).
extension SyncMachine {
    /// The server shows the object in a shape that only newer programs know. Nothing of it is read, and nothing is
    /// written over it: it is remembered for a newer program, and what waits here goes on waiting.
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

    /// What the server shows can be read again: also what it refused of ours meanwhile may go.
    func comeBack(_ entity: inout Entity, _ sealed: inout SealedObject) {
        sealed.leaveNewerShape()
        entity.sealed = sealed
        entity.record.edits.held = nil
        (entity.record.edits.refusal, entity.record.edits.attempts) = (nil, 0)
    }

    /// What has waited goes: the change that was on its way once more, or a new one.
    mutating func sendOn(_ number: Int, _ key: EntityKey) {
        guard cache[address(number, key)]?.record.edits.pending != nil else { return queueSealed(number, key) }
        channels[number].resend.append(key)
    }

    // MARK: - Newer rules

    /// Objects that had to stop at operations of newer rules, or at a newer shape, are read on, once a program: it may
    /// be the newer one.
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
        // Why it is gone, its last state tells.
        guard held.object != nil else { return try want(number, key, held.version - 1) }
        entity.sealed?.tryNewerRules()
        putSealed(number, key, entity)
        // What was asked for comes, and is read as far as that goes.
        guard entity.record.edits.wanted ?? 0 <= held.version else { return }
        try jumpSealed(number, key, to: held)
        guard let sealed = cache[address(number, key)]?.sealed, sealed.problem == nil, !sealed.isStopped
        else { return }
        sendOn(number, key)
    }

    /// The server says that an object is gone that had to stop at newer rules. Whether somebody has deleted it, only
    /// those tell: what is here stays as it is, and a newer program asks for what the server held last.
    mutating func goneUnread(_ number: Int, _ key: EntityKey, at version: Version) throws(ClientError) {
        var entity = try entity(number, key)
        // An index does not tell when it went: not before what is known of it.
        let known = entity.record.edits.held.map { $0.object == nil ? $0.version : $0.version + 1 }
        let last = max(version, known ?? version)
        // Who has asked already for what it held last goes on waiting for that.
        let isAsked = entity.record.edits.held?.object == nil && entity.record.edits.wanted == last - 1
        entity.record.edits.held = Ghost(version: last, object: nil)
        if !isAsked { entity.record.edits.wanted = nil }
        putSealed(number, key, entity)
    }
}
