import ThicketClient
import ThicketCrypto
import ThicketPlatform
package import ThicketTreeShape

/// Decides the requests of one upload. Pure: the caller executes actions and reports events.
///
/// A lost answer makes the machine ask which parts the server has, before it sends any again; so does a restart. A part
/// that the server has is compared with the file by its hash and is not sent again.
package struct UploadMachine: Sendable {
    /// Bytes of a server's id of an upload.
    static let uploadIDBytesMax = 64

    package enum Action: Sendable, Hashable {
        /// Send the whole content in one request.
        case sendWhole
        case begin(partBytes: Int)
        case askStatus(upload: String)
        /// Hash a part of the file; the server has it already.
        case hash(part: Int, Range<UInt64>)
        case send(upload: String, part: Int, Range<UInt64>)
        case complete(upload: String, sha256: [UInt8])
        /// Give an upload up that has other parts; it would count for the user's quota.
        case abort(upload: String)
    }

    package enum Event: Sendable, Hashable {
        case begun(BlobUpload)
        case status(BlobUploadStatus)
        case hashed(part: Int, sha256: [UInt8])
        case sent(part: Int, sha256: [UInt8])
        case completed(BlobID)
        case aborted
        /// `part`: of the request that failed, where it was about one.
        case failed(BlobFailure, part: Int?)
        /// The file cannot be read.
        case unreadable(ContentError)
    }

    private enum Phase: Sendable, Hashable { case begin, status, parts, complete }

    /// Bytes of the content.
    let length: UInt64
    /// Parts that are sent at one time.
    private let inFlightMax: Int
    /// Bytes of a part, unless the content needs larger ones.
    private let partBytes: Int
    private var phase = Phase.begin
    private var upload: BlobUpload?
    /// SHA-256 of the file's parts, as far as they were computed.
    private var hashes = [Int: [UInt8]]()
    /// Parts that the server has, and that equal the file's.
    private var received = Set<Int>()
    /// What the server says to have, not compared yet.
    private var reported = [Int: [UInt8]]()
    private var inFlight = Set<Int>()
    private var isAsking = false
    /// An upload to give up.
    private var useless: String?
    private var backoff = Backoff(shortest: TransferLimits.pauseMin, longest: TransferLimits.pauseMax)
    private var restarts = 0
    /// No request is made before.
    package private(set) var notBefore: Int64 = .min
    /// The end; nil before.
    package private(set) var outcome: Result<BlobID, ContentError>?
    /// Why the server accepts nothing for now; nil while it does, and after failures that say nothing of the server.
    private(set) var trouble: ContentError?
    /// No new request is made.
    var isPaused = false

    /// An upload from the start.
    package init(
        length: UInt64, inFlightMax: Int = TransferLimits.partsInFlightMax, partBytes: Int = TransferLimits.partBytes
    ) {
        (self.length, self.inFlightMax, self.partBytes) = (length, inFlightMax, partBytes)
    }

    /// The plan of parts: 4 MiB, more for a content of more than 10,000 such parts.
    ///
    /// - Returns: nil for a content that is too long for the largest parts.
    static func partBytes(for length: UInt64, atLeast wanted: Int = TransferLimits.partBytes) -> Int? {
        let step = 1 << 20
        let least = length / UInt64(TransferLimits.partsMax) + 1
        guard least <= UInt64(TransferLimits.partBytesMax) else { return nil }
        return wanted >= Int(least) ? wanted : (Int(least) + step - 1) / step * step
    }

    // MARK: - State that survives a restart

    private static let version: UInt8 = 1

    /// The server's id of the upload; nil before it has begun.
    package var uploadID: String? { upload?.id }

    /// version ‖ length (8) ‖ bytes of a part (4) ‖ the upload's id; without an upload only version and length.
    package var octets: [UInt8] {
        var octets = [Self.version] + length.octets
        if let upload { octets += UInt32(upload.partBytes).octets + Array(upload.id.utf8) }
        return octets
    }

    /// Continues an upload after a restart.
    ///
    /// - Returns: nil for bytes that `octets` does not make, or of another content: the upload begins again.
    package init?(octets: [UInt8], length: UInt64, partBytes: Int = TransferLimits.partBytes) {
        self.init(length: length, partBytes: partBytes)
        guard octets.count >= 9, octets[0] == Self.version, Array(octets[1..<9]) == length.octets else { return nil }
        guard octets.count > 9 else { return }
        guard octets.count > 13, octets.count <= 13 + Self.uploadIDBytesMax else { return nil }
        let partBytes = octets[9..<13].reduce(0) { $0 << 8 | Int($1) }
        guard partBytes > 0, partBytes <= TransferLimits.partBytesMax else { return nil }
        upload = BlobUpload(id: String(decoding: octets[13...], as: UTF8.self), partBytes: partBytes)
        phase = .status
    }

    // MARK: - Figures

    /// Requests and hashes that have not been answered.
    package var inFlightCount: Int { inFlight.count + (isAsking ? 1 : 0) }

    /// Bytes that the server has.
    package var bytes: UInt64 {
        if case .success? = outcome { return length }
        return received.reduce(0) { $0 + UInt64(range(of: $1).count) }
    }

    private var partCount: Int {
        guard let upload else { return 0 }
        return Int((length + UInt64(upload.partBytes) - 1) / UInt64(upload.partBytes))
    }

    private func range(of part: Int) -> Range<UInt64> {
        let size = UInt64(upload?.partBytes ?? partBytes)
        let start = UInt64(part) * size
        return min(length, start)..<min(length, start + size)
    }

    // MARK: - Actions

    /// The actions to start now. Their buffers are bounded: at most `inFlightMax` parts are in flight.
    package mutating func next(now: Int64) -> [Action] {
        guard outcome == nil, !isPaused, now >= notBefore, !isAsking else { return [] }
        switch phase {
        case .begin: return begin()
        case .status:
            // Parts in flight may still arrive: the list would miss them.
            guard let upload, inFlight.isEmpty else { return [] }
            isAsking = true
            return [.askStatus(upload: upload.id)]
        case .parts: return parts()
        case .complete: return complete()
        }
    }

    private mutating func begin() -> [Action] {
        guard inFlight.isEmpty else { return [] }
        isAsking = true
        if let upload = useless {
            useless = nil
            return [.abort(upload: upload)]
        }
        if length <= UInt64(partBytes) { return [.sendWhole] }
        guard let partBytes = Self.partBytes(for: length, atLeast: partBytes) else {
            outcome = .failure(.tooLarge)
            return []
        }
        return [.begin(partBytes: partBytes)]
    }

    private mutating func parts() -> [Action] {
        guard let upload else { return [] }
        var actions = [Action]()
        var part = 0
        while inFlight.count < inFlightMax, part < partCount {
            defer { part += 1 }
            if received.contains(part) || inFlight.contains(part) { continue }
            if let claimed = reported[part] {
                guard let hash = hashes[part] else {
                    inFlight.insert(part)
                    actions.append(.hash(part: part, range(of: part)))
                    continue
                }
                reported[part] = nil
                guard claimed == hash else {
                    // The server keeps the first bytes of a part.
                    beginAgain(isUseless: true)
                    return actions
                }
                received.insert(part)
                continue
            }
            inFlight.insert(part)
            actions.append(.send(upload: upload.id, part: part, range(of: part)))
        }
        if received.count == partCount {
            phase = .complete
            return complete()
        }
        return actions
    }

    private mutating func complete() -> [Action] {
        guard let upload else { return [] }
        isAsking = true
        var hash = SHA256()
        for part in 0..<partCount { hash.update(hashes[part] ?? []) }
        return [.complete(upload: upload.id, sha256: hash.digest())]
    }

    /// - Parameter isUseless: the server still has the upload.
    private mutating func beginAgain(isUseless: Bool) {
        restarts += 1
        if isUseless { useless = upload?.id }
        (upload, received, reported, phase) = (nil, [], [:], .begin)
        if restarts > TransferLimits.restartsMax { outcome = .failure(.notFound) }
    }

    // MARK: - Events

    /// - Parameter random: for the jitter of a pause.
    package mutating func handle(_ event: Event, now: Int64, random: UInt64) {
        switch event {
        case .begun(let begun):
            isAsking = false
            guard (length + UInt64(begun.partBytes) - 1) / UInt64(begun.partBytes) <= UInt64(TransferLimits.partsMax)
            else {
                outcome = .failure(.tooLarge)
                return
            }
            if upload?.partBytes != begun.partBytes { hashes = [:] }
            upload = begun
            (received, reported, phase) = ([], [:], .parts)
            backoff.reset()
        case .status(let status):
            (isAsking, phase) = (false, .parts)
            (received, reported) = ([], status.parts.filter { $0.key < partCount })
            backoff.reset()
            // The answer to an earlier `complete` was lost.
            if let blob = status.blob { outcome = .success(blob) }
        case .hashed(let part, let sha256):
            inFlight.remove(part)
            hashes[part] = sha256
        case .sent(let part, let sha256):
            inFlight.remove(part)
            hashes[part] = sha256
            received.insert(part)
            trouble = nil
            backoff.reset()
        case .completed(let blob):
            (isAsking, trouble) = (false, nil)
            outcome = .success(blob)
        case .aborted: isAsking = false
        case .failed(let failure, let part):
            if let part { inFlight.remove(part) } else { isAsking = false }
            fail(failure, now, random)
        case .unreadable(let error):
            outcome = outcome ?? .failure(error)
        }
    }

    private mutating func fail(_ failure: BlobFailure, _ now: Int64, _ random: UInt64) {
        guard outcome == nil else { return }
        var asked: Int64 = 0
        switch failure {
        case .refused(let status):
            outcome = .failure(.refused(status))
            return
        case .gone, .otherPart:
            // Several parts in flight report the same loss.
            guard phase != .begin else { break }
            beginAgain(isUseless: failure == .otherPart)
            if outcome != nil { return }
        case .busy(let after), .full(let after):
            asked = min(after ?? 0, TransferLimits.askedPauseMax)
            if case .full = failure { trouble = .serverFull }
            if phase == .parts { phase = .status }
        case .lost, .bytesLost, .badAnswer, .partsMissing:
            if phase == .parts || failure == .partsMissing { phase = .status }
        }
        let pause = max(asked, backoff.next(random))
        guard backoff.failures <= TransferLimits.failuresMax else {
            outcome = .failure(trouble ?? .unreachable)
            return
        }
        notBefore = max(notBefore, now + pause)
    }
}

extension FixedWidthInteger {
    /// The bytes, the highest first.
    fileprivate var octets: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
