package import ThicketProtocol
import ThicketSealed

/// A bucket that was opened in the wrong mode: as an open one although it is sealed, or the reverse.
extension SyncMachine {
    /// An object that was never sent.
    struct Draft {
        let key: EntityKey
        let object: JSONObject
    }

    /// Most objects that a bucket may hold when its mode changes here.
    private static let draftsMax = 1_000

    /// The bucket's objects, if the server has never had any of them: then nothing was sent unencrypted, and nothing is
    /// lost when the bucket becomes sealed.
    ///
    /// - Returns: nil when the server has had objects of it, or it holds more than 1,000.
    mutating func drafts(_ number: Int) throws(ClientError) -> [Draft]? {
        let keys = try turn.store.liveKeys(
            buckets[number].record.name, after: nil, limit: Self.draftsMax + 1)
        guard keys.count <= Self.draftsMax, buckets[number].keys.edited.isSubset(of: keys) else { return nil }
        var drafts = [Draft]()
        for key in keys {
            let entity = try buckets[number].entity(key, &turn)
            guard entity.record.ghost == Ghost(), let object = entity.local
            else { return nil }
            drafts.append(Draft(key: key, object: object))
        }
        return drafts
    }

    /// Makes the bucket a sealed one for good, with the drafts in it. The reverse is not offered here, because a
    /// malicious server could ask for it.
    mutating func seal(
        _ number: Int, _ keys: SealedBucketKeys, _ drafts: [Draft], now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let sealing = try makeSealing(keys)
        return try runTurn(now) { machine throws(ClientError) in
            for draft in drafts {
                try machine.buckets[number].withEntity(draft.key, [.edits, .marks], &machine.turn) { gone in
                    gone.record.edits = EditState()
                    gone.local = nil
                }
            }
            let known = machine.buckets[number].record
            machine.buckets[number].record = BucketRecord(
                name: known.name, scansStarted: known.scansStarted, isSealed: true)
            machine.buckets[number].sealing = sealing
            machine.turn.touch(number)
            for draft in drafts {
                let key = try machine.wireKey(number, draft.key)
                let diff = JSONDiff.diff(from: JSONObject(), to: draft.object)
                try SealedRules.append(
                    &machine.buckets[number], .modify(diff), key, name: draft.key.text, &machine.turn)
            }
            if machine.turn.link.isOpen { machine.buckets[number].open(&machine.turn) }
        }
    }

    /// Undoes the first opening of a bucket as sealed if that was a mistake: the server reports an open bucket, all
    /// objects it shows are unsealed, and this device has never held a sealed object or an edit of it. So nothing is
    /// lost, and nothing intended to be sealed is sent unencrypted.
    ///
    /// The caller must tell the user that the bucket was not sealed: a server that lies about all of it can cause this.
    ///
    /// - Returns: false when these conditions do not hold; nothing is changed then.
    package mutating func unseal(_ bucket: BucketName, now: Int64) throws(ClientError) -> (Bool, [SyncAction]) {
        guard let number = numbers[bucket], let objects = try onlyClear(number) else {
            return (false, [])
        }
        let actions = try runTurn(now) { machine throws(ClientError) in
            for key in objects {
                try machine.buckets[number].withEntity(key, [.edits, .marks], &machine.turn) { met in
                    (met.record.edits, met.record.name) = (EditState(), nil)
                    (met.sealed, met.local) = (nil, nil)
                }
            }
            let known = machine.buckets[number].record
            machine.buckets[number].record = BucketRecord(name: known.name, scansStarted: known.scansStarted)
            machine.buckets[number].sealing = nil
            machine.buckets[number].forgetUndelivered(&machine.turn)
            machine.turn.touch(number)
            if machine.turn.link.isOpen { machine.buckets[number].open(&machine.turn) }
        }
        return (true, actions)
    }

    /// The objects that the server shows; nil unless all of them are unsealed and the bucket holds nothing else.
    private mutating func onlyClear(_ number: Int) throws(ClientError) -> [EntityKey]? {
        guard let sealing = buckets[number].sealing, sealing.isModeReported, buckets[number].keys.edited.isEmpty,
            try turn.store.liveNames(buckets[number].record.name, after: nil, limit: 1).isEmpty
        else { return nil }
        let met = try turn.store.edited(buckets[number].record.name).map(\.key)
        guard !met.isEmpty else { return nil }
        for key in met {
            let entity = try buckets[number].entity(key, &turn)
            guard entity.record.ghost == Ghost(), entity.sealed?.problem == .clear else { return nil }
        }
        return met
    }
}
