import ThicketProtocol

/// The end of a group: success, or recovery when the store refuses it.
extension ShardCore {
    /// Called when the group is durable: its answers may be sent, and readers see its states.
    func publish() -> CommitOutcome {
        for entity in group.entities where entity.isTentative {
            garbage += entity.markDurable(
                recentCountMax: settings.recentChangesMax, recentBytesMax: settings.recentBytesMax)
            objects.touch(entity, share: settings.entityCacheBytesPerUser)
        }
        for bucket in group.buckets {
            bucket.isNew = false
            bucket.forgetTree()
            bucketRecency.touch(bucket, bytes: bucket.memory)
        }
        applyRuns()
        var outcome = CommitOutcome()
        outcome.buckets.reserveCapacity(group.parts.count)
        for part in group.parts {
            // A bucket without changes has nothing for clients to read.
            let record = part.isTouched && part.active?.head ?? 0 > 0 ? part.active?.record : nil
            outcome.buckets.append(
                BucketOutcome(
                    bucket: part.bucket, row: record?.row, published: record?.head, events: part.events,
                    mode: part.mode))
        }
        outcome.appliedCount = group.batch.count
        outcome.rebasedCount = group.rebasedCount
        outcome.keyframeCount = group.keyframeCount
        outcome.refusedCount = group.parts.reduce(0) { $0 + $1.events.count } - group.batch.count - group.answeredCount
        outcome.batchCount = group.batchCount
        outcome.burnedCount = group.burnedCount
        clearJobs.removeAll(where: \.isDone)
        close()
        return outcome
    }

    /// The store looks up the archived ccids of the group from now on.
    private func applyRuns() {
        for run in group.batch.changeIDRuns {
            guard let bucket = group.buckets.first(where: { $0.record?.row == run.bucket }),
                let floor = bucket.record?.floor
            else { continue }
            bucket.apply(BucketMove(bucket: run.bucket, floor: floor, archived: run.archived), by: run)
        }
    }

    /// Handles a group that the store refused. Requests are retried one by one after a changed mode, or to isolate a
    /// bad row among several. Otherwise all are refused: a lone bad row with 500, other errors with 503.
    func recover(from error: StoreError) -> CommitOutcome {
        var outcome: CommitOutcome
        if error.kind == .stale {
            // The decisions were based on a mode that an operator has changed since.
            return retryOneByOne(error)
        } else if error.kind == .constraint || error.kind == .corrupt, group.requests.count + clearJobs.count > 1 {
            outcome = retryOneByOne(error)
        } else {
            let isBadRow = error.kind == .constraint || error.kind == .corrupt
            outcome = refuseGroup(ChangeRejection(isBadRow ? .serverError : .unavailable, error.description))
        }
        outcome.failure = outcome.failure ?? error.description
        return outcome
    }

    /// Drops the state that the group left in memory, and answers its changes with `reason`.
    ///
    /// That includes refusals: a 409 or 412 derived from a change that was not stored would make its author drop an
    /// edit. Only refusals that depend on no state stay.
    private func refuseGroup(_ reason: ChangeRejection) -> CommitOutcome {
        var outcome = CommitOutcome()
        let touched = Set(group.parts.lazy.filter(\.isTouched).map(\.bucket))
        var parts = group.parts.filter { !$0.isTouched }
        let unsealed = group.parts.filter { $0.isTouched && $0.mode != nil }.map(\.bucket)
        let requests = group.requests.filter { touched.contains($0.bucket) }
        let jobs = clearJobs.filter { $0.isReady && touched.contains($0.submitted.bucket) }
        rollBack()
        var again = ShardGroup()
        for submitted in requests {
            let refusal = RefusedOutcome(submitted, flaw(of: submitted) ?? reason)
            again.add(.refused(refusal), of: submitted.bucket, active: nil)
        }
        for job in jobs {
            again.add(.refused(RefusedOutcome(job.submitted, reason)), of: job.submitted.bucket, active: nil)
        }
        for bucket in unsealed { again.recordModeUnknown(of: bucket, active: nil) }
        clearJobs.removeAll { touched.contains($0.submitted.bucket) || $0.isDone }
        parts.append(contentsOf: again.parts)
        for part in parts {
            outcome.refusedCount += part.events.count
            outcome.buckets.append(
                BucketOutcome(bucket: part.bucket, row: nil, published: nil, events: part.events, mode: part.mode))
        }
        outcome.failure = reason.detail
        return outcome
    }

    /// The reason why the change would be refused regardless of the bucket's state; nil if none.
    private func flaw(of submitted: SubmittedChange) -> ChangeRejection? {
        // A batch was checked when it was read.
        if submitted.batch != nil || submitted.policy != nil { return nil }
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
        // Requests received with this group are received again below; those in progress have rows in the failed group.
        clearJobs.removeAll { !$0.isReady }
        rollBack()
        var outcome = CommitOutcome()
        for job in clearJobs where job.isReady && (touched.contains(job.submitted.bucket) || job.isDone) {
            let reason = ChangeRejection(.unavailable, error.description)
            group.add(.refused(RefusedOutcome(job.submitted, reason)), of: job.submitted.bucket, active: nil)
        }
        clearJobs.removeAll { $0.isDone || touched.contains($0.submitted.bucket) }
        for bucket in asked { group.recordModeUnknown(of: bucket, active: nil) }
        outcome.merge(publish())
        for submitted in requests {
            group.requests.append(submitted)
            _ = decide(submitted, mayTakeLong: true)
            guard !group.batch.isEmpty else {
                outcome.merge(publish())
                continue
            }
            do {
                group.finish(runsOf: changeIDRunLength)
                try store.commit(group.batch)
                outcome.merge(publish())
            } catch {
                let isBadRow = error.kind == .constraint || error.kind == .corrupt
                let code: ErrorCode = isBadRow ? .serverError : .unavailable
                outcome.merge(refuseGroup(ChangeRejection(code, error.description)))
            }
        }
        return outcome
    }

    /// Drops the group, and every bucket it touched, from memory.
    private func rollBack() {
        for bucket in group.buckets { drop(bucket) }
        nextGlobalID = nil
        close()
    }

    private func close() {
        for bucket in group.buckets { bucket.groupIndex = nil }
        for entity in group.entities { entity.isInGroup = false }
        for index in clearJobs.indices { clearJobs[index].isReady = true }
        group = ShardGroup(reserving: min(group.requests.count, settings.groupChangesMax))
        evict()
    }
}

extension CommitOutcome {
    /// Adds a later outcome.
    mutating func merge(_ other: CommitOutcome) {
        for part in other.buckets {
            if let index = buckets.firstIndex(where: { $0.bucket == part.bucket }) {
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
        batchCount += other.batchCount
        burnedCount += other.burnedCount
        rebasedCount += other.rebasedCount
        keyframeCount += other.keyframeCount
        failure = failure ?? other.failure
    }
}
