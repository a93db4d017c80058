import ThicketTreeShape

/// Calls that wait for the queue, or for a list of children.
struct QueueWaiters {
    private struct Waiter {
        /// What it waits for; nil: the whole queue, and what the server has.
        let operation: OperationID?
        /// The list of children that it waits for instead.
        var list: NodeParent?
        /// The root of the branch for whose eager re-key it waits instead.
        var root: NodeID?
        let deadline: Int64
        let continuation: CheckedContinuation<Result<Void, TreeError>, Never>
    }

    private var waiters = [UInt64: Waiter]()

    /// When the first call gives up; nil without one.
    var deadline: Int64? { waiters.values.map(\.deadline).min() }

    mutating func add(
        _ id: UInt64, _ operation: OperationID?, list: NodeParent? = nil, rekey root: NodeID? = nil, deadline: Int64,
        _ continuation: CheckedContinuation<Result<Void, TreeError>, Never>
    ) {
        waiters[id] = Waiter(
            operation: operation, list: list, root: root, deadline: deadline, continuation: continuation)
    }

    mutating func cancel(_ id: UInt64) {
        waiters.removeValue(forKey: id)?.continuation.resume(
            returning: .failure(TreeError(.cancelled, "the wait was cancelled")))
    }

    /// - Parameter operation: nil: all calls.
    mutating func end(_ error: TreeError, of operation: OperationID? = nil) {
        for (id, waiter) in waiters where operation == nil || waiter.operation == operation {
            waiters[id] = nil
            waiter.continuation.resume(returning: .failure(error))
        }
    }

    /// Answers the calls whose operations are over, or whose time is.
    mutating func resume(_ machine: TreeMachine, _ now: Int64) {
        for (id, waiter) in waiters {
            var result = Self.result(of: waiter, machine)
            if result == nil, waiter.deadline <= now {
                result = .failure(TreeError(.deadline, "not confirmed in time: \(machine.status.text)"))
            }
            guard let result else { continue }
            waiters[id] = nil
            waiter.continuation.resume(returning: result)
        }
    }

    private static func result(of waiter: Waiter, _ machine: TreeMachine) -> Result<Void, TreeError>? {
        if let list = waiter.list { return result(of: list, machine) }
        if let root = waiter.root { return result(ofRekey: root, machine) }
        return waiter.operation.map { result(of: $0, machine) } ?? result(machine)
    }

    private static func result(ofRekey root: NodeID, _ machine: TreeMachine) -> Result<Void, TreeError>? {
        guard let progress = Rekeying.progress(of: root, machine.skeleton) else { return .success(()) }
        if case .offline(.unauthorized(let text)) = machine.status { return .failure(TreeError(.network, text)) }
        guard progress.left > 0, progress.stuck == progress.left else { return nil }
        return .failure(
            TreeError(.content, "\(progress.left) nodes could not be written, and stay under their earlier keys"))
    }

    private static func result(of id: OperationID, _ machine: TreeMachine) -> Result<Void, TreeError>? {
        guard let operation = machine.queue[id] else { return .success(()) }
        switch operation.state {
        case .waiting, .sending: return nil
        case .held(.content): return .failure(LostContents.missing(id, machine.store))
        case .held(.keys):
            let trouble = operation.trouble.flatMap(KeyTrouble.init(rawValue:)) ?? .absent
            return .failure(TreeError(.keys, trouble.detail, reason: trouble.rawValue))
        case .held(.data), .held(.removed):
            return .failure(TreeError(.refused, "another device changed the node: the operation waits for the app"))
        case .failed(let reason):
            return .failure(TreeError(.refused, "the operation failed (\(reason))", reason: reason))
        }
    }

    private static func result(of list: NodeParent, _ machine: TreeMachine) -> Result<Void, TreeError>? {
        do throws(TreeError) {
            if try machine.isListed(list) { return .success(()) }
        } catch { return .failure(error) }
        guard case .offline = machine.status else { return nil }
        return .failure(TreeError(.offline, "the connection ended before the children were read"))
    }

    private static func result(_ machine: TreeMachine) -> Result<Void, TreeError>? {
        for id in machine.queue.ids {
            if case .failure(let error)? = result(of: id, machine) { return .failure(error) }
        }
        if case .offline(.unauthorized(let text)) = machine.status { return .failure(TreeError(.network, text)) }
        if case .offline(.wrongAccount) = machine.status {
            return .failure(TreeError(.store, "the local tree belongs to another user"))
        }
        guard machine.queue.isEmpty, machine.channel.phase == .live, machine.push.inFlight == nil,
            machine.channel.wanted.isEmpty
        else { return nil }
        return .success(())
    }
}
