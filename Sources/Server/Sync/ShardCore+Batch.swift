/// What surrounds the core while it works off a batch: the shard's thread, or the loop in its place, in a server; a
/// simulated thread in the simulation.
public protocol ShardHost {
    /// What a batch consists of.
    associatedtype Work

    /// The request in the work; nil for other work, which `perform` does.
    func request(in work: Work) -> ShardRequest?
    /// Whether the request is decided now; false when its tenant waits for something else.
    mutating func begins(_ request: ShardRequest) -> Bool
    /// The core has received the request.
    /// - Parameters:
    ///   - index: its place in the batch.
    ///   - deferred: set when another thread must decide the change; its tenant waits until then.
    mutating func received(_ request: ShardRequest, at index: Int, deferred: DeferredChange?)
    /// Commits the core's group and passes its outcome on.
    /// - Parameter requests: number of requests received since the last commit.
    /// - Returns: false when nothing more may be done: the process has died.
    mutating func commit(requests: Int) -> Bool
    /// Does other work, between two groups.
    mutating func perform(_ work: Work)
}

extension ShardCore {
    /// Works off a batch in its order: decides requests, and commits when the group is full, before other work, and at
    /// the end.
    /// - Returns: false when a commit stopped it.
    @discardableResult
    public func run<Host: ShardHost>(_ batch: some Sequence<Host.Work>, for host: inout Host) -> Bool {
        var requests = 0
        for (index, work) in batch.enumerated() {
            guard let request = host.request(in: work) else {
                if requests > 0, !host.commit(requests: requests) { return false }
                requests = 0
                host.perform(work)
                continue
            }
            guard host.begins(request) else { continue }
            requests += 1
            host.received(request, at: index, deferred: receive(request))
            guard isFull else { continue }
            guard host.commit(requests: requests) else { return false }
            requests = 0
        }
        return requests > 0 || hasBacklog ? host.commit(requests: requests) : true
    }
}
