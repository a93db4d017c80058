import ThicketClient
import ThicketCrypto
public import ThicketTree
import ThicketTreeShape

/// Counts of a download manager since it was made.
public struct DownloadFigures: Sendable, Hashable {
    /// Requests to the server.
    public var requests = 0
    /// Bytes that were received and verified.
    public var bytes: UInt64 = 0
    /// Transfers that were complete, found on disk included.
    public var completed = 0
    /// Transfers that failed.
    public var failed = 0
    /// Transfers that their last caller cancelled.
    public var cancelled = 0
    init() {}
}

/// Downloads content into a store. Equal requests share one transfer; chunks are verified before they are counted, and
/// a transfer that was cancelled or whose program ended goes on behind its last verified chunk.
///
/// Verifying takes processor time, so the actor has its own thread.
public actor DownloadManager {
    /// Names a transfer.
    private struct Key: Hashable {
        let blob: BlobID
        let components: ContentComponents
    }

    private final class Transfer {
        let reference: BlobReference
        var options: DiskOptions
        var tickets = [DownloadTicket]()
        var coalesced = [String: DownloadTicket]()
        /// A caller let it finish for the cache.
        var isDetached = false
        /// nil until it is started.
        var task: Task<Void, Never>?
        /// Resumed with true when it is its turn, with false when it was cancelled.
        var turn: CheckedContinuation<Bool, Never>?

        init(_ reference: BlobReference, _ options: DiskOptions) {
            (self.reference, self.options) = (reference, options)
        }
    }

    private let disk: DiskStore
    private let transport: any BlobTransport
    private let clock: TransferClock
    private var transfers = [Key: Transfer]()
    /// Cancelled transfers that may still write to their file: a new transfer of the same file starts after them.
    private var ending = [Key: Transfer]()
    private var ticketCount = 0
    private var running = 0
    /// Transfers that wait for their turn; all are in `transfers`.
    private var turns = [Transfer]()
    /// What was done so far.
    public private(set) var figures = DownloadFigures()
    /// Pieces in memory.
    nonisolated let buffers = BufferCount()
    private let loop: EngineLoop
    /// The thread that verifies.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Throws: `tooManyFiles` when the system cannot make a thread.
    public init(
        disk: DiskStore, transport: any BlobTransport, clock: TransferClock = .system
    ) throws(ContentError) {
        (self.disk, self.transport, self.clock) = (disk, transport, clock)
        do throws(ClientError) { loop = try EngineLoop() } catch { throw .tooManyFiles }
    }

    deinit { loop.stop() }

    /// Transfers that run or wait.
    public var transferCount: Int { transfers.count }
    /// Transfers that wait for their turn.
    var turnCount: Int { turns.count }

    // MARK: - Callers

    /// Downloads sections of a node's content, unless the store has them.
    ///
    /// - Parameters:
    ///   - node: the content.
    ///   - components: the sections; one with a data section is not read until it is whole.
    ///   - options: of this caller.
    /// - Throws: `tooManyCallers`.
    public func downloadNodeData(
        _ node: BlobReference, components: ContentComponents, options: DownloadOptions = DownloadOptions()
    ) throws(ContentError) -> DownloadTicket {
        let key = Key(blob: node.blob, components: components)
        let known = transfers[key]
        if let tag = options.coalesceKey, let ticket = known?.coalesced[tag], ticket.isOpen { return ticket }
        guard ticketCount < TransferLimits.ticketsMax, known != nil || transfers.count < TransferLimits.waitingMax
        else { throw .tooManyCallers }
        let transfer = known ?? Transfer(node, options.disk)
        transfer.options = transfer.options.joined(with: options.disk)
        let ticket = DownloadTicket { [weak self] ticket, isDetaching in
            Task { await self?.leave(key, ticket, isDetaching) }
        }
        transfer.tickets.append(ticket)
        ticketCount += 1
        if let tag = options.coalesceKey { transfer.coalesced[tag] = ticket }
        if known == nil {
            transfers[key] = transfer
            if ending[key] == nil { start(key, transfer) }
        }
        return ticket
    }

    /// A section of a content, downloaded as it is read, of which nothing is kept on this device.
    public nonisolated func stream(_ node: BlobReference, _ section: ContentSection = .data) -> BlobStream {
        BlobStream(reference: node, section: section, transport: transport, clock: clock)
    }

    private func start(_ key: Key, _ transfer: Transfer) {
        transfer.task = Task { await self.run(key, transfer) }
    }

    private func leave(_ key: Key, _ ticket: DownloadTicket, _ isDetaching: Bool) {
        guard let transfer = transfers[key], let place = transfer.tickets.firstIndex(where: { $0 === ticket }) else {
            return
        }
        transfer.tickets.remove(at: place)
        ticketCount -= 1
        transfer.coalesced = transfer.coalesced.filter { $0.value !== ticket }
        transfer.isDetached = transfer.isDetached || isDetaching
        guard transfer.tickets.isEmpty, !transfer.isDetached else { return }
        transfers[key] = nil
        figures.cancelled += 1
        turns.removeAll { $0 === transfer }
        guard let task = transfer.task else { return }
        ending[key] = transfer
        task.cancel()
        transfer.turn?.resume(returning: false)
        transfer.turn = nil
    }

    private func finish(_ key: Key, _ transfer: Transfer, _ result: Result<RetainedFile?, ContentError>) {
        guard transfers[key] === transfer else { return }
        transfers[key] = nil
        if case .success = result { figures.completed += 1 } else { figures.failed += 1 }
        ticketCount -= transfer.tickets.count
        for ticket in transfer.tickets { ticket.finish(result) }
    }

    // MARK: - Transfers

    private func run(_ key: Key, _ transfer: Transfer) async {
        let result: Result<RetainedFile?, ContentError>
        do throws(ContentError) {
            result = .success(try await file(key, transfer))
        } catch { result = .failure(error) }
        finish(key, transfer, result)
        guard ending[key] === transfer else { return }
        ending[key] = nil
        if let next = transfers[key] { start(key, next) }
    }

    private func file(_ key: Key, _ transfer: Transfer) async throws(ContentError) -> RetainedFile? {
        switch try await disk.find(transfer.reference, key.components) {
        case .absent: return nil
        case .file(let file):
            if transfer.options.isPersistent {
                try await disk.setPersistent(true, transfer.reference.id, until: transfer.options.expires)
            }
            return file
        case .none: break
        }
        guard !Task.isCancelled, await startTurn(transfer) else { throw .cancelled }
        defer { endTurn() }
        let download = try await disk.begin(transfer.reference, key.components, options: transfer.options)
        do throws(ContentError) {
            try await fetch(download, transfer)
        } catch {
            // Nothing of it could be verified: the next try must not begin with it.
            if error == .contentMismatch { try await disk.discard(download) }
            throw error
        }
        return try await disk.finish(download, options: transfer.options)
    }

    private func startTurn(_ transfer: Transfer) async -> Bool {
        guard running >= TransferLimits.downloadsMax else {
            running += 1
            return true
        }
        return await withCheckedContinuation { continuation in
            transfer.turn = continuation
            turns.append(transfer)
        }
    }

    private func endTurn() {
        guard !turns.isEmpty else {
            running -= 1
            return
        }
        let next = turns.removeFirst()
        next.turn?.resume(returning: true)
        next.turn = nil
    }

    private func fetch(_ download: PartialDownload, _ transfer: Transfer) async throws(ContentError) {
        var machine = DownloadMachine(download.span, verified: download.verified)
        var meter = ProgressMeter(machine.bytes, of: download.span.bytes, now: clock.now())
        while machine.outcome == nil {
            if Task.isCancelled { throw .cancelled }
            guard let fetch = machine.next(now: clock.now()) else {
                do { try await clock.sleep(max(1, machine.notBefore - clock.now())) } catch { throw .cancelled }
                continue
            }
            let event = await perform(fetch, download)
            machine.handle(event, now: clock.now(), random: clock.random())
            let progress = meter.update(machine.bytes, now: clock.now())
            for ticket in transfer.tickets { ticket.report(progress) }
        }
        if case .failed(let error) = machine.outcome { throw error }
    }

    private func perform(_ fetch: DownloadMachine.Fetch, _ download: PartialDownload) async -> DownloadMachine.Event {
        let reference = download.reference
        buffers.acquire()
        defer { buffers.release() }
        figures.requests += 1
        let piece: BlobPiece
        do throws(BlobFailure) {
            piece = try await transport.read(
                reference.blob, owner: reference.owner, node: reference.node, range: fetch.bytes)
        } catch { return .failed(error) }
        guard piece.total == reference.sealedLength else { return .wrong(stored: 0, fault: .contentMismatch) }
        do throws(ContentError) {
            let checked = try Self.check(piece.bytes, fetch, reference, isFirst: fetch.place == 0)
            if checked.count > 0 {
                let bytes = min(ChunkSpan.offset(ofPlace: checked.count), UInt64(fetch.bytes.count))
                try await disk.append(
                    piece.bytes[..<Int(bytes)], at: fetch.place, count: checked.count, download)
                figures.bytes += bytes
            }
            return checked.fault.map { .wrong(stored: checked.count, fault: $0) } ?? .stored(checked.count)
        } catch { return .broken(error) }
    }

    /// Verifies the whole chunks of an answer.
    ///
    /// - Returns: chunks before the first that does not open, and what that one is: damage if another chunk of this
    ///   content was received, foreign bytes if none opens.
    private static func check(
        _ bytes: [UInt8], _ fetch: DownloadMachine.Fetch, _ reference: BlobReference, isFirst: Bool
    ) throws(ContentError) -> (count: UInt64, fault: ContentError?) {
        let check = try ChunkCheck(reference)
        var (count, opened, hasFault) = (UInt64(0), UInt64(0), false)
        for chunk in fetch.chunks {
            let sealed = reference.map.layout.sealedRange(of: chunk)
            let start = Int(sealed.lowerBound - fetch.bytes.lowerBound)
            guard start + sealed.count <= bytes.count else { break }
            if check.opens(chunk, bytes[start..<start + sealed.count]) {
                opened += 1
                if !hasFault { count += 1 }
            } else {
                hasFault = true
            }
        }
        guard hasFault else { return (count, nil) }
        return (count, isFirst && opened == 0 ? .contentMismatch : .contentDamaged)
    }
}
