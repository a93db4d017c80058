import ThicketTreeShape

/// The operations of a tree that the server has not confirmed, in the order in which they were made. Pure.
package struct OperationQueue: Sendable {
    /// Most operations that wait; a further local change is refused with `limit`.
    package static let operationsMax = 100_000

    private var operations = [OperationID: PendingOperation]()
    /// The ids of `operations`, ascending.
    private var order = [OperationID]()
    private var byNode = [NodeID: [OperationID]]()
    private var byPlace = [Place: Set<OperationID>]()
    /// The operations that put a node below one, or take it from there.
    private var byParent = [NodeParent: Set<OperationID>]()
    private var byGroup = [Int64: Set<OperationID>]()
    /// The operations that depend on one.
    private var followers = [OperationID: Set<OperationID>]()
    /// The operations that send nodes to other accounts.
    private(set) var copies = Set<OperationID>()
    /// The operations that change lists of shared branches.
    private(set) var shares = Set<OperationID>()
    /// The operations of eager re-keys.
    private(set) var rekeys = Set<OperationID>()
    /// The operations that write nodes for their keys only (`Renewals`).
    private(set) var renewals = Set<OperationID>()
    /// Operations whose content the app or the disk is providing now, or that are being uploaded. Not in the store.
    package internal(set) var asked = Set<OperationID>()
    /// Operations that were refused, and the time before which each is not sent again. Others go on meanwhile. Not in
    /// the store.
    package internal(set) var pauses = [OperationID: Int64]()

    package init() {}

    package var count: Int { operations.count }
    package var isEmpty: Bool { operations.isEmpty }
    package var ids: [OperationID] { order }

    package subscript(id: OperationID) -> PendingOperation? { operations[id] }

    /// The operations of a node, in order.
    package func operations(of node: NodeID) -> [PendingOperation] {
        (byNode[node] ?? []).compactMap { operations[$0] }
    }

    /// The next operation of the same node that puts it elsewhere.
    func nextMove(after operation: PendingOperation) -> PendingOperation? {
        operations(of: operation.node).first { $0.id > operation.id && $0.target != nil }
    }

    package func has(_ node: NodeID) -> Bool { byNode[node] != nil }

    /// What all waiting writes of a node write together.
    package func fields(of node: NodeID) -> WriteFields {
        operations(of: node).reduce(into: []) { $0.formUnion($1.fields) }
    }

    package func hasFollowers(_ id: OperationID) -> Bool { !(followers[id] ?? []).isEmpty }

    /// Whether operations of other nodes depend on one of this node.
    package func isNeeded(_ node: NodeID) -> Bool {
        (byNode[node] ?? []).contains { id in
            (followers[id] ?? []).contains { operations[$0]?.node != node }
        }
    }

    /// Whether one of the operations depends on another one, or on something that does.
    package func depends(_ ids: Set<OperationID>, on other: OperationID) -> Bool {
        var (waiting, seen) = (Array(ids), ids)
        while let id = waiting.popLast() {
            if id == other { return true }
            for earlier in operations[id]?.dependencies ?? [] where seen.insert(earlier).inserted {
                waiting.append(earlier)
            }
        }
        return false
    }

    /// Removes dependencies that lead from an operation back to it: none of its cycle could ever be sent.
    ///
    /// Only those are removed by which an operation waits for a name, as far as there are some: the server refuses a
    /// name that is still taken, and then the node gets another one.
    ///
    /// - Returns: the operations with fewer dependencies.
    package mutating func breakCycles(through id: OperationID) -> [OperationID] {
        var changed = [OperationID]()
        while let cycle = cycle(through: id) {
            let links = Array(zip(cycle, cycle.dropFirst()))
            guard let (later, earlier) = links.first(where: waitsForName) ?? links.first else { break }
            operations[later]?.dependencies.remove(earlier)
            followers[earlier]?.remove(later)
            changed.append(later)
        }
        return changed
    }

    // MARK: - Nodes that are created again

    /// Ends the groups of a node's operations that are not being sent.
    ///
    /// - Returns: the operations that are in no group any more, all of those groups.
    package mutating func divideGroups(of node: NodeID) -> [PendingOperation] {
        let groups = Set(operations(of: node).compactMap(\.group))
        if groups.isEmpty { return [] }
        let members = groups.flatMap { byGroup[$0] ?? [] }.filter { operations[$0]?.isSending == false }.sorted()
        for id in members {
            guard var operation = operations[id] else { continue }
            operation.group = nil
            replace(operation)
        }
        return members.compactMap { operations[$0] }
    }

    /// The operations that put other nodes below one, in order.
    package func placing(below node: NodeID) -> [PendingOperation] {
        (byParent[.node(node)] ?? []).sorted().compactMap { operations[$0] }.filter {
            $0.target?.parent == .node(node) && $0.node != node
        }
    }

    /// Puts a creation before the operations that put nodes below its node, or copy it.
    ///
    /// - Returns: the operations that changed.
    package mutating func follow(_ creation: PendingOperation) -> [PendingOperation] {
        var changed = Set<OperationID>()
        for var operation in placing(below: creation.node) + operations(of: creation.node).filter(\.isCopy) {
            operation.dependencies.insert(creation.id)
            replace(operation)
            changed.insert(operation.id)
        }
        if changed.isEmpty { return [] }
        changed.formUnion(breakCycles(through: creation.id))
        return changed.sorted().compactMap { operations[$0] }
    }

    private func waitsForName(_ later: OperationID, _ earlier: OperationID) -> Bool {
        guard let later = operations[later], let earlier = operations[earlier], later.node != earlier.node else {
            return false
        }
        return later.places.contains { earlier.places.contains($0) } && later.target?.parent != .node(earlier.node)
    }

    /// The operations of a way from one back to itself, each followed by one on which it depends; nil if none.
    private func cycle(through id: OperationID) -> [OperationID]? {
        var (previous, waiting) = ([OperationID: OperationID](), [id])
        while let each = waiting.popLast() {
            for earlier in operations[each]?.dependencies ?? [] where previous[earlier] == nil {
                previous[earlier] = each
                if earlier != id {
                    waiting.append(earlier)
                    continue
                }
                var path = [id]
                while let later = previous[path[path.count - 1]] {
                    path.append(later)
                    if later == id { return path.reversed() }
                }
            }
        }
        return nil
    }

    // MARK: - Adding

    /// The operations on which a new one depends.
    ///
    /// - Parameters:
    ///   - branch: the nodes that a removal removes; used for removals only.
    ///   - ancestors: the nodes from the first place up to the trunk, the place included.
    package func dependencies(
        of new: PendingOperation, branch: () throws(TreeError) -> [NodeID] = { () throws(TreeError) in [] },
        ancestors: (NodeParent) throws(TreeError) -> [NodeID]
    ) throws(TreeError) -> Set<OperationID> {
        var candidates = Set(byNode[new.node] ?? [])
        for place in new.places { candidates.formUnion(byPlace[place] ?? []) }
        if new.isDelete || new.isCopy {
            for node in try branch() {
                candidates.formUnion(byNode[node] ?? [])
                candidates.formUnion(byParent[.node(node)] ?? [])
            }
        } else if let target = new.target {
            for node in try ancestors(target.parent) { candidates.formUnion(byNode[node] ?? []) }
        }
        var found = Set<OperationID>()
        for id in candidates where id < new.id {
            guard let earlier = operations[id] else { continue }
            let isBelow = { (place: NodeParent, node: NodeID) throws(TreeError) -> Bool in
                try ancestors(place).contains(node)
            }
            if try QueueRules.depends(new, on: earlier, isBelow: isBelow) { found.insert(id) }
        }
        return found
    }

    /// The waiting write of the same node into which a new one can be merged without changing the order of anything
    /// else; nil if none.
    package func mergeTarget(of new: PendingOperation) -> PendingOperation? {
        guard new.isWrite, !new.isKept, let last = operations(of: new.node).last, last.isWrite, !last.isKept,
            last.state == .waiting, last.group == new.group, !hasFollowers(last.id),
            new.dependencies.allSatisfy({ $0 <= last.id })
        else { return nil }
        return last
    }

    package mutating func add(_ operation: PendingOperation) {
        operations[operation.id] = operation
        if let last = order.last, last > operation.id {
            order.insert(operation.id, at: order.firstIndex { $0 > operation.id } ?? order.endIndex)
        } else {
            order.append(operation.id)
        }
        byNode[operation.node, default: []].append(operation.id)
        if operation.isCopy { copies.insert(operation.id) }
        if operation.fields.contains(.sharing) { shares.insert(operation.id) }
        if operation.fields.contains(.rekey) { rekeys.insert(operation.id) }
        if operation.isRenewal { renewals.insert(operation.id) }
        byNode[operation.node]?.sort()
        link(operation)
    }

    /// Dependencies on operations that are no longer in the queue are left out: the caller may have a copy from before.
    package mutating func replace(_ operation: PendingOperation) {
        guard let old = operations[operation.id] else { return }
        var operation = operation
        operation.dependencies = operation.dependencies.filter { operations[$0] != nil }
        operations[operation.id] = operation
        // A node that was removed elsewhere is created again by what waits for it.
        if !operation.isRenewal { renewals.remove(operation.id) }
        let isLinked = old.places == operation.places && old.dependencies == operation.dependencies
        if isLinked, old.group == operation.group { return }
        unlink(old)
        link(operation)
    }

    private mutating func link(_ operation: PendingOperation) {
        for place in operation.places {
            byPlace[place, default: []].insert(operation.id)
            byParent[place.parent, default: []].insert(operation.id)
        }
        for earlier in operation.dependencies { followers[earlier, default: []].insert(operation.id) }
        if let group = operation.group { byGroup[group, default: []].insert(operation.id) }
    }

    private mutating func unlink(_ operation: PendingOperation) {
        for place in operation.places {
            Self.remove(operation.id, of: place, in: &byPlace)
            Self.remove(operation.id, of: place.parent, in: &byParent)
        }
        for earlier in operation.dependencies { Self.remove(operation.id, of: earlier, in: &followers) }
        if let group = operation.group { Self.remove(operation.id, of: group, in: &byGroup) }
    }

    private static func remove<Key>(
        _ id: OperationID, of key: Key, in index: inout [Key: Set<OperationID>]
    ) {
        index[key]?.remove(id)
        if index[key]?.isEmpty == true { index[key] = nil }
    }

    /// Removes an operation that is confirmed or dropped; what depended on it no longer does.
    ///
    /// - Returns: the operations that depended on it.
    @discardableResult
    package mutating func remove(_ id: OperationID) -> [OperationID] {
        guard let operation = operations.removeValue(forKey: id) else { return [] }
        asked.remove(id)
        copies.remove(id)
        shares.remove(id)
        rekeys.remove(id)
        renewals.remove(id)
        pauses[id] = nil
        unlink(operation)
        if let place = place(of: id) { order.remove(at: place) }
        byNode[operation.node]?.removeAll { $0 == id }
        if byNode[operation.node]?.isEmpty == true { byNode[operation.node] = nil }
        let waiting = (followers.removeValue(forKey: id) ?? []).sorted()
        for follower in waiting { operations[follower]?.dependencies.remove(id) }
        return waiting
    }

    private func place(of id: OperationID) -> Int? {
        var (low, high) = (0, order.count)
        while low < high {
            let middle = (low + high) / 2
            if order[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low < order.count && order[low] == id ? low : nil
    }

    /// Ends the pauses that are over.
    mutating func endPauses(at now: Int64) {
        if pauses.values.contains(where: { $0 <= now }) { pauses = pauses.filter { $0.value > now } }
    }

    // MARK: - Sending

    /// The operations for the next request, in an order that respects all dependencies.
    ///
    /// Operations of one group are all in it or none. An operation that waits for the app blocks those that depend on
    /// it and no others.
    ///
    /// - Parameters:
    ///   - max: most operations, except that one group is never divided.
    ///   - isReady: whether an operation may be sent, apart from its dependencies.
    package func next(max: Int, isReady: (PendingOperation) -> Bool) -> [OperationID] {
        var (chosen, taken) = ([OperationID](), Set<OperationID>())
        for id in byPriority {
            if chosen.count >= max { break }
            guard !taken.contains(id), let unit = unit(of: id, taken, isReady) else { continue }
            if chosen.count + unit.count > max, !chosen.isEmpty { continue }
            chosen += unit
            taken.formUnion(unit)
        }
        return chosen
    }

    private var byPriority: [OperationID] {
        guard operations.values.contains(where: { $0.priority != 0 }) else { return order }
        return order.sorted {
            let (left, right) = (operations[$0]?.priority ?? 0, operations[$1]?.priority ?? 0)
            return left == right ? $0 < $1 : left > right
        }
    }

    /// The operation with its group; nil if one of them cannot be sent now.
    private func unit(
        of id: OperationID, _ taken: Set<OperationID>, _ isReady: (PendingOperation) -> Bool
    ) -> [OperationID]? {
        guard let operation = operations[id] else { return nil }
        let members = operation.group.map { (byGroup[$0] ?? []).sorted() } ?? [id]
        let together = taken.union(members)
        for member in members {
            guard let each = operations[member], each.state == .waiting, isReady(each),
                each.dependencies.isSubset(of: together)
            else { return nil }
        }
        return members
    }
}
