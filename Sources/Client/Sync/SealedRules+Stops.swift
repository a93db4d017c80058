import ThicketProtocol
import ThicketSealed

/// Objects that this program is too old for: they stop, and a newer program reads them further (docs/decisions/0044).
extension SealedRules {
    /// The server shows the object in a format that only newer programs know. It is neither read nor overwritten: it is
    /// stored for a newer program, and waiting edits continue to wait.
    static func stop(_ bucket: inout BucketMachine, _ key: EntityKey, at next: Ghost, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        let events = sealed.serverShowedNewerShape()
        try keep(&bucket, key, sealed, &turn) { $0.edits.held = next }
        try report(&bucket, key, before: entity.local, events, &turn)
    }

    /// Sends what has waited: the change that was in flight again, or a new one.
    static func sendOn(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) {
        guard turn.entities[bucket.address(key)]?.record.edits.pending != nil else { return queue(&bucket, key, &turn) }
        bucket.outbox.resend.append(key)
    }

    /// Reads objects further that had stopped at operations of newer rules or at a newer format; once per run, because
    /// this may be the newer program.
    static func readOn(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        guard bucket.sealing?.hasReadOn == false else { return }
        bucket.sealing?.hasReadOn = true
        for key in try turn.store.keysHeld(bucket.record.name) {
            let entity = try bucket.entity(key, &turn)
            guard let held = entity.record.edits.held, let sealed = entity.sealed,
                sealed.problem == nil
            else { continue }
            if sealed.stop == .rules {
                try tryNewerRules(&bucket, key, held, &turn)
            } else if held.object != nil, entity.record.edits.wanted == nil,
                entity.record.ghost.object != nil || sealed.stop == .shape
            {
                try jump(&bucket, key, to: held, &turn)
            }
        }
    }

    private static func tryNewerRules(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ held: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        // The last state before the removal shows why the object is gone.
        guard held.object != nil else { return try bucket.want(key, held.version - 1, &turn) }
        var known = entity.sealed
        known?.tryNewerRules()
        try keep(&bucket, key, known, &turn)
        // A requested state will arrive, and is then read as far as possible.
        guard entity.record.edits.wanted ?? 0 <= held.version else { return }
        try jump(&bucket, key, to: held, &turn)
        guard let sealed = turn.entities[bucket.address(key)]?.sealed, sealed.problem == nil, !sealed.isStopped
        else { return }
        sendOn(&bucket, key, &turn)
    }

    /// The server reports that an object is gone that had stopped at newer rules. Only those rules reveal whether a
    /// device removed it: the local state is kept, and a newer program requests the server's last content.
    static func goneUnread(_ bucket: inout BucketMachine, _ key: EntityKey, at version: Version, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        // An index does not show when the object was removed, but not before its last known version.
        let known = entity.record.edits.held.map { $0.object == nil ? $0.version : $0.version + 1 }
        let last = max(version, known ?? version)
        // A pending request for the last content remains valid.
        let isAsked = entity.record.edits.held?.object == nil && entity.record.edits.wanted == last - 1
        try keep(&bucket, key, entity.sealed, &turn) { record in
            record.edits.held = Ghost(version: last, object: nil)
            if !isAsked { record.edits.wanted = nil }
        }
    }
}

extension EditState {
    /// The server's state can be read again, so edits that it refused meanwhile may be sent.
    mutating func comeBack() {
        held = nil
        (refusal, attempts) = (nil, 0)
    }

    /// The server shows the object in a known format, or not at all.
    mutating func leaveNewerShape() { if sealed.isNewer { comeBack() } }
}
