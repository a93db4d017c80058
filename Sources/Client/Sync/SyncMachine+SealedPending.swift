internal import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// Edits of a sealed bucket on their way to the server, and the server's answers.
extension SyncMachine {
    /// Queues the object if it has something to send.
    mutating func queueSealed(_ number: Int, _ key: EntityKey) {
        guard let entity = cache[address(number, key)], let sealed = entity.sealed,
            entity.record.edits.pending == nil, entity.record.edits.refusal == nil, sealed.problem == nil
        else { return }
        if sealed.hasEdits || mustRemove(entity, sealed) { channels[number].ready.append(key) }
    }

    /// Whether the server's object must be removed: after a tombstone by this client, or to be replaced by a new
    /// object.
    private func mustRemove(_ entity: Entity, _ sealed: SealedObject) -> Bool {
        guard entity.record.ghost.object != nil else { return false }
        if sealed.isReplacing { return true }
        guard sealed.log.object == nil, sealed.pending == nil else { return false }
        return sealed.needsRecreation || sealed.wasDeletedHere
    }

    private mutating func randomBytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8]()
        while bytes.count < count {
            var word = random.next()
            for _ in 0..<8 {
                bytes.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        return Array(bytes.prefix(count))
    }

    /// Makes the next change of an object, stores it, and sends it.
    mutating func sendSealed(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        guard entity.record.edits.pending == nil, entity.record.edits.wanted == nil, entity.record.edits.refusal == nil,
            var sealed = entity.sealed, sealed.problem == nil, !sealed.isStopped
        else { return }
        let changeID = randomBytes(SealedValue.idBytes)
        guard let name = try? ChangeID(Hex.encode(changeID)) else { return }
        let diff: ObjectDiff?
        if mustRemove(entity, sealed) {
            diff = nil
        } else if entity.record.ghost.object == nil {
            guard let made = sealed.created(incarnation: randomBytes(SealedLog.incarnationBytes)) else {
                return
            }
            sealed = made
            let id = randomBytes(SealedValue.idBytes)
            let nonce = randomBytes(AEADSuite.nonceBytes)
            let snapshot = sealed.sealedSnapshot(id: id, nonce: nonce, with: try sealer(number, key))
            diff = SealedEntity.creation(Base64.encodeURL(snapshot))
        } else {
            let nonce = randomBytes(AEADSuite.nonceBytes)
            let sealer = try sealer(number, key)
            guard let made = sealed.seal(changeID: changeID, nonce: nonce, with: sealer) else {
                // Nothing was left to send.
                entity.sealed = sealed
                return putSealed(number, key, entity)
            }
            diff = SealedEntity.insertion(Base64.encodeURL(made.sealed))
        }
        let edit: Edit = diff.map { .modify($0) } ?? .remove
        // A removal names its version, so that an edit in between prevails; a removal that precedes a recreation is
        // sent without a version after a refusal.
        let namesVersion = !(sealed.isReplacing && entity.record.edits.attempts > 0)
        let source = entity.record.ghost.object != nil && namesVersion ? entity.record.ghost.version : nil
        // If it is refused because other changes came first, it is sent again on top of them; after that it is sent
        // like any other edit.
        let isWhole =
            sealed.pending?.isWhole == true && entity.record.edits.attempts < SyncLimits.wholeAttemptsMax
        let bytes = Messages.change(
            key: key, changeID: name, edit: edit, source: source, whole: nil, isWhole: isWhole)
        entity.sealed = sealed
        entity.record.edits.pending = PendingChange(
            changeID: name, edit: diff == nil ? .remove : nil, source: source, bytes: bytes)
        putSealed(number, key, entity)
        sendsNewChange = true
        sendChange(number, key, bytes)
    }

    /// Resends the pending change: the same sealed bytes under the same ccid, with the version that is known now.
    mutating func resendSealed(_ number: Int, _ key: EntityKey, _ pending: PendingChange) throws(ClientError) {
        var entity = try entity(number, key)
        guard let sealed = entity.sealed, sealed.problem == nil, !sealed.isStopped else { return }
        // The requested state, or the part that cannot be read, may include the change.
        guard entity.record.edits.wanted == nil || pending.edit == .remove else { return }
        // A change that replaces the whole object names the version on which it was made: if it was not applied, it is
        // taken back.
        guard let operation = sealed.pending?.sealed, entity.record.ghost.version != pending.source,
            entity.record.ghost.object != nil, !pending.isWhole
        else { return sendChange(number, key, pending.bytes) }
        let source = entity.record.ghost.version
        let diff = SealedEntity.insertion(Base64.encodeURL(operation))
        let bytes = Messages.change(
            key: key, changeID: pending.changeID, edit: .modify(diff), source: source, whole: nil)
        entity.record.edits.pending = PendingChange(
            changeID: pending.changeID, edit: pending.edit, source: source, bytes: bytes,
            isConfirmed: pending.isConfirmed)
        putSealed(number, key, entity)
        sendsNewChange = true
        sendChange(number, key, bytes)
    }

    /// The server did not apply the object's change: 400 to 440.
    mutating func refusedSealed(_ number: Int, _ key: EntityKey, code: Int) throws(ClientError) {
        var entity = try entity(number, key)
        guard let pending = entity.record.edits.pending, let sealed = entity.sealed else {
            return
        }
        let isRemoval = pending.edit == .remove
        let isCreation = !isRemoval && entity.record.ghost.object == nil
        // After an unreadable part the change waits unchanged; it is sent again when that part has been read.
        let isTaken = code == ErrorCode.duplicateChange.rawValue || code == ErrorCode.emptyChange.rawValue
        guard !sealed.isStopped || isRemoval || isTaken else { return }
        switch ErrorCode(rawValue: code) {
        case .duplicateChange, .emptyChange:
            if isRemoval, code == ErrorCode.emptyChange.rawValue { return try isGone(number, key) }
            if isCreation, entity.record.edits.held != nil { return try settleSealed(number, key) }
            entity.record.edits.pending?.isConfirmed = true
            putSealed(number, key, entity)
            channels[number].needsWalk = true
        case .notFound where isRemoval: try isGone(number, key)
        case .badVersion where isCreation: try madeByOthers(number, key)
        case .badVersion
        where pending.isWhole && sealed.pending != nil && entity.record.ghost.version > pending.source ?? .max:
            try othersCameFirst(number, key)
        case .notFound, .badVersion, .invalidDiff:
            entity.record.edits.attempts += 1
            guard entity.record.edits.attempts <= SyncLimits.attemptsMax else {
                return try giveUpSealed(number, key, code: code)
            }
            if isRemoval { entity.record.edits.pending = nil }
            putSealed(number, key, entity)
            // Nothing newer is known here: the index will show it.
            if entity.record.ghost.version == pending.source || pending.source == nil {
                channels[number].needsWalk = true
            }
            if isRemoval { queueSealed(number, key) } else { channels[number].resend.append(key) }
        case .tooLarge where sealed.pending != nil && isTailFull(entity):
            // The change fits after a device has compacted the object.
            channels[number].sealing?.compactions[key] = now
            channels[number].resend.append(key)
            channels[number].sendAt = max(
                channels[number].sendAt ?? 0, now + channels[number].retry.next(random.next()))
        default: try giveUpSealed(number, key, code: code)
        }
    }

    /// 405 for an operation that replaces the whole object, with a newer version known: it was not applied, and other
    /// changes came before it. Its edit waits again, on top of theirs; where they have set the same values, nothing of
    /// it remains.
    private mutating func othersCameFirst(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed else { return }
        let before = entity.local
        let events = sealed.refuse()
        entity.sealed = sealed
        entity.record.edits.pending = nil
        entity.record.edits.attempts += 1
        putSealed(number, key, entity)
        queueSealed(number, key)
        try tellSealed(number, key, before: before, events)
    }

    private func isTailFull(_ entity: Entity) -> Bool {
        guard let tail = entity.record.ghost.object?["d"]?.arrayValue else { return false }
        let bytes = tail.reduce(0) { $0 + ($1.stringValue?.utf8.count ?? 0) }
        return tail.count > SealedLimits.windowPositions
            && (tail.count >= SealedLimits.tailOperationsMax || bytes * 2 >= SealedLimits.tailBytesMax)
    }

    /// The object whose removal was sent is gone: the message about that will arrive, or has arrived before.
    private mutating func isGone(_ number: Int, _ key: EntityKey) throws(ClientError) {
        let version = try entity(number, key).record.ghost.version
        try jumpSealed(number, key, to: Ghost(version: version, object: nil))
    }

    /// 405 for a creation: the object exists already. The content to be created is applied on top of it.
    private mutating func madeByOthers(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        guard let held = entity.record.edits.held else {
            channels[number].needsWalk = true
            channels[number].resend.append(key)
            return
        }
        if try isOurs(held, entity, key, on: number) { return try settleSealed(number, key) }
        entity.sealed?.notCreated()
        entity.record.edits.pending = nil
        entity.record.edits.held = nil
        putSealed(number, key, entity)
        try jumpSealed(number, key, to: held)
    }

    /// Whether the server's state is the creation that was sent: it was accepted, the answer was lost, and the server
    /// no longer remembers it. Later edits by others must not give way to what was sent.
    private mutating func isOurs(
        _ held: Ghost, _ entity: Entity, _ key: EntityKey, on number: Int
    ) throws(ClientError) -> Bool {
        let sealer = try sealer(number, key)
        guard let sealed = entity.sealed, let object = held.object,
            let shown = try? SealedEntity(object),
            let opened = try? SealedObject.open(
                shown, author: sealed.author, place: sealed.log.place, with: sealer)
        else { return false }
        return opened.object.log.incarnation == sealed.log.incarnation
    }

    /// Sending the same change again would fail again: it is kept and reported; the next edit of the object tries
    /// again.
    private mutating func giveUpSealed(_ number: Int, _ key: EntityKey, code: Int) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed else { return }
        if entity.record.ghost.object == nil, let held = entity.record.edits.held,
            try isOurs(held, entity, key, on: number)
        {
            return try settleSealed(number, key)
        }
        let before = entity.local
        var events = [SealedEvent]()
        if sealed.pending != nil {
            events = sealed.refuse()
        } else if entity.record.ghost.object == nil {
            sealed.notCreated()
        }
        entity.record.edits.pending = nil
        let held = entity.record.edits.held
        entity.sealed = sealed
        putSealed(number, key, entity)
        try tellSealed(number, key, before: before, events)
        if let held, sealed.problem == nil { try jumpSealed(number, key, to: held) }
        try stall(number, key, code: code)
    }
}
