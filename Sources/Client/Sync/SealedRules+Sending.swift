internal import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// Edits of a sealed bucket on their way to the server, and the server's answers.
extension SealedRules {
    /// Queues the object if it has something to send.
    static func queue(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) {
        guard let entity = turn.entities[bucket.address(key)], let sealed = entity.sealed,
            entity.record.edits.pending == nil, entity.record.edits.refusal == nil, sealed.problem == nil
        else { return }
        if sealed.hasEdits || mustRemove(entity, sealed) { bucket.outbox.ready.append(key) }
    }

    /// Whether the server's object must be removed: after a tombstone by this client, or to be replaced by a new
    /// object.
    private static func mustRemove(_ entity: LocalEntity, _ sealed: SealedObject) -> Bool {
        guard entity.record.ghost.object != nil else { return false }
        if sealed.isReplacing { return true }
        guard sealed.log.object == nil, sealed.pending == nil else { return false }
        return sealed.needsRecreation || sealed.wasDeletedHere
    }

    /// Makes the next change of an object, stores it, and sends it.
    static func sendNew(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard entity.record.edits.pending == nil, entity.record.edits.wanted == nil, entity.record.edits.refusal == nil,
            var sealed = entity.sealed, sealed.problem == nil, !sealed.isStopped
        else { return }
        let changeID = turn.randomBytes(SealedValue.idBytes)
        guard let name = try? ChangeID(Hex.encode(changeID)) else { return }
        let edit: Edit
        if mustRemove(entity, sealed) {
            edit = .remove
        } else if entity.record.ghost.object == nil {
            guard let creation = try creation(&bucket, key, &sealed, &turn) else { return }
            edit = .modify(creation)
        } else {
            let nonce = turn.randomBytes(AEADSuite.nonceBytes)
            let sealer = try sealer(&bucket, key)
            guard let made = sealed.seal(changeID: changeID, nonce: nonce, with: sealer) else {
                // Nothing was left to send.
                return try keep(&bucket, key, sealed, &turn)
            }
            edit = .modify(SealedEntity.insertion(Base64.encodeURL(made.sealed)))
        }
        let pending = change(edit, of: key, entity.record, sealed, name)
        try send(&bucket, key, sealed, pending, &turn)
    }

    /// Makes a new incarnation from the object's draft; nil without a draft.
    private static func creation(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ sealed: inout SealedObject, _ turn: inout SyncTurn
    ) throws(ClientError) -> ObjectDiff? {
        guard let made = sealed.created(incarnation: turn.randomBytes(SealedLog.incarnationBytes)) else { return nil }
        sealed = made
        let id = turn.randomBytes(SealedValue.idBytes)
        let nonce = turn.randomBytes(AEADSuite.nonceBytes)
        let snapshot = sealed.sealedSnapshot(id: id, nonce: nonce, with: try sealer(&bucket, key))
        return SealedEntity.creation(Base64.encodeURL(snapshot))
    }

    /// The change to send for `edit`, already sealed, of an object in the state `record` that becomes `sealed`.
    private static func change(
        _ edit: Edit, of key: EntityKey, _ record: EntityRecord, _ sealed: SealedObject, _ changeID: ChangeID
    ) -> PendingChange {
        // A removal names its version, so that an edit in between prevails; a removal that precedes a recreation is
        // sent without a version after a refusal.
        let namesVersion = !(sealed.isReplacing && record.edits.attempts > 0)
        let source = record.ghost.object != nil && namesVersion ? record.ghost.version : nil
        // If it is refused because other changes came first, it is sent again on top of them; after that it is sent
        // like any other edit.
        let isWhole = sealed.pending?.isWhole == true && record.edits.attempts < SyncLimits.wholeAttemptsMax
        let bytes = Messages.change(
            key: key, changeID: changeID, edit: edit, source: source, whole: nil, isWhole: isWhole)
        return PendingChange(changeID: changeID, edit: edit == .remove ? .remove : nil, source: source, bytes: bytes)
    }

    /// Stores the change, and sends it.
    private static func send(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ sealed: SealedObject, _ pending: PendingChange,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        try keep(&bucket, key, sealed, &turn) { $0.edits.pending = pending }
        turn.sendsNewChange = true
        bucket.sendChange(key, pending.bytes, &turn)
    }

    /// Resends the pending change: the same sealed bytes under the same ccid, with the version that is known now.
    static func resend(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ pending: PendingChange, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard let sealed = entity.sealed, sealed.problem == nil, !sealed.isStopped else { return }
        // The requested state, or the part that cannot be read, may include the change.
        guard entity.record.edits.wanted == nil || pending.edit == .remove else { return }
        // A change that replaces the whole object names the version on which it was made: if it was not applied, it is
        // taken back.
        guard let operation = sealed.pending?.sealed, entity.record.ghost.version != pending.source,
            entity.record.ghost.object != nil, !pending.isWhole
        else { return bucket.sendChange(key, pending.bytes, &turn) }
        let source = entity.record.ghost.version
        let diff = SealedEntity.insertion(Base64.encodeURL(operation))
        let bytes = Messages.change(
            key: key, changeID: pending.changeID, edit: .modify(diff), source: source, whole: nil)
        let renewed = PendingChange(
            changeID: pending.changeID, edit: pending.edit, source: source, bytes: bytes,
            isConfirmed: pending.isConfirmed)
        try send(&bucket, key, sealed, renewed, &turn)
    }

    /// The server did not apply the object's change: 400 to 440.
    static func refused(_ bucket: inout BucketMachine, _ key: EntityKey, code: Int, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard let pending = entity.record.edits.pending, let sealed = entity.sealed else { return }
        let isRemoval = pending.edit == .remove
        let isCreation = !isRemoval && entity.record.ghost.object == nil
        // After an unreadable part the change waits unchanged; it is sent again when that part has been read.
        let isAcknowledged = code == ErrorCode.duplicateChange.rawValue || code == ErrorCode.emptyChange.rawValue
        guard !sealed.isStopped || isRemoval || isAcknowledged else { return }
        switch ErrorCode(rawValue: code) {
        case .emptyChange where isRemoval, .notFound where isRemoval: try isGone(&bucket, key, &turn)
        case .duplicateChange, .emptyChange:
            if isCreation, entity.record.edits.held != nil { return try confirmPending(&bucket, key, &turn) }
            try keep(&bucket, key, sealed, &turn) { $0.edits.pending?.isConfirmed = true }
            bucket.scan.isNeeded = true
        case .badVersion where isCreation: try madeByOthers(&bucket, key, &turn)
        case .badVersion
        where pending.isWhole && sealed.pending != nil && entity.record.ghost.version > pending.source ?? .max:
            try othersCameFirst(&bucket, key, &turn)
        case .notFound, .badVersion, .invalidDiff:
            guard entity.record.edits.attempts < SyncLimits.attemptsMax else {
                return try giveUp(&bucket, key, code: code, &turn)
            }
            try tryNewerVersion(&bucket, key, pending, &turn)
        case .tooLarge where sealed.pending != nil && isTailFull(entity): awaitCompaction(&bucket, key, &turn)
        default: try giveUp(&bucket, key, code: code, &turn)
        }
    }

    /// The change does not fit the server's version: it is sent again as a change of the version that is known then. A
    /// removal becomes a new change.
    private static func tryNewerVersion(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ refused: PendingChange, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        let isRemoval = refused.edit == .remove
        try keep(&bucket, key, entity.sealed, &turn) { record in
            record.edits.attempts += 1
            if isRemoval { record.edits.pending = nil }
        }
        // Nothing newer is known here: the index will show it.
        if entity.record.ghost.version == refused.source || refused.source == nil { bucket.scan.isNeeded = true }
        if isRemoval { queue(&bucket, key, &turn) } else { bucket.outbox.resend.append(key) }
    }

    /// The change fits after a device has compacted the object: this one does it at once.
    private static func awaitCompaction(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) {
        bucket.sealing?.compactions[key] = turn.now
        bucket.outbox.resend.append(key)
        bucket.outbox.pause(until: turn.now + bucket.retry.next(turn.random.next()))
    }

    /// 405 for an operation that replaces the whole object, with a newer version known: it was not applied, and other
    /// changes came before it. Its edit waits again, on top of theirs; where they have set the same values, nothing of
    /// it remains.
    private static func othersCameFirst(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        let events = sealed.refuse()
        try keep(&bucket, key, sealed, &turn) { record in
            record.edits.pending = nil
            record.edits.attempts += 1
        }
        queue(&bucket, key, &turn)
        try report(&bucket, key, before: entity.local, events, &turn)
    }

    private static func isTailFull(_ entity: LocalEntity) -> Bool {
        guard let tail = entity.record.ghost.object?["d"]?.arrayValue else { return false }
        let bytes = tail.reduce(0) { $0 + ($1.stringValue?.utf8.count ?? 0) }
        return tail.count > SealedLimits.windowPositions
            && (tail.count >= SealedLimits.tailOperationsMax || bytes * 2 >= SealedLimits.tailBytesMax)
    }

    /// The object whose removal was sent is gone: the message about that will arrive, or has arrived before.
    private static func isGone(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let version = try bucket.entity(key, &turn).record.ghost.version
        try jump(&bucket, key, to: Ghost(version: version, object: nil), &turn)
    }

    /// 405 for a creation: the object exists already. The content to be created is applied on top of it.
    private static func madeByOthers(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard let held = entity.record.edits.held else {
            bucket.scan.isNeeded = true
            bucket.outbox.resend.append(key)
            return
        }
        if try isOurs(&bucket, held, entity, key) { return try confirmPending(&bucket, key, &turn) }
        var sealed = entity.sealed
        sealed?.notCreated()
        try keep(&bucket, key, sealed, &turn) { ($0.edits.pending, $0.edits.held) = (nil, nil) }
        try jump(&bucket, key, to: held, &turn)
    }

    /// Whether the server's state is the creation that was sent: it was accepted, the answer was lost, and the server
    /// no longer remembers it. Later edits by others must not give way to what was sent.
    private static func isOurs(_ bucket: inout BucketMachine, _ held: Ghost, _ entity: LocalEntity, _ key: EntityKey)
        throws(ClientError) -> Bool
    {
        let sealer = try sealer(&bucket, key)
        guard let sealed = entity.sealed, let object = held.object,
            let shown = try? SealedEntity(object),
            let opened = try? SealedObject.open(
                shown, author: sealed.author, place: sealed.log.place, with: sealer)
        else { return false }
        return opened.object.log.incarnation == sealed.log.incarnation
    }

    /// Sending the same change again would fail again: it is kept and reported; the next edit of the object tries
    /// again.
    private static func giveUp(_ bucket: inout BucketMachine, _ key: EntityKey, code: Int, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        if entity.record.ghost.object == nil, let held = entity.record.edits.held,
            try isOurs(&bucket, held, entity, key)
        {
            return try confirmPending(&bucket, key, &turn)
        }
        var events = [SealedEvent]()
        if sealed.pending != nil {
            events = sealed.refuse()
        } else if entity.record.ghost.object == nil {
            sealed.notCreated()
        }
        try keep(&bucket, key, sealed, &turn) { $0.edits.pending = nil }
        try report(&bucket, key, before: entity.local, events, &turn)
        if let held = entity.record.edits.held, sealed.problem == nil { try jump(&bucket, key, to: held, &turn) }
        try bucket.stall(key, code: code, &turn)
    }
}
