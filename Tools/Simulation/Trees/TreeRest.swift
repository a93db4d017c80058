import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Compares the trees of all devices with the server's, at rest.
struct TreeRest {
    private let world: World

    init(_ world: World) { self.world = world }

    func compare() {
        guard let bucket = world.names.tree else { return }
        for account in world.names.accounts {
            let truth = world.ledger.mirror(world.names.id(bucket, of: account)).tree
            do {
                let shown = try opened(truth, world.names.treeKeys(of: account))
                for device in world.trees.devices where device.account.number == account.number {
                    try compare(device, shown)
                }
            } catch {
                world.problem("the tree of account \(account.number) cannot be read: \(error)")
            }
            lookForLost(account, truth)
            let records = world.treeRecords[account.number]
            world.tally.batches += records.made
            world.tally.batchesRepeated += records.repeated
            world.tally.batchesRefused += records.refused
        }
    }

    /// What the server has, as a device with the keys must show it: the path and the version of each node.
    private func opened(_ truth: TreeTruth, _ keys: TreeKeys) throws -> [NodeID: String] {
        let opener = NodeOpener(keys.tree)
        let below = Dictionary(grouping: truth.nodes) { $0.value.record.parent }
        var nodes = [NodeID: String]()
        var waiting = Trunk.allCases.map { (parent: keys.parent($0), path: TreePath($0)) }
        while let (parent, path) = waiting.popLast() {
            for (id, node) in below[parent.parent] ?? [] {
                let opened = try opener.open(node.record, id, below: parent)
                let own = path.appending(opened.name)
                nodes[id] = "\(own.description) v\(node.version)"
                waiting.append((opened.childKeys, own))
            }
        }
        return nodes
    }

    private func compare(_ device: TreeDevice, _ wanted: [NodeID: String]) throws {
        var shown = [NodeID: String]()
        for node in try device.shown() { shown[node.id] = "\(node.path.description) v\(node.version)" }
        for id in Set(wanted.keys).union(shown.keys).sorted() where wanted[id] != shown[id] {
            let row = try device.store.row(id).map { "\($0.state) v\($0.version) below \($0.parent.text.prefix(4))" }
            world.problem(
                "device \(device.number): \(id.text.prefix(4)) is \(shown[id] ?? "not shown") (\(row ?? "no row")), "
                    + "the server has \(wanted[id] ?? "nothing")")
        }
        for id in try device.store.orphans() + device.store.stranded() {
            let row = try device.store.row(id).map { "\($0.state) v\($0.version) below \($0.parent.text.prefix(4))" }
            world.problem("device \(device.number): \(id.text.prefix(4)) (\(row ?? "no row")) has no way to a trunk")
        }
        if let fault = try device.store.faults().first {
            world.problem("device \(device.number) has a record in quarantine: \(fault.node) \(fault.kind)")
        }
    }

    /// Each created node exists, or was removed or given up by a user.
    private func lookForLost(_ account: Account, _ truth: TreeTruth) {
        let records = world.treeRecords[account.number]
        for (id, device) in records.created.sorted(by: { $0.key < $1.key }) {
            if truth.nodes[id] == nil, !records.gone.contains(id) {
                world.problem("node \(id), which device \(device) created, is lost")
            }
        }
    }
}

extension TreeDevice {
    /// It has everything, and nothing to send.
    var isAtRest: Bool {
        isSynced && machine.queue.isEmpty && transfers.isComplete(world.blobContents(of: account))
    }

    /// What keeps it from rest.
    var summary: String {
        let states = machine.queue.ids.compactMap { machine.queue[$0] }.map {
            "\($0.id) \($0.node.text.prefix(4)) \($0.isDelete ? "delete" : "fields \($0.fields.rawValue)") \($0.state) "
                + "\($0.content) waits \($0.waitsFor ?? 0) on \($0.dependencies.sorted())"
        }
        return "device \(number) (\(machine.status)): \(states)"
    }
}
