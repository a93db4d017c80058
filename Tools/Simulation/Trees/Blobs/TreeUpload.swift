import ThicketCrypto
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// One sealed file on its way to the server: the real machine, whose requests go through the simulated network.
final class TreeUpload {
    private unowned let device: TreeDevice
    let operation: OperationID
    /// The content of the file.
    let content: DataID
    private let bytes: [UInt8]
    private var machine: UploadMachine
    private var saved: [UInt8]
    private var isOver = false
    private let requests: BlobRequests
    private var world: World { device.world }

    /// - Parameter record: what the store has of the upload.
    init(_ device: TreeDevice, _ operation: OperationID, _ record: SpoolRecord, _ bytes: [UInt8]) {
        (self.device, self.operation, self.bytes) = (device, operation, bytes)
        (content, saved) = (record.plan.id, record.upload)
        let (length, part) = (UInt64(bytes.count), device.world.scenario.blobPartBytes)
        machine =
            UploadMachine(octets: record.upload, length: length, partBytes: part)
            ?? UploadMachine(length: length, partBytes: part)
        if machine.uploadID != nil { device.world.tally.blobsResumed += 1 }
        requests = BlobRequests(of: device.account)
    }

    /// Stops without an outcome.
    func end() { isOver = true }

    /// The upload is not wanted any more: the server need not keep its parts.
    func abort() {
        end()
        if let upload = machine.uploadID { TreeCall(device, requests.abort(upload), batch: nil) { _ in }.send() }
    }

    func proceed() {
        guard !isOver else { return }
        for action in machine.next(now: world.milliseconds) { perform(action) }
        if let outcome = machine.outcome {
            isOver = true
            return device.transfers.ended(self, outcome)
        }
        guard machine.inFlightCount == 0 else { return }
        world.agenda.at(max(machine.notBefore * 1_000, world.now + 1_000)) { [self] in proceed() }
    }

    private func perform(_ action: UploadMachine.Action) {
        switch action {
        case .hash(let part, let range):
            let hash = Hash.sha256(slice(range))
            world.after(1_000) { [self] in handle(.hashed(part: part, sha256: hash)) }
        case .send(let upload, let part, let range):
            let bytes = slice(range)
            world.tally.blobParts += 1
            ask(requests.part(part, of: upload, bytes), part: part) { _ in
                .sent(part: part, sha256: Hash.sha256(bytes))
            }
        case .sendWhole: ask(requests.whole(bytes)) { BlobRequests.blob($0).map { .completed($0) } }
        case .begin(let partBytes):
            ask(requests.begin(length: UInt64(bytes.count), partBytes: partBytes)) {
                BlobRequests.begun($0).map { .begun($0) }
            }
        case .askStatus(let upload):
            ask(requests.status(of: upload)) { BlobRequests.status($0).map { .status($0) } }
        case .complete(let upload, let hash):
            ask(requests.complete(upload, sha256: hash)) { BlobRequests.blob($0).map { .completed($0) } }
        case .abort(let upload):
            // Without success it expires.
            TreeCall(device, requests.abort(upload), batch: nil) { [self] _ in handle(.aborted) }.send()
        }
    }

    private func slice(_ range: Range<UInt64>) -> [UInt8] {
        Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }

    private func ask(
        _ request: [UInt8], part: Int? = nil, _ success: @escaping (HTTPResponse?) -> UploadMachine.Event?
    ) {
        TreeCall(device, request, batch: nil) { [self] response in
            let failure = BlobRequests.failure(response)
            let event = failure == nil ? success(response) : nil
            handle(event ?? .failed(failure ?? .badAnswer, part: part))
        }.send()
    }

    private func handle(_ event: UploadMachine.Event) {
        guard !isOver else { return }
        machine.handle(event, now: world.milliseconds, random: world.random.next())
        if machine.octets != saved {
            saved = machine.octets
            device.transfers.save(self, saved)
        }
        proceed()
    }
}
