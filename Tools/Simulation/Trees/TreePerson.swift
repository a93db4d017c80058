import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// The user of one device with a tree: creates, moves, renames and removes nodes, writes content, resolves what waits
/// in the queue, and goes offline.
final class TreePerson {
    private unowned let device: TreeDevice
    private let world: World
    private let names: [NodeName]
    private var number: Int { device.number }
    private var written = 0

    init(_ device: TreeDevice) {
        self.device = device
        world = device.world
        names = ["a", "A", "b", "c", "d e", "ä", "long name.txt"].compactMap { try? NodeName($0) }
    }

    func begin() {
        guard world.scenario.isDays else { return work(until: .max) }
        live()
    }

    /// A stretch of work, then another activity, again and again.
    private func live() {
        guard !world.isCalm else { return }
        let end = world.now + world.random.between(30, 240) * 1_000_000
        work(until: end)
        world.agenda.at(end + world.random.between(60, 600) * 60_000_000) { [self] in live() }
    }

    private func work(until end: Int64) {
        let pace = world.scenario.pace
        world.after(world.random.between(pace / 10, pace * 2)) { [self] in
            guard !world.isCalm, world.now < end else { return }
            act()
            work(until: end)
        }
    }

    // MARK: - Changes

    private func act() {
        if world.random.chance(60) { return goOffline() }
        do throws(TreeError) {
            try change()
            world.tally.treeChanges += 1
        } catch {
            let expected: [TreeError.Code] = [.nameTaken, .parentMissing, .cycle, .depth, .notFound, .limit, .store]
            if !expected.contains(error.code) { world.problem("device \(number): \(error)") }
        }
    }

    private func goOffline() {
        device.goOffline()
        world.after(world.random.delay(100_000, 30_000_000)) { [device] in device.goOnline() }
    }

    private func pick<Element>(_ list: [Element]) -> Element? {
        list.isEmpty ? nil : list[world.random.below(list.count)]
    }

    private func change() throws(TreeError) {
        let nodes = try device.shown()
        guard let name = pick(names) else { return }
        let parent = world.random.chance(300) ? TreePath(.home) : pick(nodes)?.path ?? TreePath(.home)
        let path = parent.appending(name)
        switch world.random.below(nodes.count > world.scenario.nodes ? 20 : 12) {
        case 0...3: try create(path, content: content())
        case 4...6: if let node = pick(nodes) { try move(node.id, to: path) }
        case 7: if let node = pick(nodes), let above = node.path.parent { try move(node.id, to: above.appending(name)) }
        case 8: if let node = pick(nodes) { try write(node.id) }
        case 9: try resolve(pick(device.machine.queue.ids), discards: world.random.chance(300))
        case 10: try createTogether(path)
        case 11 where world.random.chance(500):
            // Devices that do this at the same time would make a cycle together.
            let high = nodes.filter { $0.path.depth <= 2 }
            if let node = pick(high), let below = pick(high), let own = node.path.name {
                try move(node.id, to: below.path.appending(own))
            }
        default: if let node = pick(nodes) { try remove(node.id) }
        }
    }

    /// The story of the user, for people who read the trace.
    private func narrate(_ what: String) { world.record("tree user", number, Array(what.utf8)) }

    private func content() -> LocalContent {
        if device.transfers.isLarge() { return .source(path: "a file") }
        switch world.random.below(3) {
        case 0: return .none
        case 1: return .ask
        default: return .held(text())
        }
    }

    private func text() -> NodeContent {
        written += 1
        return NodeContent(data: Array("device \(number), text \(written)".utf8))
    }

    private func create(
        _ path: TreePath, content: LocalContent, _ queueing: TreeMachine.Queueing = .init()
    ) throws(TreeError) {
        let row = try device.local { machine throws(TreeError) in
            try machine.create(at: path, content: content, queueing: queueing)
        }
        narrate("creates \(row?.id.text ?? "?") at \(path)")
        if let row { world.treeRecords[device.account.number].create(row.id, on: number) }
    }

    /// Two nodes that reach the server together or not at all.
    private func createTogether(_ path: TreePath) throws(TreeError) {
        guard let part = pick(names) else { return }
        let rows = try device.local { machine throws(TreeError) in
            var queueing = TreeMachine.Queueing()
            queueing.group = try machine.store.nextOperation().number
            let parent = try machine.create(at: path, content: .none, queueing: queueing)
            let child = try machine.create(at: path.appending(part), queueing: queueing)
            return [parent, child]
        }
        for row in rows ?? [] { narrate("creates \(row.id) in a group, below \(row.parent.text)") }
        for row in rows ?? [] { world.treeRecords[device.account.number].create(row.id, on: number) }
    }

    private func move(_ node: NodeID, to path: TreePath) throws(TreeError) {
        _ = try device.local { machine throws(TreeError) in try machine.move(node, to: path) }
        narrate("moves \(node) to \(path)")
    }

    private func write(_ node: NodeID) throws(TreeError) {
        let text = text()
        let content = device.transfers.isLarge() ? LocalContent.source(path: "a file") : .held(text)
        _ = try device.local { machine throws(TreeError) in try machine.setContent(of: node, content) }
        narrate("writes \(node)")
    }

    private func remove(_ node: NodeID) throws(TreeError) {
        let branch = try device.store.branch(of: node)
        let (outdated, unknown) = (world.random.chance(500), world.random.chance(500))
        // Recorded before it is tried: if the program dies in it, it may be in the store or not.
        world.treeRecords[device.account.number].remove(
            TreeRecords.Removal(
                device: number, node: node, includesOutdated: outdated, includesUnknown: unknown))
        world.treeRecords[device.account.number].lose(branch)
        _ = try device.local { machine throws(TreeError) in
            try machine.delete(node, outdated: outdated, unknown: unknown)
        }
        narrate("removes \(node), outdated \(outdated), unknown \(unknown), \(branch.count) nodes")
    }

    // MARK: - The queue

    private func resolve(_ id: OperationID?, discards: Bool) throws(TreeError) {
        guard let id, let operation = device.machine.queue[id] else { return }
        narrate("\(discards ? "discards" : "repeats") operation \(id) of \(operation.node), \(operation.state)")
        guard discards else {
            _ = try device.local { machine throws(TreeError) in try machine.retry(id) }
            return
        }
        let branch = try device.store.branch(of: operation.node)
        let made = try device.local { machine throws(TreeError) in
            try machine.discard(id)
            return true
        }
        if made != false { world.treeRecords[device.account.number].lose(branch) }
    }

    /// At rest: what waits for the user is sent again or given up.
    func mend() {
        device.transfers.complete(world.blobContents(of: device.account))
        for id in device.machine.queue.ids {
            guard let operation = device.machine.queue[id] else { continue }
            switch operation.state {
            case .waiting, .sending: continue
            case .held, .failed: break
            }
            do throws(TreeError) { try resolve(id, discards: world.random.chance(300)) } catch {
                if ![.notFound, .limit].contains(error.code) { world.problem("device \(number): \(error)") }
            }
        }
    }

    /// The machine asks for the content of an operation.
    func asked(_ id: OperationID, _ node: Node) {
        let isMissing = world.befalls(100)
        let content = text()
        let question = device.transfers.question(id)
        let large = device.transfers.isLarge() ? device.transfers.content() : nil
        world.after(world.random.delay(1_000, 3_000_000)) { [device, world] in
            // A program that was killed gives no content; without blobs it does, so that older seeds stay the same.
            guard device.transfers.isCurrent(id, question) || world.scenario.blobs == 0 else { return }
            guard let large, !isMissing else { return device.provide(id, isMissing ? .unavailable : .held(content)) }
            device.transfers.provide(id, large)
        }
    }

    func follow(_ event: TreeEvent) {
        switch event {
        case .integrity(let fault):
            world.problem("device \(number): a false alarm: \(fault.node) \(fault.kind): \(fault.detail)")
        case .conflict: world.tally.treeConflicts += 1
        case .pushed: world.tally.treePushes += 1
        case .discovered(let node, _), .modified(let node, _, _): device.transfers.arrived(node.id)
        case .delivered, .operationFailed, .moved, .deleted, .caughtUp, .gap: break
        }
    }
}
