internal import Synchronization

import ThicketClient
import ThicketCrypto
public import ThicketTreeShape

/// Pauses and resumes an upload, in any thread.
public final class UploadControl: Sendable {
    private struct State {
        var isPaused = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// An upload that is not paused.
    public init() {}

    /// Whether the upload makes no new requests.
    public var isPaused: Bool { state.withLock(\.isPaused) }

    /// Whether an upload waits for `resume`.
    var isWaiting: Bool { state.withLock { $0.waiter != nil } }

    /// Makes no new requests; those in flight go on.
    public func pause() { state.withLock { $0.isPaused = true } }

    /// Goes on.
    public func resume() { wake { $0.isPaused = false } }

    private func wake(_ body: (inout State) -> Void = { _ in }) {
        let waiter = state.withLock { state in
            body(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns when the upload goes on, or its task is cancelled.
    func waitUntilResumed() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if !state.isPaused || Task.isCancelled { return true }
                    state.waiter = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            wake()
        }
    }
}

/// Uploads sealed files. Reading and hashing block, so the actor has its own thread.
public actor Uploader {
    private let transport: any BlobTransport
    private let clock: TransferClock
    /// Parts in memory.
    nonisolated let buffers = BufferCount()
    private let loop: EngineLoop
    /// The thread that reads files.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Throws: `tooManyFiles` when the system cannot make a thread.
    public init(_ transport: any BlobTransport, clock: TransferClock = .system) throws(ContentError) {
        (self.transport, self.clock) = (transport, clock)
        do throws(ClientError) { loop = try EngineLoop() } catch { throw .tooManyFiles }
    }

    deinit { loop.stop() }

    /// Uploads a file that has the whole content, and returns the blob. One part is in memory at a time.
    ///
    /// - Parameters:
    ///   - file: a sealed file that does not change; `DiskStore.spool` makes it.
    ///   - state: what `save` received last in an earlier run; empty at the first.
    ///   - control: pauses the upload.
    ///   - save: stores the state of the upload, at most 77 bytes, beside the operation.
    ///   - progress: receives the progress.
    ///   - trouble: receives why the server accepts nothing for now, and nil when it does again.
    /// - Throws: `cancelled` when the task is cancelled; `unreachable` or `serverFull` after nine failures in a row;
    ///   `notFound` when the server forgets the upload again and again; `refused`, `tooLarge`, `missing`,
    ///   `contentDamaged`, `disk`. An upload that failed can be continued later from its state.
    public func upload(
        _ file: SealedFile, state: [UInt8] = [], control: UploadControl = UploadControl(),
        save: @Sendable ([UInt8]) async -> Void = { _ in },
        progress: @Sendable (TransferProgress) -> Void = { _ in },
        trouble: @Sendable (ContentError?) async -> Void = { _ in }
    ) async throws(ContentError) -> BlobID {
        let length = file.map.layout.sealedLength
        var machine = UploadMachine(octets: state, length: length) ?? UploadMachine(length: length)
        var meter = ProgressMeter(0, of: length, now: clock.now())
        var (saved, reported) = (state, ContentError?.none)
        let outcome = await withTaskGroup(of: UploadMachine.Event.self) { group in
            while true {
                if Task.isCancelled { return Result<BlobID, ContentError>.failure(.cancelled) }
                machine.isPaused = control.isPaused
                for action in machine.next(now: clock.now()) {
                    group.addTask { await self.perform(action, file) }
                }
                if let outcome = machine.outcome {
                    group.cancelAll()
                    return outcome
                }
                if machine.inFlightCount > 0, let event = await group.next() {
                    machine.handle(event, now: clock.now(), random: clock.random())
                    if machine.octets != saved {
                        saved = machine.octets
                        await save(saved)
                    }
                    progress(meter.update(machine.bytes, now: clock.now()))
                    if machine.trouble != reported {
                        reported = machine.trouble
                        await trouble(reported)
                    }
                } else if control.isPaused {
                    await control.waitUntilResumed()
                } else {
                    try? await clock.sleep(max(1, machine.notBefore - clock.now()))
                }
            }
        }
        return try outcome.get()
    }

    /// Gives an upload up whose operation was discarded, so that it does not count for the user's quota; without
    /// success it expires at the server.
    ///
    /// - Parameters:
    ///   - state: what `save` received last.
    ///   - file: the file that was uploaded.
    public func abort(_ state: [UInt8], of file: SealedFile) async {
        guard let upload = UploadMachine(octets: state, length: file.map.layout.sealedLength)?.uploadID else { return }
        _ = await Self.abort(upload, transport)
    }

    private static func abort(_ upload: String, _ transport: any BlobTransport) async -> UploadMachine.Event {
        do throws(BlobFailure) { try await transport.abort(upload) } catch {
            // It expires.
        }
        return .aborted
    }

    private func perform(_ action: UploadMachine.Action, _ file: SealedFile) async -> UploadMachine.Event {
        let transport = transport
        buffers.acquire()
        defer { buffers.release() }
        do throws(ContentError) {
            switch action {
            case .hash(let part, let range):
                return .hashed(part: part, sha256: Hash.sha256(try file.sealedBytes(range)))
            case .send(let upload, let part, let range):
                let bytes = try file.sealedBytes(range)
                let sha256 = Hash.sha256(bytes)
                return await Self.event(part) { () async throws(BlobFailure) in
                    try await transport.send(bytes, part: part, of: upload, sha256: sha256)
                    return .sent(part: part, sha256: sha256)
                }
            case .sendWhole:
                let bytes = try file.sealedBytes(0..<file.map.layout.sealedLength)
                let sha256 = Hash.sha256(bytes)
                return await Self.event(nil) { () async throws(BlobFailure) in
                    .completed(try await transport.send(whole: bytes, sha256: sha256))
                }
            case .begin, .askStatus, .complete, .abort:
                return await ask(action, length: file.map.layout.sealedLength)
            }
        } catch { return .unreadable(error) }
    }

    private func ask(_ action: UploadMachine.Action, length: UInt64) async -> UploadMachine.Event {
        let transport = transport
        return await Self.event(nil) { () async throws(BlobFailure) in
            switch action {
            case .begin(let partBytes): .begun(try await transport.begin(length: length, partBytes: partBytes))
            case .askStatus(let upload): .status(try await transport.status(of: upload))
            case .complete(let upload, let sha256):
                .completed(try await transport.complete(upload, sha256: sha256))
            case .abort(let upload): await Self.abort(upload, transport)
            default: .failed(.badAnswer, part: nil)
            }
        }
    }

    private static func event(
        _ part: Int?, _ body: @Sendable () async throws(BlobFailure) -> UploadMachine.Event
    ) async -> UploadMachine.Event {
        do throws(BlobFailure) { return try await body() } catch { return .failed(error, part: part) }
    }
}
