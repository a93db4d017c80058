package import ThicketProtocol
import ThicketSealed

/// Refused edits: the list of them, and the ways out (docs/decisions/0084).
extension SyncMachine {
    /// The bucket's edits that the server refused, in the order of the server's keys: those refused for good, and, on a
    /// connection whose token permits no changes, all others that the server does not have. A sealed bucket need not be
    /// unlocked.
    package func refusals(_ bucket: BucketName) throws(ClientError) -> [RefusedEdit] {
        guard let number = channelNumbers[bucket] else { return [] }
        let channel = channels[number]
        guard channel.isReadOnly || channel.refusedEdits > 0 else { return [] }
        var found = [RefusedEdit]()
        for key in channel.edited.sorted() where channel.isReadOnly || channel.refused.contains(key) {
            guard let (name, edits) = try unconfirmed(number, key) else { continue }
            if let code = edits.refusal {
                found.append(RefusedEdit(key: name, code: code))
            } else if channel.isReadOnly, !edits.isReadOnly, Self.isMissingAtServer(edits) {
                found.append(RefusedEdit(unauthorized: name))
            }
        }
        return found
    }

    /// The app's keys of objects with edits that the server has not confirmed.
    package func unconfirmedKeys(_ bucket: BucketName) throws(ClientError) -> [String] {
        guard let number = channelNumbers[bucket] else { return [] }
        guard channels[number].record.isSealed else { return channels[number].edited.map(\.text) }
        var names = [String]()
        for key in channels[number].edited {
            if let (name, _) = try unconfirmed(number, key) { names.append(name) }
        }
        return names
    }

    /// The app's key of an object with its edits; nil for the object that devices of a sealed bucket keep for
    /// themselves. Reads the record alone: a sealed object need not open.
    private func unconfirmed(
        _ number: Int, _ key: EntityKey
    ) throws(ClientError) -> (name: String, edits: EditState)? {
        let address = address(number, key)
        var known = cache[address]?.record
        if known == nil { known = try store.entity(address) }
        guard let record = known else { return nil }
        let name = record.name ?? key.text
        if channels[number].record.isSealed, SealedHeads.isReserved(name) { return nil }
        return (name, record.edits)
    }

    /// What was sent of the edits is not known to be at the server.
    static func isMissingAtServer(_ edits: EditState) -> Bool {
        edits.pending?.appliedAt == nil && edits.pending?.isConfirmed != true
    }

    /// The server certainly does not have the object's edits: it refused them, or nothing of them was ever sent.
    package mutating func isUnsent(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> Bool {
        if try isRefused(bucket, key) { return true }
        let number = try number(bucket)
        let key = try wireKey(number, key)
        let edits = try entity(number, key).record.edits
        return edits.hasEdits && edits.pending == nil && edits.wanted == nil && !edits.isReadOnly
            && channels[number].inFlight[key] == nil
    }

    /// Sends an edit that was refused for good once more: the server may have other limits by now.
    ///
    /// - Returns: false when none was refused.
    package mutating func retryRefused(
        _ bucket: BucketName, _ key: EntityKey, now: Int64
    ) throws(ClientError) -> (Bool, [SyncAction]) {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        guard try entity(number, key).record.edits.refusal != nil else { return (false, []) }
        let actions = try turn(now) { machine throws(ClientError) in
            var entity = try machine.entity(number, key)
            entity.record.edits.refusal = nil
            entity.record.edits.forgetRefusals()
            if machine.channels[number].sealing != nil {
                machine.putSealed(number, key, entity)
            } else {
                machine.put(number, key, entity, .edits)
            }
            machine.queue(number, key, entity.record.edits)
        }
        return (true, actions)
    }
}
