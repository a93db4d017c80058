import ThicketProtocol
import ThicketServer
import ThicketTreeShape

/// Compares the blobs of the server, its references and the files of devices with the records, at rest.
struct BlobRest {
    private let world: World
    private var server: SimulatedServer { world.server }

    init(_ world: World) { self.world = world }

    /// At any time: the server has the bytes of each blob that a record names.
    func lookForLost() {
        guard world.scenario.blobs > 0 else { return }
        for account in world.names.accounts {
            for (node, state) in world.tree(of: account).nodes.sorted(by: { $0.key < $1.key }) {
                guard case .blob(_, _, let blob)? = state.record.data, !server.blobs.has(blob) else { continue }
                world.problem("the bytes of blob \(blob), which \(node) names, are gone")
            }
        }
    }

    func compare() {
        guard world.scenario.blobs > 0 else { return }
        do {
            let ledger = try server.storage.makeBlobLedger()
            let named = try compareRecords(ledger)
            try collect(ledger)
            try compareStored(named, ledger)
        } catch {
            world.problem("the blobs cannot be read: \(error)")
        }
    }

    /// Each record that names a blob is counted as a reference, and the server and the devices have all its bytes.
    private func compareRecords(_ ledger: any BlobLedger) throws(StoreError) -> Set<BlobID> {
        var named = Set<BlobID>()
        for account in world.names.accounts {
            let sealed = world.treeRecords[account.number].sealed
            let nodes = world.tree(of: account).nodes
            for (node, state) in nodes.sorted(by: { $0.key < $1.key }) {
                guard case .blob(let content, let length, let blob)? = state.record.data else { continue }
                named.insert(blob)
                let found = try server.blobs.open(blob)?.read(at: 0, count: Int(length))
                if found == nil { world.problem("the bytes of blob \(blob), which \(node) names, are gone") }
                if let found, found != sealed[content] {
                    world.problem("blob \(blob) of \(node) is not what a device has sealed")
                }
                if try ledger.length(of: blob, in: node, of: account.app, account.user) != Int64(length) {
                    world.problem("\(node) names blob \(blob), and the server does not count it as a reference")
                }
                for device in world.trees.devices where device.account.number == account.number {
                    if device.transfers.files[content] != sealed[content] {
                        world.problem("device \(device.number) has another content of \(node)")
                    }
                }
            }
        }
        return named
    }

    /// The time of all orphans and uploads is over.
    private func collect(_ ledger: any BlobLedger) throws(StoreError) {
        let sweep = server.sweep(ledger)
        _ = try sweep.run(now: server.instant.unix + 2 * BlobSweep.uploadAge)
        _ = try sweep.removeUnknown()
    }

    /// What is left after it is what records name, no more and no less.
    private func compareStored(_ named: Set<BlobID>, _ ledger: any BlobLedger) throws(StoreError) {
        var stored = Set<BlobID>()
        try server.blobs.list { blob in stored.insert(blob.id) }
        for blob in named.subtracting(stored).sorted() { world.problem("blob \(blob) was collected, and is named") }
        for blob in stored.subtracting(named).sorted() { world.problem("blob \(blob) is an orphan, and is kept") }
        let total = try ledger.total()
        if total.count != named.count || total.openCount != 0 {
            world.problem("the server counts \(total.count) blobs and \(total.openCount) uploads, not \(named.count)")
        }
        let uploads = try server.blobs.uploads()
        if !uploads.isEmpty { world.problem("the server keeps parts of \(uploads.count) uploads") }
    }
}

extension World {
    /// The tree of an account, as its log makes it.
    func tree(of account: Account) -> TreeTruth {
        names.tree.map { ledger.mirror(names.id($0, of: account)).tree } ?? TreeTruth()
    }

    /// The contents that the records of an account name, by node.
    func blobContents(of account: Account) -> [NodeID: DataID] {
        tree(of: account).nodes.compactMapValues { node in
            if case .blob(let content, _, _)? = node.record.data { content } else { nil }
        }
    }
}
