package import ThicketProtocol

/// The list of refused edits, and how they are resolved (docs/decisions/0084).
extension SyncMachine {
    /// The bucket's refused edits, in order of the server's keys: those refused for good and, on a connection whose
    /// token does not permit changes, all others that the server does not have. A sealed bucket need not be unlocked.
    package func refusals(_ bucket: BucketName) throws(ClientError) -> [RefusedEdit] {
        guard let number = numbers[bucket] else { return [] }
        let channel = buckets[number]
        guard channel.outbox.isReadOnly || channel.keys.refusedEdits > 0 else { return [] }
        var found = [RefusedEdit]()
        for key in channel.keys.edited.sorted() where channel.outbox.isReadOnly || channel.keys.refused.contains(key) {
            guard let (name, edits) = try buckets[number].unconfirmed(key, turn) else { continue }
            if let code = edits.refusal {
                found.append(RefusedEdit(key: name, code: code))
            } else if channel.outbox.isReadOnly, !edits.isReadOnly, edits.isMissingAtServer {
                found.append(RefusedEdit(unauthorized: name))
            }
        }
        return found
    }

    /// The app's keys of the objects with edits that the server has not confirmed.
    package func unconfirmedKeys(_ bucket: BucketName) throws(ClientError) -> [String] {
        guard let number = numbers[bucket] else { return [] }
        guard buckets[number].record.isSealed else { return buckets[number].keys.edited.map(\.text) }
        var names = [String]()
        for key in buckets[number].keys.edited {
            if let (name, _) = try buckets[number].unconfirmed(key, turn) { names.append(name) }
        }
        return names
    }

    /// Whether the server certainly does not have the object's edits: it refused them, or none of them was ever sent.
    package mutating func isUnsent(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> Bool {
        if try isRefused(bucket, key) { return true }
        let number = try number(bucket)
        let key = try wireKey(number, key)
        let edits = try buckets[number].entity(key, &turn).record.edits
        return edits.hasEdits && edits.pending == nil && edits.wanted == nil && !edits.isReadOnly
            && buckets[number].outbox.inFlight[key] == nil
    }

    /// Sends an edit that was refused for good once more: the server's limits may have changed.
    ///
    /// - Returns: false when no edit was refused.
    package mutating func retryRefused(
        _ bucket: BucketName, _ key: EntityKey, now: Int64
    ) throws(ClientError) -> (Bool, [SyncAction]) {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        guard try buckets[number].entity(key, &turn).record.edits.refusal != nil else { return (false, []) }
        let actions = try runTurn(now) { machine throws(ClientError) in
            try machine.buckets[number].retryRefused(key, &machine.turn)
        }
        return (true, actions)
    }
}

extension EditState {
    /// Whether the server is not known to have the sent part of the edits.
    var isMissingAtServer: Bool { pending?.appliedAt == nil && pending?.isConfirmed != true }
}
