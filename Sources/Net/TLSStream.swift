internal import CThicketTLS

/// The result of a call that reads or writes bytes.
enum TLSOutcome: Equatable {
    /// Number of bytes, at least one.
    case bytes(Int)
    case wantsRead
    case wantsWrite
    /// The peer sends no more.
    case ended
    /// The connection cannot be used any more.
    case broken

    init(_ result: Int) {
        switch result {
        case THICKET_TLS_WANTS_READ: self = .wantsRead
        case THICKET_TLS_WANTS_WRITE: self = .wantsWrite
        case THICKET_TLS_ENDED: self = .ended
        case let count where count > 0: self = .bytes(count)
        default: self = .broken
        }
    }
}

/// The TLS state of one connection, over the descriptor of its socket. Never blocks; belongs to the loop's thread.
final class TLSStream {
    private let raw: OpaquePointer
    private(set) var isHandshaking = true
    /// Whether the client presented a valid ticket.
    private(set) var isResumed = false
    /// Reading, or the handshake, continues when the socket is writable again.
    private(set) var readsWhenWritable = false
    /// More bytes may be available than epoll reports.
    var hasMore = false
    /// Most bytes of an encrypted record that the socket has not accepted: they must be passed again, unchanged.
    private(set) var committed = 0
    private var isBroken = false
    private var isFarewellSaid = false

    /// Plain bytes of one record (RFC 8446, 5.1).
    private static let recordBytes = 16_384

    init(_ raw: OpaquePointer) { self.raw = raw }

    deinit { SSL_free(raw) }

    /// Continues the handshake; nil: it is finished.
    func shakeHands() -> TLSOutcome? {
        let result = thicket_tls_handshake(raw)
        readsWhenWritable = Int(result) == THICKET_TLS_WANTS_WRITE
        guard result != 1 else {
            (isHandshaking, isResumed) = (false, thicket_tls_was_resumed(raw) != 0)
            return nil
        }
        let outcome = TLSOutcome(Int(result))
        if outcome == .broken || outcome == .ended { isBroken = true }
        ERR_clear_error()
        return outcome
    }

    /// Fills `room` from the front with the available bytes.
    /// - Returns: the number of bytes, and what stopped the reading; nil: `room` is full, or no more bytes are
    ///   available.
    func read(into room: UnsafeMutableRawBufferPointer) -> (count: Int, stop: TLSOutcome?) {
        var count = 0
        (hasMore, readsWhenWritable) = (false, false)
        while count < room.count {
            let outcome = TLSOutcome(
                thicket_tls_read(raw, room.baseAddress?.advanced(by: count), room.count - count))
            guard case .bytes(let taken) = outcome else {
                readsWhenWritable = outcome == .wantsWrite
                if outcome == .broken { isBroken = true }
                return (count, outcome)
            }
            count += taken
            // Otherwise the kernel would be asked again in vain.
            guard thicket_tls_has_pending(raw) != 0 else { return (count, nil) }
        }
        hasMore = true
        return (count, nil)
    }

    /// Sends as much as fits into one record. After `wantsWrite` the same bytes must be passed again; more may follow
    /// them.
    func write(_ bytes: UnsafeRawBufferPointer) -> TLSOutcome {
        let outcome = TLSOutcome(thicket_tls_write(raw, bytes.baseAddress, bytes.count))
        committed = outcome == .wantsWrite ? max(committed, min(Self.recordBytes, bytes.count)) : 0
        if outcome == .broken { isBroken = true }
        return outcome
    }

    /// Tells the peer that no more bytes follow.
    /// - Returns: false when the socket accepts nothing now.
    func sayFarewell() -> Bool {
        guard !isFarewellSaid, !isHandshaking, !isBroken, committed == 0 else { return true }
        isFarewellSaid = thicket_tls_farewell(raw) != 0
        return isFarewellSaid
    }
}
