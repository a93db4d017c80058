internal import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// Tasks that devices of a sealed bucket do for each other: snapshots, and the object `heads`.
extension SyncMachine {
    /// The log of an object has advanced.
    mutating func wentOn(
        _ number: Int, _ key: EntityKey, _ sealed: SealedObject, isOwn: Bool, tail: Int
    ) throws(ClientError) {
        guard sealed.problem == nil, !sealed.isStopped, sealed.log.object != nil else { return }
        guard key == channels[number].sealing?.headsKey else {
            return grew(number, key, ownPosition: isOwn ? sealed.log.position : nil, tail: tail)
        }
        planCompaction(number, key, ownPosition: isOwn ? sealed.log.position : nil, tail: tail)
        try lookAtHeads(number, sealed)
    }

    /// As above, for an existing object without problems, other than `heads`.
    mutating func grew(_ number: Int, _ key: EntityKey, ownPosition: Int?, tail: Int) {
        planCompaction(number, key, ownPosition: ownPosition, tail: tail)
        noteForHeads(number, key)
    }

    // In place, for the reason given at `Sealing.keptSealer`: the first scan calls this for each object.
    private mutating func planCompaction(_ number: Int, _ key: EntityKey, ownPosition: Int?, tail: Int) {
        channels[number].sealing?.planCompaction(key, ownPosition: ownPosition, tail: tail, now: now, &random)
    }

    /// Includes the object in the next write of `heads`.
    private mutating func noteForHeads(_ number: Int, _ key: EntityKey) {
        channels[number].sealing?.noteForHeads(key, now: now, &random)
    }

    /// Does what is due, on a live channel.
    mutating func pumpSealed(_ number: Int) throws(ClientError) {
        guard let sealing = channels[number].sealing, let due = sealing.due, due <= now else { return }
        for (key, time) in sealing.compactions.sorted(by: { $0.key < $1.key }) where time <= now {
            channels[number].sealing?.compactions[key] = nil
            try compact(number, key)
        }
        if let time = sealing.headsDue, time <= now { try publishHeads(number) }
    }

    /// Sends a snapshot of what this device has read. It is not stored: if it is lost, another device sends one.
    private mutating func compact(_ number: Int, _ key: EntityKey) throws(ClientError) {
        let entity = try entity(number, key)
        guard channels[number].sealing?.compacting[key] == nil, let sealed = entity.sealed,
            sealed.problem == nil, !sealed.isStopped, entity.record.edits.held == nil,
            let ghost = entity.record.ghost.object, let known = try? SealedEntity(ghost)
        else { return }
        let id = hexBytes()
        let nonce = Array(hexBytes().prefix(AEADSuite.nonceBytes))
        let snapshot = sealed.sealedSnapshot(id: id, nonce: nonce, with: try sealer(number, key))
        guard let diff = known.compaction(Base64.encodeURL(snapshot), at: sealed.log.position),
            let changeID = try? ChangeID(Hex.encode(hexBytes()))
        else { return }
        let bytes = Messages.change(
            key: key, changeID: changeID, edit: .modify(diff), source: entity.record.ghost.version, whole: nil)
        channels[number].sealing?.compacting[key] = changeID.text
        send(Messages.onChannel(number, "c:", bytes))
    }

    private mutating func hexBytes() -> [UInt8] {
        let (high, low) = (random.next(), random.next())
        return (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64($0 % 8 * 8)) }
    }

    /// A compaction was refused: another device was faster, or it is tried again later.
    ///
    /// - Returns: whether the answer concerns a compaction.
    mutating func compactionRefused(_ number: Int, _ key: EntityKey, code: Int, changeIDs: [String]) -> Bool {
        guard let sent = channels[number].sealing?.compacting[key],
            changeIDs.contains(where: { $0.utf8.elementsEqual(sent.utf8) })
        else { return false }
        channels[number].sealing?.compacting[key] = nil
        if code >= 500 {
            channels[number].sealing?.compactions[key] = now + Sealing.compactionWaitMilliseconds
        }
        return true
    }

    // MARK: - Heads

    /// Writes what this device has seen into the object `heads`.
    private mutating func publishHeads(_ number: Int) throws(ClientError) {
        channels[number].sealing?.headsDue = nil
        guard let key = channels[number].sealing?.headsKey,
            let changed = channels[number].sealing?.changed.takeAll(), !changed.isEmpty
        else { return }
        channels[number].sealing?.headsDue = now + SealedHeads.intervalSeconds * 1_000
        let heads = try entity(number, key)
        guard heads.sealed?.problem == nil, heads.sealed?.isStopped == false else { return }
        let content = heads.sealed?.object ?? JSONObject()
        var logs = [SealedLog]()
        var removed = [(key: String, operation: Operation)]()
        for key in changed.sorted() {
            guard let sealed = try entity(number, key).sealed, sealed.problem == nil else { continue }
            if sealed.log.object != nil {
                logs.append(sealed.log)
            } else if !sealed.isStopped, content.contains(key.text) {
                removed.append((key: key.text, operation: .remove))
            }
        }
        let told = SealedHeads.edit(of: content, for: logs)
        let diff = ObjectDiff(told.operations + removed)
        guard !diff.isEmpty else { return }
        try addSealed(.modify(diff), to: number, key, name: SealedHeads.appKey)
    }

    /// The user has taken the server's state of an object: other devices, and this one after a restart, need not be
    /// told of the other history again.
    ///
    /// Only after reading everything that the server has is it certain that something was left out: before that, the
    /// taken state may merely be older than what other devices have seen of the same history. So the correction waits
    /// until then.
    mutating func correctHeads(_ number: Int, _ key: EntityKey) throws(ClientError) {
        let entity = try entity(number, key)
        guard channels[number].phase == .live, entity.record.edits.wanted == nil else {
            channels[number].sealing?.corrections.insert(key)
            return
        }
        guard let headsKey = channels[number].sealing?.headsKey, key != headsKey,
            let log = entity.sealed?.log, log.object != nil,
            let content = try writableHeads(number, headsKey),
            let diff = SealedHeads.correction(of: content, for: log)
        else { return }
        try addSealed(.modify(diff), to: number, headsKey, name: SealedHeads.appKey)
    }

    /// Corrects `heads` for objects whose state was taken before everything had been read.
    private mutating func correctHeadsNow(_ number: Int) throws(ClientError) {
        guard let waiting = channels[number].sealing?.corrections.takeAll() else { return }
        for key in waiting.sorted() {
            // Read-only again: the user has to choose again.
            guard try entity(number, key).sealed?.problem == nil else { continue }
            try correctHeads(number, key)
        }
    }

    /// The app removes an object: its entry in `heads` is deleted before the object disappears from the server.
    /// Otherwise a device that was offline meanwhile would report an object as hidden that was honestly removed.
    mutating func forgetInHeads(_ number: Int, _ key: EntityKey) throws(ClientError) {
        guard let headsKey = channels[number].sealing?.headsKey, key != headsKey,
            try writableHeads(number, headsKey)?.contains(key.text) == true
        else { return }
        let diff = ObjectDiff([(key: key.text, operation: .remove)])
        try addSealed(.modify(diff), to: number, headsKey, name: SealedHeads.appKey)
    }

    /// The content of `heads`, if it may be written.
    private mutating func writableHeads(_ number: Int, _ key: EntityKey) throws(ClientError) -> JSONObject? {
        guard let heads = try entity(number, key).sealed, heads.problem == nil, !heads.isStopped else {
            return nil
        }
        return heads.object
    }

    /// Everything the server has was read: compares it with what other devices have seen.
    mutating func sealedCaughtUp(_ number: Int) throws(ClientError) {
        guard let key = channels[number].sealing?.headsKey else { return }
        try readOn(number)
        try correctHeadsNow(number)
        if let sealed = try entity(number, key).sealed { try lookAtHeads(number, sealed) }
    }

    /// Compares what other devices have seen with the local objects.
    private mutating func lookAtHeads(_ number: Int, _ heads: SealedObject) throws(ClientError) {
        guard channels[number].phase == .live, let content = heads.object else { return }
        let seen = channels[number].sealing?.headsSeen
        var fresh: JSONObject = [:]
        for (key, value) in content.pairs where seen?[key] != value { fresh[key] = value }
        var logs = [String: SealedLog]()
        var isSilent = Set<String>()
        for key in fresh.keys {
            // A text that is not a valid key cannot name an object.
            guard let wire = try? EntityKey(key) else { continue }
            let entity = try entity(number, wire)
            guard let sealed = entity.sealed else { continue }
            if entity.record.ghost.object != nil, entity.record.edits.wanted == nil, sealed.problem == nil,
                !sealed.isStopped
            {
                logs[key] = sealed.log
                if SealedHeads.isBehind(content, sealed.log) { noteForHeads(number, wire) }
            } else if entity.record.ghost != Ghost() || seen == nil || !entity.record.edits.isEmpty {
                // Removed, about to arrive, or already reported; or from before this copy existed, when it may have
                // been removed.
                isSilent.insert(key)
            }
        }
        let found = SealedHeads.findings(
            in: fresh, log: { logs[$0] }, isDeleted: { isSilent.contains($0) })
        for finding in found { try report(finding, number) }
        // Set only now, so that what could not be compared is compared again.
        channels[number].sealing?.headsSeen = content
    }

    private mutating func report(_ finding: SealedHeads.Finding, _ number: Int) throws(ClientError) {
        guard let key = try? EntityKey(finding.serverKey) else { return }
        var entity = try entity(number, key)
        guard var sealed = entity.sealed else { return }
        let before = entity.local
        let events = sealed.report(finding.integrity)
        // An object that never existed here cannot be chosen.
        if entity.record.ghost.object != nil {
            entity.sealed = sealed
            putSealed(number, key, entity)
            // The server's current state must be available for the user's choice.
            try want(number, key, entity.record.ghost.version)
        }
        try tellSealed(number, key, before: before, events)
    }
}
