import ThicketProtocol

/// `EMPTY`: one removal per object, a limited number in each group, so that other changes proceed in between.
extension ShardCore {
    /// Accepts a request; the work begins with the next group, when every change received before it is durable.
    func enqueueEmpty(
        _ change: CheckedChange, _ submitted: SubmittedChange, _ bucket: ActiveBucket
    ) throws(ChangeRejection) {
        let isUnderWay = clearJobs.contains {
            $0.submitted.bucket == bucket.id && $0.change.changeID == change.changeID
        }
        guard !isUnderWay else { throw ChangeRejection(.unavailable, "this EMPTY is in progress") }
        guard clearJobs.count < settings.clearJobsMax else {
            throw ChangeRejection(.unavailable, "\(clearJobs.count) EMPTY requests are in progress")
        }
        guard bucket.head > 0 else { throw ChangeRejection(.emptyChange, "the bucket is empty") }
        clearJobs.append(ClearBucketJob(submitted: submitted, change: change, snapshot: bucket.head))
    }

    /// Does this group's share of the work for the oldest requests.
    func advanceClearJobs() {
        var budget = settings.clearedObjectsPerGroup
        while budget > 0, let index = clearJobs.firstIndex(where: { $0.isReady && !$0.isDone }) {
            var job = clearJobs[index]
            do {
                job.isDone = try advance(&job, &budget)
            } catch {
                refuse(job.submitted, error)
                job.isDone = true
            }
            clearJobs[index] = job
        }
    }

    /// - Returns: whether the request has been answered.
    private func advance(_ job: inout ClearBucketJob, _ budget: inout Int) throws(ChangeRejection) -> Bool {
        let bucket = try activeBucket(job.submitted.bucket)
        guard let row = bucket.record?.row else {
            throw ChangeRejection(.emptyChange, "the bucket is empty")
        }
        let cursor = job.cursor
        let limit = budget
        let keys = try reading { () throws(StoreError) in
            try store.liveKeys(in: row, after: cursor, limit: limit)
        }
        for key in keys {
            guard try target(key, in: bucket, of: job) != nil else {
                job.cursor = key
                continue
            }
            if let held = job.held, let entity = try target(held, in: bucket, of: job) {
                try remove(entity, isLast: false, &job)
            }
            job.held = key
            job.cursor = key
        }
        budget -= max(keys.count, 1)
        guard keys.count < limit else { return false }
        guard let held = job.held, let last = try target(held, in: bucket, of: job) else {
            throw ChangeRejection(.emptyChange, "\(job.removedCount) objects removed, nothing is left to remove")
        }
        try remove(last, isLast: true, &job)
        return true
    }

    /// The object, if it has not changed since the request was received.
    private func target(
        _ key: EntityKey, in bucket: ActiveBucket, of job: ClearBucketJob
    ) throws(ChangeRejection) -> ActiveEntity? {
        guard let entity = try activeEntity(key, in: bucket), !entity.state.isDeleted,
            entity.gid <= job.snapshot
        else { return nil }
        return entity
    }

    private func remove(_ entity: ActiveEntity, isLast: Bool, _ job: inout ClearBucketJob) throws(ChangeRejection) {
        try ensurePosition()
        let next = nextGlobalID ?? 0
        guard let changeID = isLast ? job.change.changeID : job.changeID(for: entity.key, gid: next) else {
            throw ChangeRejection(.serverError, "no ccid could be created")
        }
        write(
            .removal(of: entity.state), to: entity, author: job.submitted, changeID: changeID,
            hash: identity.hash(of: changeID), isStep: !isLast)
        job.removedCount += 1
    }
}
