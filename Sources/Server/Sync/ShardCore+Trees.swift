import ThicketProtocol
import ThicketTreeShape

/// Batches of trees (decisions 0067, 0094).
extension ShardCore {
    /// Decides a batch: writes all of its changes to the group or none, and answers it.
    func decide(_ request: TreeBatchRequest, _ submitted: SubmittedChange) throws(ChangeRejection) {
        guard submitted.canWrite else { throw ChangeRejection(.unauthorized, "the token is read-only") }
        let bucket = try activeBucket(submitted.bucket)
        let batch = request.batch
        guard request.member == nil || bucket.mode == .tree else {
            throw ChangeRejection(TreeRefusal.notPermitted(.noRead))
        }
        guard bucket.mode == .tree else { throw ChangeRejection(.notFound, "the bucket is not a tree") }
        if let known = try answer(of: batch.id, in: bucket) {
            guard known.digest == request.answerDigest else {
                try request.checkMember(in: ShardTree(shard: self, bucket: bucket))
                throw ChangeRejection(TreeRefusal.otherBatch)
            }
            return group.add(BatchOutcome(origin: submitted.origin, answer: known.answer), of: bucket)
        }
        do throws(OperationRejection) {
            if request.hasCopies { try request.copies.check() }
            let guest = try GuestCheck(shard: self).spending(request, in: bucket, now: submitted.now)
            var plan = BatchPlan(of: bucket, request, in: self, now: submitted.now)
            let results = try Self.results(of: batch, in: &plan)
            try write(plan, of: request, results, submitted, to: bucket)
            if let guest { group.add(guest) }
        } catch {
            refuse(submitted, error.reason, at: error.operation)
            // The refusal may follow from what the open group has decided for another tree: if the group is not
            // written, neither is the refusal sent.
            if request.reachesOtherTrees, group.hasRows { group.touch(bucket) }
        }
    }

    private static func results(
        of batch: TreeBatch, in plan: inout BatchPlan
    ) throws(OperationRejection) -> [TreeOperationResult] {
        var results = [TreeOperationResult]()
        results.reserveCapacity(batch.operations.count)
        for (index, operation) in batch.operations.enumerated() {
            do throws(ChangeRejection) { results.append(try plan.add(operation, at: index)) } catch {
                throw OperationRejection(error, at: index)
            }
        }
        return results
    }

    private func answer(of batch: BatchID, in bucket: ActiveBucket) throws(ChangeRejection) -> BatchAnswer? {
        if let answer = bucket.batches[batch] { return answer }
        guard let row = bucket.record?.row else { return nil }
        return try reading { () throws(StoreError) in try store.batchAnswer(batch, in: row) }
    }

    /// Everything that may fail comes before the first change is written.
    private func write(
        _ plan: BatchPlan, of request: TreeBatchRequest, _ results: [TreeOperationResult], _ submitted: SubmittedChange,
        to bucket: ActiveBucket
    ) throws(OperationRejection) {
        let answer: [UInt8]
        var marked = [(tree: BatchPlan.Tree, author: SubmittedChange, changeIDs: [ChangeID])]()
        do throws(ChangeRejection) {
            for tree in plan.trees where !tree.plan.steps.isEmpty {
                let isOwn = tree.bucket === bucket
                let author =
                    isOwn ? submitted : try Receivers(shard: self).author(in: tree.bucket.id, now: submitted.now)
                marked.append((tree, author, try BatchPlan.changeIDs(plan.mark(of: tree), tree.plan.steps.count)))
            }
            // Its stored answer has been dropped.
            if let first = marked.first, let id = first.changeIDs.first,
                try isKnown(id, hash: identity.hash(of: id), in: first.tree.bucket)
            {
                throw ChangeRejection(.duplicateChange, "this batch was made before")
            }
            try admit(bucket)
            for part in marked { try admitTree(part.tree.bucket) }
            answer = try self.answer(plan, results)
        } catch { throw OperationRejection(error, at: nil) }
        let last = (nextGlobalID ?? 0) + GlobalID(plan.count) - 1
        for part in marked { write(part.tree, of: plan, part.author, part.changeIDs) }
        if !marked.isEmpty, let row = bucket.record?.row {
            bucket.record(
                BatchAnswer(
                    bucket: row, batch: request.batch.id, digest: request.answerDigest, answer: answer, gid: last,
                    time: submitted.now))
            // The answer depends on the changes in all trees, also if the caller's has none.
            group.touch(bucket)
        }
        group.add(BatchOutcome(origin: submitted.origin, answer: answer), of: bucket)
    }

    /// Gives a receiver without a tree one.
    private func admitTree(_ bucket: ActiveBucket) throws(ChangeRejection) {
        let isNew = bucket.record == nil
        try admit(bucket)
        guard isNew, bucket.mode != .tree else { return }
        bucket.choose(.tree)
        group.recordMode(.tree, of: bucket)
    }

    /// The position is that of the last change in the caller's tree, whose changes come first.
    private func answer(_ plan: BatchPlan, _ results: [TreeOperationResult]) throws(ChangeRejection) -> [UInt8] {
        let (tree, own) = (plan.trees[0].bucket, plan.trees[0].plan.steps.count)
        let last = own > 0 ? (nextGlobalID ?? 0) + GlobalID(own) - 1 : tree.head
        return try Self.answer(codec.encode(last, tag: tree.tag), results)
    }

    private func write(
        _ tree: BatchPlan.Tree, of plan: BatchPlan, _ author: SubmittedChange, _ changeIDs: [ChangeID]
    ) {
        let bucket = tree.bucket
        for (step, changeID) in zip(tree.plan.steps, changeIDs) {
            write(
                step.decision, to: entity(of: step, in: bucket), author: author, changeID: changeID,
                hash: identity.hash(of: changeID), audience: step.audience, isStep: true)
        }
        bucket.write(tree.plan.view.tree)
        guard tree.messages > 0 else { return }
        let pair = plan.pair(tree)
        bucket.deliver(tree.messages, from: pair.sender)
        deliveries.add(tree.messages, of: pair, at: author.now)
    }

    private static func answer(
        _ position: [UInt8], _ results: [TreeOperationResult]
    ) throws(ChangeRejection) -> [UInt8] {
        do throws(IdentifierError) {
            let position = try ChangeVersion(String(decoding: position, as: UTF8.self))
            return JSONValue.object(TreeBatchAnswer.made(position: position, results: results).object).serialized()
        } catch { throw ChangeRejection(.serverError, error.description) }
    }

    static func changeID(_ text: String) throws(ChangeRejection) -> ChangeID {
        do throws(IdentifierError) { return try ChangeID(text) } catch {
            throw ChangeRejection(.serverError, error.description)
        }
    }

    /// The object that a step changes. A later load of the plan may have evicted it; nothing has changed it since.
    func entity(of step: TreePlan.Step, in bucket: ActiveBucket) -> ActiveEntity {
        if let entity = bucket.entities[step.key] { return entity }
        guard let entity = step.entity else { return newEntity(step.key, in: bucket) }
        bucket.add(entity)
        objects.touch(entity, share: settings.entityCacheBytesPerUser)
        return entity
    }

    /// Removes nodes whose burn time has come, each with its branch, by ordinary removals: one bounded part, which the
    /// caller commits as a group of its own.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: whether more may be due.
    public func burn(now: Int64) -> Bool {
        precondition(group.requests.isEmpty, "burning belongs between groups, after a commit")
        return BurnSweep(shard: self, now: now).run()
    }
}
