internal import ThicketCrypto
import ThicketProtocol
import ThicketSealed

/// Edits of a sealed bucket on their way to the server, and what it answers.
extension SyncMachine {
    /// There is something to send for the object.
    mutating func queueSealed(_ number: Int, _ key: EntityKey) {
        guard let entity = cache[address(number, key)], let sealed = entity.sealed,
            entity.record.edits.pending == nil, entity.record.edits.refusal == nil, sealed.problem == nil
        else { return }
        if sealed.hasEdits || mustRemove(entity, sealed) { channels[number].ready.append(key) }
    }

    /// The server's object is to be removed: behind a tombstone of ours, or because another is to be made in its place.
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

    /// Makes the next change of an object, keeps it, sends it.
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
                // Nothing was left to do.
                entity.sealed = sealed
                return putSealed(number, key, entity)
            }
            diff = SealedEntity.insertion(Base64.encodeURL(made.sealed))
        }
        let edit: Edit = diff.map { .modify($0) } ?? .remove
        // A removal names its version, so that an edit in between wins; one that makes room for mine goes without after
        // a refusal.
        let namesVersion = !(sealed.isReplacing && entity.record.edits.attempts > 0)
        let source = entity.record.ghost.object != nil && namesVersion ? entity.record.ghost.version : nil
        // Refused because others came first, it goes out once more on what they did; after that as any other.
        let isWhole =
            sealed.pending?.isWhole == true && entity.record.edits.attempts < SyncLimits.wholeAttemptsMax
        let bytes = Messages.change(
            key: key, changeID: name, edit: edit, source: source, whole: nil, isWhole: isWhole)
        entity.sealed = sealed
        entity.record.edits.pending = PendingChange(
            changeID: name, edit: diff == nil ? .remove : nil, source: source, bytes: bytes)
        putSealed(number, key, entity)
        sendsNewChange = true
        launch(number, key, bytes)
    }

    /// The pending change once more: the same sealed bytes under the same ccid, with the version that is known now.
    mutating func resendSealed(_ number: Int, _ key: EntityKey, _ pending: PendingChange) throws(ClientError) {
        var entity = try entity(number, key)
        guard let sealed = entity.sealed, sealed.problem == nil, !sealed.isStopped else { return }
        // It may be in the state that was asked for, or behind what is not understood.
        guard entity.record.edits.wanted == nil || pending.edit == .remove else { return }
        // One that sets the object as a whole names the version that it was made on: if it is not in, it is taken back.
        guard let operation = sealed.pending?.sealed, entity.record.ghost.version != pending.source,
            entity.record.ghost.object != nil, !pending.isWhole
        else { return launch(number, key, pending.bytes) }
        let source = entity.record.ghost.version
        let diff = SealedEntity.insertion(Base64.encodeURL(operation))
        let bytes = Messages.change(
            key: key, changeID: pending.changeID, edit: .modify(diff), source: source, whole: nil)
        entity.record.edits.pending = PendingChange(
            changeID: pending.changeID, edit: pending.edit, source: source, bytes: bytes,
            isConfirmed: pending.isConfirmed)
        putSealed(number, key, entity)
        sendsNewChange = true
        launch(number, key, bytes)
    }

    /// The server did not apply the object's change: 400 to 440.
    mutating func refusedSealed(_ number: Int, _ key: EntityKey, code: Int) throws(ClientError) {
        var entity = try entity(number, key)
        guard let pending = entity.record.edits.pending, let sealed = entity.sealed else {
            return
        }
        let isRemoval = pending.edit == .remove
        let isCreation = !isRemoval && entity.record.ghost.object == nil
        // Behind what cannot be read it waits as it is; it goes out once more when that is read on.
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
            // Nothing newer is known here: the index tells.
            if entity.record.ghost.version == pending.source || pending.source == nil {
                channels[number].needsWalk = true
            }
            if isRemoval { queueSealed(number, key) } else { channels[number].resend.append(key) }
        case .tooLarge where sealed.pending != nil && isTailFull(entity):
            // There is room once somebody has compacted.
            channels[number].sealing?.compactions[key] = now
            channels[number].resend.append(key)
            channels[number].sendAt = max(
                channels[number].sendAt ?? 0, now + channels[number].retry.next(random.next()))
        default: try giveUpSealed(number, key, code: code)
        }
    }

    /// 405 for an operation that sets the object as a whole, and a newer version is known: it is not in, and others
    /// came before it. Its edit waits again, on top of theirs; where they have set the same, nothing is left of it.
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

    /// The object whose removal was sent is gone: its message is on its way, or came before.
    private mutating func isGone(_ number: Int, _ key: EntityKey) throws(ClientError) {
        let version = try entity(number, key).record.ghost.version
        try jumpSealed(number, key, to: Ghost(version: version, object: nil))
    }

    /// 405 for a creation: there is one. What was to be made goes on top of it.
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

    /// Whether what the server shows is the very creation that was sent: it was taken, the answer was lost, and the
    /// server does not know any more that it did. What others have typed into it since is not to give way to what was
    /// sent.
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

    /// Nothing sent again as it is will be taken: kept here and told; the next edit of the object tries again.
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
