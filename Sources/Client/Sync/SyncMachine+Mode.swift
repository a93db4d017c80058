import ThicketProtocol
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
        let keys = try store.liveKeys(
            channels[number].record.name, after: nil, limit: Self.draftsMax + 1)
        guard keys.count <= Self.draftsMax, channels[number].edited.isSubset(of: keys) else { return nil }
        var drafts = [Draft]()
        for key in keys {
            let entity = try entity(number, key)
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
        return try turn(now) { machine throws(ClientError) in
            for draft in drafts {
                var gone = try machine.entity(number, draft.key)
                gone.record.edits = EditState()
                gone.local = nil
                machine.put(number, draft.key, gone, [.edits, .marks])
            }
            let known = machine.channels[number].record
            machine.channels[number].record = BucketRecord(
                name: known.name, walksStarted: known.walksStarted, isSealed: true)
            machine.channels[number].sealing = sealing
            machine.touchChannel(number)
            for draft in drafts {
                let key = try machine.wireKey(number, draft.key)
                let diff = JSONDiff.diff(from: JSONObject(), to: draft.object)
                try machine.addSealed(.modify(diff), to: number, key, name: draft.key.text)
            }
            if machine.link == .open { try machine.openChannel(number) }
        }
    }

    // MARK: - From sealed to open

    /// Undoes the first opening of a bucket as sealed if that was a mistake: the server reports an open bucket, all
    /// objects it shows are unsealed, and this device has never held a sealed object or an edit of it. So nothing is
    /// lost, and nothing intended to be sealed is sent unencrypted.
    ///
    /// The caller must tell the user that the bucket was not sealed: a server that lies about all of it can cause this.
    ///
    /// - Returns: false when these conditions do not hold; nothing is changed then.
    package mutating func unseal(_ bucket: BucketName, now: Int64) throws(ClientError) -> (Bool, [SyncAction]) {
        guard let number = channelNumbers[bucket], let objects = try onlyClear(number) else {
            return (false, [])
        }
        let actions = try turn(now) { machine throws(ClientError) in
            for key in objects {
                var met = try machine.entity(number, key)
                (met.record.edits, met.record.name) = (EditState(), nil)
                (met.sealed, met.local) = (nil, nil)
                machine.put(number, key, met, [.edits, .marks])
            }
            let known = machine.channels[number].record
            machine.channels[number].record = BucketRecord(name: known.name, walksStarted: known.walksStarted)
            machine.channels[number].sealing = nil
            machine.forgetUndelivered(number)
            machine.touchChannel(number)
            if machine.link == .open { try machine.openChannel(number) }
        }
        return (true, actions)
    }

    /// The objects that the server shows; nil unless all of them are unsealed and the bucket holds nothing else.
    private mutating func onlyClear(_ number: Int) throws(ClientError) -> [EntityKey]? {
        guard let sealing = channels[number].sealing, sealing.isModeTold, channels[number].edited.isEmpty,
            try store.liveNames(channels[number].record.name, after: nil, limit: 1).isEmpty
        else { return nil }
        let met = try store.edited(channels[number].record.name).map(\.key)
        guard !met.isEmpty else { return nil }
        for key in met {
            let entity = try entity(number, key)
            guard entity.record.ghost == Ghost(), entity.sealed?.problem == .clear else { return nil }
        }
        return met
    }
}
