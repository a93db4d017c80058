import ThicketProtocol
package import ThicketTreeShape

/// Lists of children, for a lazy skeleton.
extension TreeMachine {
    /// Whether all children of a place are known: always in a full skeleton.
    package func isListed(_ parent: NodeParent) throws(TreeError) -> Bool { try skeleton.isListed(parent) }

    /// Reads the children of places whose lists this device does not have.
    package mutating func load(_ parents: [NodeParent]) throws(TreeError) {
        for parent in parents.reversed() where try !isListed(parent) { lists.prefer(parent) }
    }

    /// A new device reads the first levels; one that has lost its position reads again what it had read.
    mutating func beginLists() throws(TreeError) {
        let scan = try newScan()
        channel.phase = .listing(scan)
        channel.answerDue = nil
        lists = ChildListing(after: lists)
        for trunk in BranchChannel.trunks(options.branch) {
            lists.add(.trunk(trunk), levels: (options.skeleton.depth ?? 1) - 1)
        }
        for parent in try store.listedParents() { lists.add(parent) }
    }

    /// Runs at the end of each turn.
    mutating func pumpLists() {
        switch channel.phase {
        case .listing, .catchingUp, .live: break
        case .closed, .opening, .scanning, .refused: return
        }
        guard link.isOpen, !push.waitsForToken, let (number, query) = lists.next(at: skeleton.time.monotonic) else {
            return
        }
        skeleton.actions.append(.children(number, query))
    }

    package mutating func childrenListed(_ number: Int64, _ reply: ChildrenReply) throws(TreeError) {
        guard let tasks = lists.finish(number) else { return }
        switch reply {
        case .page(let page): try received(page, tasks)
        case .failed(_, let pause):
            lists.again(tasks)
            lists.retryAt = skeleton.time.monotonic + max(pause, lists.backoff.next(random.next()))
        case .unauthorized:
            lists.again(tasks)
            tokenEnded("the token was refused")
        }
    }

    private mutating func received(_ page: ChildrenPage, _ tasks: [ChildListing.Task]) throws(TreeError) {
        guard page.lists.map(\.parent) == tasks.map(\.parent) else {
            lists.again(tasks)
            return waitForLists()
        }
        var isStuck = false
        var scan = listingScan
        if scan?.current == nil { scan?.current = page.current }
        for (list, task) in zip(page.lists, tasks) {
            scan?.read += Int64(list.nodes.count)
            for node in list.nodes {
                guard node.id == options.branch?.root || node.isListed(below: list.parent) else {
                    try skeleton.reportFault(
                        IntegrityFault(node.id, .form, "the server lists it below another node than its parent"))
                    continue
                }
                skeleton.branches.isListing = true
                defer { skeleton.branches.isListing = false }
                try received(node, scan)
                if let levels = task.levels, levels > 0 { lists.add(.node(node.id), levels: levels - 1) }
            }
            if let next = list.next {
                if !lists.goOn(task, before: next) { isStuck = true }
            } else {
                lists.complete(list.parent)
                skeleton.hasWritten = true
                try store.setListed(list.parent, true)
            }
        }
        if isStuck { waitForLists() } else { lists.backoff.reset() }
        guard let scan else { return }
        channel.phase = .listing(scan)
        if lists.isIdle { try finishLists(scan) }
    }

    private mutating func waitForLists() {
        lists.retryAt = skeleton.time.monotonic + lists.backoff.next(random.next())
    }

    private var listingScan: TreeChannel.Scan? { if case .listing(let scan) = channel.phase { scan } else { nil } }

    private mutating func received(_ node: ListedNode, _ scan: TreeChannel.Scan?) throws(TreeError) {
        if let version = lists.removed[node.id], version >= node.version { return }
        let isSame = scan?.isSame ?? true
        if let row = try store.row(node.id), row.version > 0 {
            skeleton.hasWritten = true
            if let scan { try store.setScan(scan.id, of: node.id) }
            // The log may have brought a newer record before the page arrived.
            if isSame, row.version >= node.version { return }
            if !isSame { try DifferingNodes.keep(row, node.object, &skeleton) }
        }
        try received(node.id, node.object, version: node.version)
    }

    private mutating func finishLists(_ scan: TreeChannel.Scan) throws(TreeError) {
        try UnlistedNodes.remove(scan, &self)
        try endReading(scan)
    }
}

extension ListedNode {
    /// Whether the record belongs to a list. One that names no parent is quarantined there.
    fileprivate func isListed(below parent: NodeParent) -> Bool {
        guard let named = object["p"]?.stringValue.flatMap(NodeParent.init(text:)) else { return true }
        return named == parent
    }
}
