import ThicketProtocol
import ThicketSealed

/// A bucket that was opened as an open one, and is a sealed one.
extension SyncMachine {
    /// An object that was never sent.
    struct Draft {
        let key: EntityKey
        let object: JSONObject
    }

    /// Objects that a bucket may hold when its mode changes here.
    private static let draftsMax: Int = 1_000

    /// What the bucket holds, when the server has never had any of it: nothing was told in clear, and nothing is lost when it
    /// is sealed from now on.
    ///
    /// - Returns: nil when the server has held objects of it, or it holds more than 1,000.
    mutating func drafts(_ number: Int) throws(ClientError) -> [Draft]? {
        let keys: [EntityKey] = try store.liveKeys(
            channels[number].record.name, after: nil, limit: Self.draftsMax + 1)
        guard keys.count <= Self.draftsMax, channels[number].edited.isSubset(of: keys) else { return nil }
        var drafts: [Draft] = []
        for key: EntityKey in keys {
            let entity: Entity = try entity(number, key)
            guard entity.record.ghost == Ghost(), let object: JSONObject = entity.local
            else { return nil }
            drafts.append(Draft(key: key, object: object))
        }
        return drafts
    }

    /// The bucket becomes a sealed one, for good, with the drafts in it. The other way round there is none: a server could ask
    /// for it.
    mutating func seal(
        _ number: Int, _ keys: SealedBucketKeys, _ drafts: [Draft], now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let sealing: Sealing = try makeSealing(keys)
        return try turn(now) { machine throws(ClientError) in
            for draft: Draft in drafts {
                var gone: Entity = try machine.entity(number, draft.key)
                gone.record.edits = EditState()
                gone.local = nil
                machine.put(number, draft.key, gone, [.edits, .marks])
            }
            let known: BucketRecord = machine.channels[number].record
            machine.channels[number].record = BucketRecord(
                name: known.name, walksStarted: known.walksStarted, isSealed: true)
            machine.channels[number].sealing = sealing
            machine.touchChannel(number)
            for draft: Draft in drafts {
                let key: EntityKey = try machine.wireKey(number, draft.key)
                let diff: ObjectDiff = JSONDiff.diff(from: JSONObject(), to: draft.object)
                try machine.addSealed(.modify(diff), to: number, key, name: draft.key.text)
            }
            if machine.link == .open { try machine.openChannel(number) }
        }
    }
}
