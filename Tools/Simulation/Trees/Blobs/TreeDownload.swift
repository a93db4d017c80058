import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape
import ThicketTreesystem

/// One content on its way from the server: the real machine, whose requests go through the simulated network. Each
/// chunk is opened before it is kept.
final class TreeDownload {
    private unowned let device: TreeDevice
    let reference: BlobReference
    private var machine: DownloadMachine
    /// Whole chunks that were opened.
    private(set) var bytes: [UInt8]
    private var isOver = false
    private let requests: BlobRequests
    private var world: World { device.world }

    /// - Parameter bytes: chunks that an earlier run of the program has kept.
    init(_ device: TreeDevice, _ reference: BlobReference, _ bytes: [UInt8]) {
        (self.device, self.reference, self.bytes) = (device, reference, bytes)
        machine = DownloadMachine(
            ChunkSpan(.all, of: reference.map), verified: UInt64(bytes.count / ContentLayout.sealedChunkBytes))
        requests = BlobRequests(of: device.account)
    }

    /// Stops without an outcome.
    func end() { isOver = true }

    func proceed() {
        guard !isOver else { return }
        if let outcome = machine.outcome {
            isOver = true
            return device.transfers.ended(self, outcome)
        }
        guard let fetch = machine.next(now: world.milliseconds) else {
            return world.agenda.at(max(machine.notBefore * 1_000, world.now + 1_000)) { [self] in proceed() }
        }
        TreeCall(device, requests.read(reference, fetch.bytes), batch: nil) { [self] response in
            guard !isOver else { return }
            machine.handle(event(response, fetch), now: world.milliseconds, random: world.random.next())
            device.transfers.keep(self)
            proceed()
        }.send()
    }

    private func event(_ response: HTTPResponse?, _ fetch: DownloadMachine.Fetch) -> DownloadMachine.Event {
        if let failure = BlobRequests.failure(response) { return .failed(failure) }
        guard var piece = BlobRequests.piece(response, from: fetch.bytes.lowerBound) else { return .failed(.badAnswer) }
        guard piece.total == reference.sealedLength else { return .wrong(stored: 0, fault: .contentMismatch) }
        // The connection ended within the answer.
        if world.befalls(.lostCall) {
            let count = world.random.below(piece.bytes.count)
            piece = BlobPiece(bytes: Array(piece.bytes.prefix(count)), total: piece.total)
        }
        return store(piece.bytes, fetch)
    }

    private func store(_ piece: [UInt8], _ fetch: DownloadMachine.Fetch) -> DownloadMachine.Event {
        let layout = reference.map.layout
        var stored: UInt64 = 0
        for chunk in fetch.chunks {
            let range = layout.sealedRange(of: chunk)
            let start = Int(range.lowerBound - fetch.bytes.lowerBound)
            guard start + range.count <= piece.count else { break }
            let sealed = Array(piece[start..<start + range.count])
            guard opens(chunk, sealed) else { return .wrong(stored: stored, fault: .contentDamaged) }
            bytes += sealed
            stored += 1
        }
        return .stored(stored)
    }

    private func opens(_ chunk: UInt64, _ sealed: [UInt8]) -> Bool {
        let layout = reference.map.layout
        do {
            let opener = try ContentOpener(reference.key, length: layout.length, storedLength: layout.sealedLength)
            try opener.read(
                layout.clearRange(of: chunk),
                from: { _, room in
                    room.copyBytes(from: sealed.prefix(room.count))
                    return min(room.count, sealed.count)
                }, { _ in })
            return true
        } catch { return false }
    }
}
