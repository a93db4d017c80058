import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape

/// Removes nodes whose burn time has come, into the open group of a shard (decision 0094).
struct BurnSweep {
    let shard: ShardCore
    /// Milliseconds since 1970.
    let now: Int64

    /// `clientid` of removals at the burn time. No client library uses this name.
    private static let clientID = "burn"

    /// One bounded part.
    ///
    /// - Returns: whether more may be due.
    func run() -> Bool {
        let bound = shard.settings.clearedObjectsPerGroup
        shard.store.beginReads()
        guard let due = try? shard.store.burningNodes(at: now, limit: bound) else { return false }
        for burning in due where shard.group.burnedCount < bound {
            // A tree that cannot be read must not keep the others from burning.
            try? burn(burning, changesMax: bound - shard.group.burnedCount)
        }
        return shard.group.burnedCount > 0 && (due.count == bound || shard.group.burnedCount >= bound)
    }

    private func burn(_ burning: BurningNode, changesMax: Int) throws(ChangeRejection) {
        guard shard.endedUsers.isEmpty || !shard.endedUsers.contains(burning.bucket) else { return }
        let bucket = try shard.activeBucket(burning.bucket)
        var plan = TreePlan(of: bucket, in: shard, now: now, changesMax: changesMax)
        // A node above it may have burned before.
        guard bucket.mode == .tree, try plan.view.version(of: burning.node) > 0 else { return }
        _ = try plan.remove(
            BranchRemoval(burning.node, source: 1, includesOutdated: true, includesUnknown: true))
        try shard.ensurePosition()
        for step in plan.steps {
            guard let gid = shard.nextGlobalID, let changeID = Self.changeID(of: step.key, gid),
                let author = author(of: changeID, step.key, in: bucket.id)
            else { break }
            shard.write(
                step.decision, to: shard.entity(of: step, in: bucket), author: author, changeID: changeID,
                hash: shard.identity.hash(of: changeID), audience: step.audience, isStep: true)
            shard.group.burnedCount += 1
        }
        bucket.write(plan.view.tree)
    }

    /// A synthetic author without a channel: no channel has generation 0.
    private func author(of changeID: ChangeID, _ key: EntityKey, in bucket: BucketID) -> SubmittedChange? {
        guard let clientID = try? ClientID(Self.clientID) else { return nil }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 0, channel: 0), bucket: bucket, clientID: clientID, library: .other,
            canWrite: true, request: ChangeRequest(key: key.text, ccid: changeID.text, operation: .remove), now: now)
    }

    private static func changeID(of key: EntityKey, _ gid: GlobalID) -> ChangeID? {
        let text = "\(clientID)\0\(key.text)\0\(gid)"
        return try? ChangeID(Hex.encode(Array(Hash.sha256(Array(text.utf8)).prefix(16))))
    }
}
