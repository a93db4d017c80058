import ThicketNet
import ThicketProtocol
import ThicketServer
import ThicketTreeShape

// Requests by HTTP: the code of the data API and of the blob workers, without sockets.
extension SimulatedServer {
    /// - Returns: false when the server is down.
    func request(_ call: TreeCall) -> Bool {
        guard let process else { return false }
        guard let request = WholeRequest(parsing: mutation.map { TreeFlaws.received(call.bytes, $0) } ?? call.bytes)
        else {
            world.problem("device \(call.device.number) sends a request that cannot be read")
            return true
        }
        let id = nextConnection(process)
        process.calls[id] = call
        world.record("server < call", call.device.number)
        let response = process.hub.begin(request, on: id, now: instant, blobPartBytesMin: Scenario.blobPartBytesMin)
        if let response { respond(id, response, process) }
        perform(process)
        return true
    }

    /// The process has died. By number: the order of a dictionary is not determined by the seed.
    func endConnections(_ process: Process) {
        for link in process.links.values.sorted(by: { $0.serial < $1.serial }) { link.serverDied() }
        for (_, call) in process.calls.sorted(by: { $0.key.serial < $1.key.serial }) { call.failed() }
    }

    func respond(_ id: ConnectionID, _ response: HTTPResponse, _ process: Process) {
        guard let call = process.calls.removeValue(forKey: id) else { return }
        process.slots.remove(id.slot)
        world.record("server > answer", call.device.number, response.body)
        if let batch = call.batch { check(batch, response, of: call.device.account) }
        call.answered(response)
    }

    private func check(_ batch: BatchID, _ response: HTTPResponse, of account: Account) {
        guard let tree = world.names.tree else { return }
        let mirror = world.ledger.mirror(world.names.id(tree, of: account))
        let flaw = world.treeRecords[account.number].answer(batch, response.body, mirror.tree) { node, version in
            guard let key = try? EntityKey(node.text) else { return nil }
            return mirror.entities[key]?.history[version]
        }
        if let flaw { world.problem(flaw) }
    }
}
