package import ThicketProtocol

/// Requests for removals, and the callers that wait for the answers.
extension SyncEngine {
    struct RemovalWaiter {
        let scope: RemovedRequest.Scope
        let deadline: Int64
        let continuation: CheckedContinuation<Result<RemovalList, ClientError>, Never>
    }

    /// Asks the server which objects were removed, or when one was. `scope` holds the server's key.
    package func removals(
        _ bucket: BucketName, _ scope: RemovedRequest.Scope, limit: Int, milliseconds: Int64
    ) async throws(ClientError) -> RemovalList {
        let result = await withCheckedContinuation { continuation in
            do throws(ClientError) {
                let request = RemovedRequest(scope, limit: limit)
                try act { (machine, now) throws(ClientError) in
                    ((), try machine.askRemovals(bucket, request, now: now))
                }
                let deadline = monotonicMilliseconds() + milliseconds
                removalWaiters[bucket, default: []].append(
                    RemovalWaiter(scope: scope, deadline: deadline, continuation: continuation))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }

    func answer(removalsOf bucket: BucketName, _ list: RemovalList?) {
        let waiters = removalWaiters.removeValue(forKey: bucket) ?? []
        guard let list else {
            let error = ClientError(
                .unavailable, "the server does not list removals: it is not thicketd, or an older version")
            for waiter in waiters { waiter.continuation.resume(returning: .failure(error)) }
            return
        }
        let left = waiters.filter { $0.scope != list.scope }
        removalWaiters[bucket] = left.isEmpty ? nil : left
        for waiter in waiters where waiter.scope == list.scope {
            waiter.continuation.resume(returning: .success(list))
        }
    }

    func expireRemovalWaiters(_ now: Int64, _ next: inout Int64?) {
        for (bucket, waiters) in removalWaiters {
            for waiter in waiters where waiter.deadline <= now {
                waiter.continuation.resume(returning: .failure(ClientError(.deadline, "the server did not answer")))
            }
            let left = waiters.filter { $0.deadline > now }
            removalWaiters[bucket] = left.isEmpty ? nil : left
            for waiter in left { next = min(next ?? .max, waiter.deadline) }
        }
    }

    func failRemovalWaiters(_ error: ClientError) {
        for waiter in removalWaiters.values.joined() { waiter.continuation.resume(returning: .failure(error)) }
        removalWaiters = [:]
    }
}
