import ThicketNet
import ThicketProtocol
import ThicketServer

// The threads of a server that work on blobs.
extension SimulatedServer {
    func makeDirect() throws(StoreError) -> DirectBlobs? {
        guard world.scenario.trees > 0 else { return nil }
        var random = world.random.split()
        return DirectBlobs(ledger: try storage.makeBlobLedger(), blobs: blobs, limits: world.scenario.limits) { count in
            (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        }
    }

    /// A blob worker does the request at one moment, and its answer reaches the loop at another.
    func perform(_ order: BlobOrder, of id: ConnectionID, _ process: Process) {
        let body = process.calls[id].flatMap { WholeRequest(parsing: $0.bytes)?.content } ?? []
        world.after(world.random.delay(50, 20_000)) { [self] in
            guard self.process === process, let direct = process.direct,
                let answer = work({ direct.answer(order, body: body, now: instant.unix) })
            else { return }
            var response = answer.response
            if !answer.content.isEmpty { response.body = answer.content }
            world.after(world.random.delay(20, 5_000)) { [self] in
                guard self.process === process else { return }
                process.hub.respond(id, response)
                perform(process)
            }
        }
    }

    /// Work that writes blobs or their rows, with the faults inside of it.
    /// - Returns: nil when it failed or the process died in it.
    private func work<Value>(_ body: () throws(StoreError) -> Value) -> Value? {
        storage.beginWrite()
        blobs.beginRequest(dies: world.befalls(.commitCrash), fails: world.befalls(.commitRefused))
        let value = try? body()
        blobs.endRequest()
        endWrite()
        guard storage.isDown || blobs.isDown else { return value }
        world.tally.faults[.commitCrash] += 1
        crash()
        return nil
    }

    // MARK: - The sweep

    func sweep(_ ledger: any BlobLedger) -> BlobSweep {
        let age = world.scenario.orphanSeconds * 1_000
        return BlobSweep(ledger: ledger, store: blobs, uploadAge: 2 * age, orphanAge: age)
    }

    /// Sweeps between two searches for files without a row.
    private static let searchEvery = 8

    func scheduleSweep(_ process: Process, number: Int = 0) {
        guard world.scenario.blobs > 0 else { return }
        world.after(world.random.between(1, 20) * 1_000_000 * (world.scenario.isDays ? 60 : 1)) { [self] in
            guard self.process === process else { return }
            let report: BlobSweep.Report? = work { () throws(StoreError) in
                let sweep = sweep(try storage.makeBlobLedger())
                let report = try sweep.run(now: instant.unix)
                if number % Self.searchEvery == 0 { _ = try sweep.removeUnknown() }
                return report
            }
            guard self.process === process else { return }
            world.tally.blobsCollected += report?.orphans ?? 0
            scheduleSweep(process, number: number + 1)
        }
    }
}
