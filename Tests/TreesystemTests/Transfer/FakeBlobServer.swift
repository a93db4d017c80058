import Synchronization
import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketTreesystem

/// A server of blobs in memory, whose answers are lost, cut, repeated or refused from a seed.
final class FakeBlobServer: BlobTransport {
    /// What happens to a request.
    enum Fate: Sendable {
        case fine
        /// The request does not arrive.
        case dropped
        /// It is carried out, and its answer is lost.
        case answerLost
        /// It is carried out twice.
        case repeated
        /// A read has fewer bytes than were asked for.
        case cut
        case busy
    }

    struct Upload {
        let length: UInt64
        let partBytes: Int
        var parts = [Int: [UInt8]]()
        var blob: BlobID?
    }

    struct State {
        var uploads = [String: Upload]()
        var blobs = [BlobID: [UInt8]]()
        /// Blobs that nodes refer to and whose bytes are gone.
        var lost = Set<BlobID>()
        var nextID: UInt64 = 1
        var requests = [String: Int]()
        /// Parts that the client sent although the server had them.
        var needless = 0
        var isRepeat = false
        /// How often the server received each part in full.
        var received = [String: Int]()
        var ranges = [Range<UInt64>]()
        var inFlight = 0
        var inFlightMost = 0
        var faults = 0
        /// Called before a request is carried out, with its name.
        var before: (@Sendable (String) async -> Void)?
        /// Replaces the bytes of a read.
        var swap: (@Sendable ([UInt8], Range<UInt64>) -> [UInt8])?
        var total: UInt64?
        var fate: @Sendable (String) -> Fate = { _ in .fine }
    }

    let state = Mutex(State())

    func set(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    func count(_ name: String) -> Int { state.withLock { $0.requests[name] ?? 0 } }
    var requestCount: Int { state.withLock { $0.requests.values.reduce(0, +) } }

    private func serve<Value>(
        _ name: String, _ body: (inout State) -> Result<Value, BlobFailure>
    ) async throws(BlobFailure) -> Value {
        let (before, fate) = state.withLock { state in
            state.requests[name, default: 0] += 1
            state.inFlight += 1
            state.inFlightMost = max(state.inFlightMost, state.inFlight)
            return (state.before, state.fate(name))
        }
        await before?(name)
        // Lets other requests run between.
        await Task.yield()
        let result: Result<Value, BlobFailure> = state.withLock { state in
            state.inFlight -= 1
            switch fate {
            case .fine, .cut: return body(&state)
            case .repeated:
                _ = body(&state)
                state.isRepeat = true
                defer { state.isRepeat = false }
                return body(&state)
            case .answerLost:
                _ = body(&state)
                state.faults += 1
                return .failure(.lost)
            case .dropped:
                state.faults += 1
                return .failure(.lost)
            case .busy:
                state.faults += 1
                return .failure(.busy(after: 2_000))
            }
        }
        return try result.get()
    }

    func begin(length: UInt64, partBytes: Int) async throws(BlobFailure) -> BlobUpload {
        try await serve("begin") { state in
            state.nextID += 1
            let id = "up\(state.nextID)"
            state.uploads[id] = Upload(length: length, partBytes: partBytes)
            return .success(BlobUpload(id: id, partBytes: partBytes))
        }
    }

    func send(_ bytes: [UInt8], part: Int, of upload: String, sha256: [UInt8]) async throws(BlobFailure) {
        try await serve("part") { state -> Result<Void, BlobFailure> in
            guard let known = state.uploads[upload] else { return .failure(.gone) }
            let start = UInt64(part * known.partBytes)
            guard start < known.length, bytes.count == min(known.partBytes, Int(known.length - start)),
                Hash.sha256(bytes) == sha256
            else { return .failure(.refused(400)) }
            if let before = known.parts[part], Hash.sha256(before) != sha256 { return .failure(.otherPart) }
            if known.parts[part] != nil, !state.isRepeat { state.needless += 1 }
            state.uploads[upload]?.parts[part] = bytes
            state.received["\(upload)/\(part)", default: 0] += 1
            return .success(())
        }
    }

    func status(of upload: String) async throws(BlobFailure) -> BlobUploadStatus {
        try await serve("status") { state in
            guard let known = state.uploads[upload] else { return .failure(.gone) }
            let parts = known.blob == nil ? known.parts.mapValues { Hash.sha256($0) } : [:]
            return .success(BlobUploadStatus(parts: parts, blob: known.blob))
        }
    }

    func complete(_ upload: String, sha256: [UInt8]) async throws(BlobFailure) -> BlobID {
        try await serve("complete") { state in
            guard let known = state.uploads[upload] else { return .failure(.gone) }
            if let blob = known.blob { return .success(blob) }
            let count = (Int(known.length) + known.partBytes - 1) / known.partBytes
            guard known.parts.count == count else { return .failure(.partsMissing) }
            // Not `joined`: a debug build copies it byte by byte.
            var (bytes, hashes) = ([UInt8](), [UInt8]())
            bytes.reserveCapacity(Int(known.length))
            for part in 0..<count {
                bytes += known.parts[part] ?? []
                hashes += Hash.sha256(known.parts[part] ?? [])
            }
            guard Hash.sha256(hashes) == sha256 else { return .failure(.refused(400)) }
            let blob = Self.store(bytes, &state)
            state.uploads[upload]?.blob = blob
            return .success(blob)
        }
    }

    func abort(_ upload: String) async throws(BlobFailure) {
        try await serve("abort") { state in
            state.uploads[upload] = nil
            return .success(())
        }
    }

    func send(whole bytes: [UInt8], sha256: [UInt8]) async throws(BlobFailure) -> BlobID {
        try await serve("whole") { state in .success(Self.store(bytes, &state)) }
    }

    private static func store(_ bytes: [UInt8], _ state: inout State) -> BlobID {
        state.nextID += 1
        let blob = BlobID(UInt128(state.nextID))
        state.blobs[blob] = bytes
        return blob
    }

    func read(
        _ blob: BlobID, owner: UserID, node: NodeID, range: Range<UInt64>
    ) async throws(BlobFailure) -> BlobPiece {
        let isCut = state.withLock { state in
            state.ranges.append(range)
            return state.fate("cut")
        }
        return try await serve("read") { state in
            if state.lost.contains(blob) { return .failure(.bytesLost) }
            guard let bytes = state.blobs[blob] else { return .failure(.gone) }
            guard range.lowerBound < UInt64(bytes.count) else { return .failure(.refused(416)) }
            var part = Array(bytes[Int(range.lowerBound)..<min(bytes.count, Int(range.upperBound))])
            if let swap = state.swap { part = swap(part, range) }
            if case .cut = isCut {
                state.faults += 1
                part = Array(part.prefix(Int(state.nextID &* 7_919) % (part.count + 1)))
                state.nextID += 1
            }
            return .success(BlobPiece(bytes: part, total: state.total ?? UInt64(bytes.count)))
        }
    }
}

/// A clock that jumps over each pause, and counts them.
final class JumpingClock: Sendable {
    private let state = Mutex((now: Int64(0), pauses: [Int64]()))
    private let seed: ContentSeed

    init(_ seed: UInt64) { self.seed = ContentSeed(seed) }

    var pauses: [Int64] { state.withLock(\.pauses) }
    var now: Int64 { state.withLock(\.now) }

    var clock: TransferClock {
        TransferClock(
            now: {
                self.state.withLock { state in
                    state.now += 1
                    return state.now
                }
            },
            sleep: { pause in
                try Task.checkCancellation()
                self.state.withLock { state in
                    state.now += pause
                    state.pauses.append(pause)
                }
                await Task.yield()
            },
            random: { self.seed.next() })
    }
}

/// A gate that a test opens: what waits at it is between two known moments.
final class TestGate: Sendable {
    private struct State {
        var isOpen = false
        var arrived = 0
        var waiting = [CheckedContinuation<Void, Never>]()
        var watchers = [(Int, CheckedContinuation<Void, Never>)]()
    }
    private let state = Mutex(State())

    /// Waits until the gate is open.
    func pass() async {
        await withCheckedContinuation { continuation in
            let ready: [CheckedContinuation<Void, Never>] = state.withLock { state in
                state.arrived += 1
                let arrived = state.arrived
                var ready = state.watchers.filter { $0.0 <= arrived }.map(\.1)
                state.watchers.removeAll { $0.0 <= arrived }
                if state.isOpen { ready.append(continuation) } else { state.waiting.append(continuation) }
                return ready
            }
            for one in ready { one.resume() }
        }
    }

    /// Returns when this many have arrived.
    func arrivals(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.arrived < count { state.watchers.append((count, continuation)) }
                return state.arrived >= count
            }
            if isReached { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.resume() }
    }
}
