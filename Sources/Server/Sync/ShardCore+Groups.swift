import ThicketProtocol

/// How a group ends: well, or with the store refusing it.
extension ShardCore {
    /// The group is durable: its answers may leave, and its states are what readers see.
    func settle() -> CommitOutcome {
        for entity in group.entities where entity.isTentative {
            garbage += entity.settle(
                recentCountMax: settings.recentChangesMax, recentBytesMax: settings.recentBytesMax)
            objects.use(entity, share: settings.entityCacheBytesPerUser)
        }
        for bucket in group.buckets {
            bucket.isNew = false
            bucketRecency.use(bucket, bytes: bucket.memory)
        }
        takeRuns()
        var outcome = CommitOutcome()
        outcome.buckets.reserveCapacity(group.parts.count)
        for part in group.parts {
            // Of a bucket without a change nobody has anything to read.
            let record = part.isTouched && part.active?.head ?? 0 > 0 ? part.active?.record : nil
            outcome.buckets.append(
                BucketOutcome(
                    bucket: part.bucket, row: record?.row, published: record?.head, events: part.events,
                    mode: part.mode))
        }
        outcome.appliedCount = group.batch.count
        outcome.rebasedCount = group.rebasedCount
        outcome.keyframeCount = group.keyframeCount
        outcome.refusedCount = group.parts.reduce(0) { $0 + $1.events.count } - group.batch.count
        emptyJobs.removeAll(where: \.isDone)
        close()
        return outcome
    }

    /// The ccids that the group settled are looked up from now on.
    private func takeRuns() {
        for run in group.batch.changeIDRuns {
            guard let bucket = group.buckets.first(where: { $0.record?.row == run.bucket }),
                let floor = bucket.record?.floor
            else { continue }
            bucket.take(BucketMove(bucket: run.bucket, floor: floor, settled: run.settled), by: run)
        }
    }

    /// The store refused the group. One bad row is found by trying one by one; everything else is answered 503.
    func recover(from error: StoreError) -> CommitOutcome {
        var outcome: CommitOutcome
        if error.kind == .stale {
            // What was decided rested on a mode that an operator has changed since.
            return retryOneByOne(error)
        } else if error.kind == .constraint || error.kind == .corrupt, group.requests.count + emptyJobs.count > 1 {
            outcome = retryOneByOne(error)
        } else {
            let isBadRow = error.kind == .constraint || error.kind == .corrupt
            outcome = refuseGroup(ChangeRejection(isBadRow ? .serverError : .unavailable, error.description))
        }
        outcome.failure = outcome.failure ?? error.description
        return outcome
    }

    /// Drops what the group left in memory, and answers its changes with `reason`.
    ///
    /// That includes refusals: a 409 or 412 derived from a change that is gone would make its author drop an edit. Only
    /// those that rest on nothing stay.
    private func refuseGroup(_ reason: ChangeRejection) -> CommitOutcome {
        var outcome = CommitOutcome()
        let touched = Set(group.parts.lazy.filter(\.isTouched).map(\.bucket))
        var parts = group.parts.filter { !$0.isTouched }
        let unsealed = group.parts.filter { $0.isTouched && $0.mode != nil }.map(\.bucket)
        let requests = group.requests.filter { touched.contains($0.bucket) }
        let jobs = emptyJobs.filter { $0.isReady && touched.contains($0.submitted.bucket) }
        rollBack()
        var again = ShardGroup()
        for submitted in requests {
            let refusal = RefusedOutcome(submitted, flaw(of: submitted) ?? reason)
            again.add(.refused(refusal), of: submitted.bucket, active: nil)
        }
        for job in jobs {
            again.add(.refused(RefusedOutcome(job.submitted, reason)), of: job.submitted.bucket, active: nil)
        }
        for bucket in unsealed { again.noteModeUnknown(of: bucket, active: nil) }
        emptyJobs.removeAll { touched.contains($0.submitted.bucket) || $0.isDone }
        parts.append(contentsOf: again.parts)
        for part in parts {
            outcome.refusedCount += part.events.count
            outcome.buckets.append(
                BucketOutcome(bucket: part.bucket, row: nil, published: nil, events: part.events, mode: part.mode))
        }
        outcome.failure = reason.detail
        return outcome
    }

    /// Why the change would be refused whatever the bucket holds.
    private func flaw(of submitted: SubmittedChange) -> ChangeRejection? {
        do {
            _ = try CheckedChange(submitted)
            return nil
        } catch {
            return error
        }
    }

    private func retryOneByOne(_ error: StoreError) -> CommitOutcome {
        let requests = group.requests
        let touched = Set(group.parts.lazy.filter(\.isTouched).map(\.bucket))
        let asked = group.parts.filter { $0.mode != nil }.map(\.bucket)
        // Those received with this group come again with its requests; those under way have rows in it.
        emptyJobs.removeAll { !$0.isReady }
        rollBack()
        var outcome = CommitOutcome()
        for job in emptyJobs where job.isReady && (touched.contains(job.submitted.bucket) || job.isDone) {
            let reason = ChangeRejection(.unavailable, error.description)
            group.add(.refused(RefusedOutcome(job.submitted, reason)), of: job.submitted.bucket, active: nil)
        }
        emptyJobs.removeAll { $0.isDone || touched.contains($0.submitted.bucket) }
        for bucket in asked { group.noteModeUnknown(of: bucket, active: nil) }
        outcome.merge(settle())
        for submitted in requests {
            group.requests.append(submitted)
            _ = decide(submitted, mayTakeLong: true)
            guard !group.batch.isEmpty else {
                outcome.merge(settle())
                continue
            }
            do {
                group.finish(runsOf: changeIDRunLength)
                try store.commit(group.batch)
                outcome.merge(settle())
            } catch {
                let isBadRow = error.kind == .constraint || error.kind == .corrupt
                let code: ErrorCode = isBadRow ? .serverError : .unavailable
                outcome.merge(refuseGroup(ChangeRejection(code, error.description)))
            }
        }
        return outcome
    }

    /// Drops the group and everything in memory that it touched.
    private func rollBack() {
        for bucket in group.buckets { drop(bucket) }
        nextGlobalID = nil
        close()
    }

    private func close() {
        for bucket in group.buckets { bucket.groupIndex = nil }
        for entity in group.entities { entity.isInGroup = false }
        for index in emptyJobs.indices { emptyJobs[index].isReady = true }
        group = ShardGroup(reserving: min(group.requests.count, settings.groupChangesMax))
        evict()
    }
}

extension CommitOutcome {
    /// Adds what came later.
    mutating func merge(_ other: CommitOutcome) {
        for part in other.buckets {
            if let index: Int = buckets.firstIndex(where: { $0.bucket == part.bucket }) {
                buckets[index].events.append(contentsOf: part.events)
                buckets[index].row = part.row ?? buckets[index].row
                buckets[index].published = part.published ?? buckets[index].published
                buckets[index].mode = part.mode ?? buckets[index].mode
            } else {
                buckets.append(part)
            }
        }
        appliedCount += other.appliedCount
        refusedCount += other.refusedCount
        rebasedCount += other.rebasedCount
        keyframeCount += other.keyframeCount
        failure = failure ?? other.failure
    }
}
