import ThicketNet
import ThicketProtocol
import ThicketScheduling
import ThicketTreeShape

/// The network loop's side of requests about blobs: which are in progress, and how many bytes of each wait for a
/// worker. Runs on the loop's thread.
final class BlobDesk {
    /// Bytes of one body that may wait for a worker; the last piece may exceed it. The body is not read meanwhile.
    static let queuedBytesMax = 128 << 10

    private struct Entry {
        let transfer: BlobTransfer
        /// Bytes that wait for a worker.
        var queued = 0
        var isHeld = false
        /// Whether bytes of its body are still to come.
        var isReceiving: Bool
        /// Bytes of the answer that were not supplied yet.
        var missing: Int?
    }

    private unowned let loop: EventLoop
    private let workers: ServerBlobs
    private let hub: Hub
    private var entries = [ConnectionID: Entry]()
    private var counts = [TenantID: Int]()
    /// Parts that are being received, by upload.
    private var parts = [BlobID: Set<Int>]()

    init(loop: EventLoop, workers: ServerBlobs, hub: Hub) { (self.loop, self.workers, self.hub) = (loop, workers, hub) }

    /// Whether nothing is in progress that a server which stops has to finish. Bodies are not read any more then; their
    /// clients send the parts again.
    var isIdle: Bool { entries.values.allSatisfy(\.isReceiving) }

    /// Begins a request of an authenticated user.
    func begin(_ id: ConnectionID, _ order: BlobOrder) {
        let tenant = hub.tenant(of: id)
        endStalled(order)
        if let refusal = refusal(order, tenant) { return hub.respond(id, refusal) }
        loop.count(id, to: tenant)
        let transfer = BlobTransfer(
            id, tenant: tenant, order, quota: BlobQuota(hub.limits, guest: order.guestBytesMax),
            sendsFiles: loop.sendsFiles(id))
        entries[id] = Entry(transfer: transfer, isReceiving: order.call.hasBody)
        counts[tenant, default: 0] += 1
        if let part = order.call.part { parts[part.upload, default: []].insert(part.number) }
        hub.metrics.blobTransfers.set(entries.count)
        workers.push(.begin(transfer))
    }

    /// A user sends a part again whose earlier request has not ended: that one's connection is lost, and the server has
    /// not learned of it yet. It would keep the part until its time is over.
    private func endStalled(_ order: BlobOrder) {
        guard let part = order.call.part, parts[part.upload]?.contains(part.number) == true else { return }
        let stalled = entries.first { _, entry in
            let other = entry.transfer.order
            guard entry.isReceiving, other.user == order.user, other.app == order.app else { return false }
            return other.call.part.map { $0 == part } ?? false
        }
        guard let id = stalled?.key else { return }
        closed(id)
        loop.close(id)
    }

    /// A bound that the request would exceed, or another request that it would disturb.
    private func refusal(_ order: BlobOrder, _ tenant: TenantID) -> HTTPResponse? {
        if let part = order.call.part, let others = parts[part.upload] {
            if others.contains(part.number) {
                hub.metrics.blobsRefused.add(1, .state)
                return BlobAnswer.partInProgress
            }
            if others.count >= BlobCall.partsAtOnce { return tooMany(.userBlobTransfers) }
        }
        if entries.count >= hub.limits.blobTransfersMax { return tooMany(.blobTransfers) }
        return counts[tenant, default: 0] >= hub.limits.blobTransfersPerUserMax ? tooMany(.userBlobTransfers) : nil
    }

    private func tooMany(_ limit: Metrics.LimitName) -> HTTPResponse {
        hub.metrics.limitHits.add(1, limit)
        hub.metrics.blobsRefused.add(1, .busy)
        return BlobAnswer.tooMany
    }

    // MARK: From the loop

    /// A piece of a body. It is copied once, from the loop's buffer.
    func received(_ id: ConnectionID, _ piece: UnsafeRawBufferPointer, isLast: Bool) {
        guard var entry = entries[id] else { return }
        entry.queued += piece.count
        if isLast { entry.isReceiving = false }
        if entry.queued >= Self.queuedBytesMax, !isLast {
            entry.isHeld = true
            loop.holdBody(id)
        }
        entries[id] = entry
        workers.push(.piece(entry.transfer, Array(piece), isLast: isLast))
    }

    /// An answer needs its next piece.
    func wantsBody(_ id: ConnectionID) { if let entry = entries[id] { workers.push(.next(entry.transfer)) } }

    /// The connection has ended.
    func closed(_ id: ConnectionID) {
        guard let entry = end(id) else { return }
        workers.push(.end(entry.transfer))
    }

    // MARK: From the workers

    func handle(_ report: ServerBlobs.Report) {
        switch report {
        case .step(let id, let step): perform(step, id)
        case .wrote(let id, let count): wrote(id, count)
        case .piece(let id, let piece): supply(id, piece)
        case .failed(let id):
            end(id)
            loop.close(id)
        }
    }

    private func perform(_ step: BlobService.Step, _ id: ConnectionID) {
        switch step {
        case .accept: if entries[id] != nil { loop.acceptBody(id) }
        case .respond(let response): if end(id) != nil { hub.respond(id, response) }
        case .download(let response):
            guard entries[id] != nil, let fields = hub.release(id, status: response.status) else {
                closed(id)
                return
            }
            entries[id]?.missing = response.bodyLength
            loop.begin(id, response.adding(fields))
        }
    }

    private func wrote(_ id: ConnectionID, _ count: Int) {
        guard var entry = entries[id] else { return }
        entry.queued -= count
        let isReleased = entry.isHeld && entry.queued < Self.queuedBytesMax
        if isReleased { entry.isHeld = false }
        entries[id] = entry
        if isReleased { loop.acceptBody(id) }
    }

    private func supply(_ id: ConnectionID, _ piece: BodyPiece) {
        guard let missing = entries[id]?.missing else { return }
        entries[id]?.missing = missing - piece.count
        loop.send(id, piece)
        if missing <= piece.count { end(id) }
    }

    @discardableResult
    private func end(_ id: ConnectionID) -> Entry? {
        guard let entry = entries.removeValue(forKey: id) else { return nil }
        let tenant = entry.transfer.tenant
        counts[tenant] = counts[tenant, default: 1] > 1 ? counts[tenant, default: 1] - 1 : nil
        if let part = entry.transfer.order.call.part {
            parts[part.upload]?.remove(part.number)
            if parts[part.upload]?.isEmpty == true { parts[part.upload] = nil }
        }
        hub.metrics.blobTransfers.set(entries.count)
        return entry
    }
}
