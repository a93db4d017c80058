package import ThicketProtocol
import ThicketSealed

/// The list of refused edits, and how they are resolved (docs/decisions/0084).
extension SyncMachine {
    /// The bucket's refused edits, in order of the server's keys: those refused for good and, on a connection whose
    /// token does not permit changes, all others that the server does not have. A sealed bucket need not be unlocked.
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

    /// The app's keys of the objects with edits that the server has not confirmed.
    package func unconfirmedKeys(_ bucket: BucketName) throws(ClientError) -> [String] {
        guard let number = channelNumbers[bucket] else { return [] }
        guard channels[number].record.isSealed else { return channels[number].edited.map(\.text) }
        var names = [String]()
        for key in channels[number].edited {
            if let (name, _) = try unconfirmed(number, key) { names.append(name) }
        }
        return names
    }

    /// The app's key of an object and its edits; nil for the internal object of a sealed bucket. Reads only the record:
    /// a sealed object need not be opened.
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

    /// Whether the server is not known to have the sent part of the edits.
    static func isMissingAtServer(_ edits: EditState) -> Bool {
        edits.pending?.appliedAt == nil && edits.pending?.isConfirmed != true
    }

    /// Whether the server certainly does not have the object's edits: it refused them, or none of them was ever sent.
    package mutating func isUnsent(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> Bool {
        if try isRefused(bucket, key) { return true }
        let number = try number(bucket)
        let key = try wireKey(number, key)
        let edits = try entity(number, key).record.edits
        return edits.hasEdits && edits.pending == nil && edits.wanted == nil && !edits.isReadOnly
            && channels[number].inFlight[key] == nil
    }

    /// Sends an edit that was refused for good once more: the server's limits may have changed.
    ///
    /// - Returns: false when no edit was refused.
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
