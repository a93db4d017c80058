import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape

/// Batches of trees, and nodes whose burn time has come (decision 0094).
extension ShardCore {
    /// Decides a batch: writes all of its changes to the group or none, and answers it.
    func decide(_ request: TreeBatchRequest, _ submitted: SubmittedChange) throws(ChangeRejection) {
        guard submitted.canWrite else { throw ChangeRejection(.unauthorized, "the token is read-only") }
        let bucket = try activeBucket(submitted.bucket)
        guard bucket.mode == .tree else { throw ChangeRejection(.notFound, "the bucket is not a tree") }
        let batch = request.batch
        if let known = try answer(of: batch.id, in: bucket) {
            guard known.digest == request.digest else { throw ChangeRejection(TreeRefusal.otherBatch) }
            return group.add(BatchOutcome(origin: submitted.origin, answer: known.answer), of: bucket)
        }
        var plan = TreePlan(of: bucket, in: self, now: submitted.now)
        var results = [TreeOperationResult]()
        results.reserveCapacity(batch.operations.count)
        for (index, operation) in batch.operations.enumerated() {
            do {
                results.append(try plan.add(operation, isOnly: batch.operations.count == 1))
            } catch {
                return refuse(submitted, error, at: index)
            }
        }
        try write(plan, of: request, results, submitted, to: bucket)
    }

    private func answer(of batch: BatchID, in bucket: ActiveBucket) throws(ChangeRejection) -> BatchAnswer? {
        if let answer = bucket.batches[batch] { return answer }
        guard let row = bucket.record?.row else { return nil }
        return try reading { () throws(StoreError) in try store.batchAnswer(batch, in: row) }
    }

    /// Everything that may fail comes before the first change is written.
    private func write(
        _ plan: TreePlan, of request: TreeBatchRequest, _ results: [TreeOperationResult], _ submitted: SubmittedChange,
        to bucket: ActiveBucket
    ) throws(ChangeRejection) {
        let batch = request.batch.id
        let count = plan.steps.count
        var changeIDs = [ChangeID]()
        for index in 0..<count { changeIDs.append(try Self.changeID(BatchMark(batch, index: index, of: count).ccid)) }
        // Its stored answer has been dropped.
        if let first = changeIDs.first, try isKnown(first, hash: identity.hash(of: first), in: bucket) {
            throw ChangeRejection(.duplicateChange, "this batch was made before")
        }
        try admit(bucket)
        let last = count > 0 ? (nextGlobalID ?? 0) + GlobalID(count) - 1 : bucket.head
        let answer = try Self.answer(codec.encode(last, tag: bucket.tag), results)
        for (step, changeID) in zip(plan.steps, changeIDs) {
            write(
                step.decision, to: entity(of: step, in: bucket), author: submitted, changeID: changeID,
                hash: identity.hash(of: changeID), isStep: true)
        }
        bucket.write(plan.view.tree)
        if count > 0, let row = bucket.record?.row {
            bucket.record(
                BatchAnswer(
                    bucket: row, batch: batch, digest: request.digest, answer: answer, gid: last, time: submitted.now))
        }
        group.add(BatchOutcome(origin: submitted.origin, answer: answer), of: bucket)
    }

    private static func answer(
        _ position: [UInt8], _ results: [TreeOperationResult]
    ) throws(ChangeRejection) -> [UInt8] {
        do throws(IdentifierError) {
            let position = try ChangeVersion(String(decoding: position, as: UTF8.self))
            return JSONValue.object(TreeBatchAnswer.made(position: position, results: results).object).serialized()
        } catch { throw ChangeRejection(.serverError, error.description) }
    }

    private static func changeID(_ text: String) throws(ChangeRejection) -> ChangeID {
        do throws(IdentifierError) { return try ChangeID(text) } catch {
            throw ChangeRejection(.serverError, error.description)
        }
    }

    /// The object that a step changes. A later load of the plan may have evicted it; nothing has changed it since.
    private func entity(of step: TreePlan.Step, in bucket: ActiveBucket) -> ActiveEntity {
        if let entity = bucket.entities[step.key] { return entity }
        guard let entity = step.entity else { return newEntity(step.key, in: bucket) }
        bucket.add(entity)
        objects.touch(entity, share: settings.entityCacheBytesPerUser)
        return entity
    }

    // MARK: Burning

    /// `clientid` of removals at the burn time. No client library uses this name.
    static let burnClientID = "burn"

    /// Removes nodes whose burn time has come, each with its branch, by ordinary removals: one bounded part, which the
    /// caller commits as a group of its own.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: whether more may be due.
    public func burn(now: Int64) -> Bool {
        precondition(group.requests.isEmpty, "burning belongs between groups, after a commit")
        let bound = settings.clearedObjectsPerGroup
        store.beginReads()
        guard let due = try? store.burningNodes(at: now, limit: bound) else { return false }
        for burning in due where group.burnedCount < bound {
            // A tree that cannot be read must not keep the others from burning.
            try? burn(burning, now: now, changesMax: bound - group.burnedCount)
        }
        return group.burnedCount > 0 && (due.count == bound || group.burnedCount >= bound)
    }

    private func burn(_ burning: BurningNode, now: Int64, changesMax: Int) throws(ChangeRejection) {
        guard endedUsers.isEmpty || !endedUsers.contains(burning.bucket) else { return }
        let bucket = try activeBucket(burning.bucket)
        var plan = TreePlan(of: bucket, in: self, now: now, changesMax: changesMax)
        // A node above it may have burned before.
        guard bucket.mode == .tree, try plan.view.version(of: burning.node) > 0 else { return }
        _ = try plan.remove(
            BranchRemoval(burning.node, source: 1, includesOutdated: true, includesUnknown: true))
        try ensurePosition()
        for step in plan.steps {
            guard let gid = nextGlobalID, let changeID = Self.burnChangeID(of: step.key, gid),
                let author = Self.burnAuthor(of: changeID, step.key, in: bucket.id, now: now)
            else { break }
            write(
                step.decision, to: entity(of: step, in: bucket), author: author, changeID: changeID,
                hash: identity.hash(of: changeID), isStep: true)
            group.burnedCount += 1
        }
        bucket.write(plan.view.tree)
    }

    /// A synthetic author without a channel: no channel has generation 0.
    private static func burnAuthor(
        of changeID: ChangeID, _ key: EntityKey, in bucket: BucketID, now: Int64
    ) -> SubmittedChange? {
        guard let clientID = try? ClientID(burnClientID) else { return nil }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 0, channel: 0), bucket: bucket, clientID: clientID, library: .other,
            canWrite: true, request: ChangeRequest(key: key.text, ccid: changeID.text, operation: .remove), now: now)
    }

    private static func burnChangeID(of key: EntityKey, _ gid: GlobalID) -> ChangeID? {
        let text = "\(burnClientID)\0\(key.text)\0\(gid)"
        return try? ChangeID(Hex.encode(Array(Hash.sha256(Array(text.utf8)).prefix(16))))
    }
}
