internal import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// Tasks that devices of a sealed bucket do for each other: snapshots, and the object `heads`.
enum SealedUpkeep {
    /// The log of an object has advanced.
    static func wentOn(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ sealed: SealedObject, isOwn: Bool, tail: Int,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        guard sealed.problem == nil, !sealed.isStopped, sealed.log.object != nil else { return }
        guard key == bucket.sealing?.headsKey else {
            return grew(&bucket, key, ownPosition: isOwn ? sealed.log.position : nil, tail: tail, &turn)
        }
        planCompaction(&bucket, key, ownPosition: isOwn ? sealed.log.position : nil, tail: tail, &turn)
        try lookAtHeads(&bucket, sealed, &turn)
    }

    /// As above, for an existing object without problems, other than `heads`.
    static func grew(
        _ bucket: inout BucketMachine, _ key: EntityKey, ownPosition: Int?, tail: Int, _ turn: inout SyncTurn
    ) {
        planCompaction(&bucket, key, ownPosition: ownPosition, tail: tail, &turn)
        includeInHeads(&bucket, key, &turn)
    }

    // In place, for the reason given at `Sealing.keptSealer`: the first scan calls this for each object.
    private static func planCompaction(
        _ bucket: inout BucketMachine, _ key: EntityKey, ownPosition: Int?, tail: Int, _ turn: inout SyncTurn
    ) {
        bucket.sealing?.planCompaction(key, ownPosition: ownPosition, tail: tail, now: turn.now, &turn.random)
    }

    /// Includes the object in the next write of `heads`.
    private static func includeInHeads(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) {
        bucket.sealing?.includeInHeads(key, now: turn.now, &turn.random)
    }

    /// Does what is due, on a live channel.
    static func pump(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        guard let sealing = bucket.sealing, let due = sealing.due, due <= turn.now else { return }
        for (key, time) in sealing.compactions.sorted(by: { $0.key < $1.key }) where time <= turn.now {
            bucket.sealing?.compactions[key] = nil
            try compact(&bucket, key, &turn)
        }
        if let time = sealing.headsDue, time <= turn.now { try publishHeads(&bucket, &turn) }
    }

    /// Sends a snapshot of what this device has read. It is not stored: if it is lost, another device sends one.
    private static func compact(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard bucket.sealing?.compacting[key] == nil, let sealed = entity.sealed,
            sealed.problem == nil, !sealed.isStopped, entity.record.edits.held == nil,
            let ghost = entity.record.ghost.object, let known = try? SealedEntity(ghost)
        else { return }
        let id = hexBytes(&turn)
        let nonce = Array(hexBytes(&turn).prefix(AEADSuite.nonceBytes))
        let snapshot = sealed.sealedSnapshot(id: id, nonce: nonce, with: try SealedRules.sealer(&bucket, key))
        guard let diff = known.compaction(Base64.encodeURL(snapshot), at: sealed.log.position),
            let changeID = try? ChangeID(Hex.encode(hexBytes(&turn)))
        else { return }
        let bytes = Messages.change(
            key: key, changeID: changeID, edit: .modify(diff), source: entity.record.ghost.version, whole: nil)
        bucket.sealing?.compacting[key] = changeID.text
        turn.send(Messages.onChannel(bucket.number, "c:", bytes))
    }

    private static func hexBytes(_ turn: inout SyncTurn) -> [UInt8] {
        let (high, low) = (turn.random.next(), turn.random.next())
        return (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64($0 % 8 * 8)) }
    }

    /// A compaction was refused: another device was faster, or it is tried again later.
    ///
    /// - Returns: whether the answer concerns a compaction.
    static func refused(
        _ bucket: inout BucketMachine, _ key: EntityKey, code: Int, changeIDs: [String], _ turn: inout SyncTurn
    ) -> Bool {
        guard let sent = bucket.sealing?.compacting[key],
            changeIDs.contains(where: { $0.utf8.elementsEqual(sent.utf8) })
        else { return false }
        bucket.sealing?.compacting[key] = nil
        if code >= 500 {
            bucket.sealing?.compactions[key] = turn.now + Sealing.compactionWaitMilliseconds
        }
        return true
    }

    /// Writes what this device has seen into the object `heads`.
    private static func publishHeads(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        bucket.sealing?.headsDue = nil
        guard let key = bucket.sealing?.headsKey,
            let changed = bucket.sealing?.changed.takeAll(), !changed.isEmpty
        else { return }
        bucket.sealing?.headsDue = turn.now + SealedHeads.intervalSeconds * 1_000
        let heads = try bucket.entity(key, &turn)
        guard heads.sealed?.problem == nil, heads.sealed?.isStopped == false else { return }
        let content = heads.sealed?.object ?? JSONObject()
        var logs = [SealedLog]()
        var removed = [(key: String, operation: Operation)]()
        for key in changed.sorted() {
            guard let sealed = try bucket.entity(key, &turn).sealed, sealed.problem == nil else { continue }
            if sealed.log.object != nil {
                logs.append(sealed.log)
            } else if !sealed.isStopped, content.contains(key.text) {
                removed.append((key: key.text, operation: .remove))
            }
        }
        let headsEdit = SealedHeads.edit(of: content, for: logs)
        let diff = ObjectDiff(headsEdit.operations + removed)
        guard !diff.isEmpty else { return }
        try SealedRules.append(&bucket, .modify(diff), key, name: SealedHeads.appKey, &turn)
    }

    /// The user has taken the server's state of an object: other devices, and this one after a restart, need not be
    /// told of the other history again.
    ///
    /// Only after reading everything that the server has is it certain that something was left out: before that, the
    /// taken state may merely be older than what other devices have seen of the same history. So the correction waits
    /// until then.
    static func correctHeads(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard bucket.phase == .live, entity.record.edits.wanted == nil else {
            bucket.sealing?.corrections.insert(key)
            return
        }
        guard let headsKey = bucket.sealing?.headsKey, key != headsKey,
            let log = entity.sealed?.log, log.object != nil,
            let content = try writableHeads(&bucket, headsKey, &turn),
            let diff = SealedHeads.correction(of: content, for: log)
        else { return }
        try SealedRules.append(&bucket, .modify(diff), headsKey, name: SealedHeads.appKey, &turn)
    }

    /// Corrects `heads` for objects whose state was taken before everything had been read.
    private static func correctHeadsNow(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        guard let waiting = bucket.sealing?.corrections.takeAll() else { return }
        for key in waiting.sorted() {
            // Read-only again: the user has to choose again.
            guard try bucket.entity(key, &turn).sealed?.problem == nil else { continue }
            try correctHeads(&bucket, key, &turn)
        }
    }

    /// The app removes an object: its entry in `heads` is deleted before the object disappears from the server.
    /// Otherwise a device that was offline meanwhile would report an object as hidden that was honestly removed.
    static func forgetInHeads(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        guard let headsKey = bucket.sealing?.headsKey, key != headsKey,
            try writableHeads(&bucket, headsKey, &turn)?.contains(key.text) == true
        else { return }
        let diff = ObjectDiff([(key: key.text, operation: .remove)])
        try SealedRules.append(&bucket, .modify(diff), headsKey, name: SealedHeads.appKey, &turn)
    }

    /// The content of `heads`, if it may be written.
    private static func writableHeads(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError) -> JSONObject?
    {
        guard let heads = try bucket.entity(key, &turn).sealed, heads.problem == nil, !heads.isStopped else {
            return nil
        }
        return heads.object
    }

    /// Everything the server has was read: compares it with what other devices have seen.
    static func caughtUp(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        guard let key = bucket.sealing?.headsKey else { return }
        try SealedRules.readOn(&bucket, &turn)
        try correctHeadsNow(&bucket, &turn)
        if let sealed = try bucket.entity(key, &turn).sealed { try lookAtHeads(&bucket, sealed, &turn) }
    }

    /// Compares what other devices have seen with the local objects.
    private static func lookAtHeads(_ bucket: inout BucketMachine, _ heads: SealedObject, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        guard bucket.phase == .live, let content = heads.object else { return }
        let seen = bucket.sealing?.headsSeen
        var fresh: JSONObject = [:]
        for (key, value) in content.pairs where seen?[key] != value { fresh[key] = value }
        var logs = [String: SealedLog]()
        var isSilent = Set<String>()
        for key in fresh.keys {
            // A text that is not a valid key cannot name an object.
            guard let wire = try? EntityKey(key) else { continue }
            let entity = try bucket.entity(wire, &turn)
            guard let sealed = entity.sealed else { continue }
            if entity.record.ghost.object != nil, entity.record.edits.wanted == nil, sealed.problem == nil,
                !sealed.isStopped
            {
                logs[key] = sealed.log
                if SealedHeads.isBehind(content, sealed.log) { includeInHeads(&bucket, wire, &turn) }
            } else if entity.record.ghost != Ghost() || seen == nil || !entity.record.edits.isEmpty {
                // Removed, about to arrive, or already reported; or from before this copy existed, when it may have
                // been removed.
                isSilent.insert(key)
            }
        }
        let found = SealedHeads.findings(
            in: fresh, log: { logs[$0] }, isDeleted: { isSilent.contains($0) })
        for finding in found { try report(&bucket, finding, &turn) }
        // Set only now, so that what could not be compared is compared again.
        bucket.sealing?.headsSeen = content
    }

    private static func report(_ bucket: inout BucketMachine, _ finding: SealedHeads.Finding, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        guard let key = try? EntityKey(finding.serverKey) else { return }
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        let events = sealed.report(finding.integrity)
        // An object that never existed here cannot be chosen.
        if entity.record.ghost.object != nil {
            try SealedRules.keep(&bucket, key, sealed, &turn)
            // The server's current state must be available for the user's choice.
            try bucket.want(key, entity.record.ghost.version, &turn)
        }
        try SealedRules.report(&bucket, key, before: entity.local, events, &turn)
    }
}
