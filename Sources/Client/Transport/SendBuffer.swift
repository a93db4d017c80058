/// A queue of frames for a socket that may accept only a part of them.
///
/// Bytes that were offered and not accepted are offered again unchanged: the same bytes at the same address, and no
/// more. OpenSSL requires this of a retry (SSL_write, "the buffer must be the same").
struct SendBuffer {
    /// The result of an offer.
    enum Accepted {
        /// The socket accepted this many bytes, at least one.
        case bytes(Int)
        /// The socket accepts nothing at the moment.
        case nothing
        /// The connection is broken.
        case broken
    }

    /// The bytes being sent, from `head` on. Not changed until they are accepted.
    private var sending = [UInt8]()
    private var head = 0
    /// Frames queued after `sending`.
    private var waiting = [UInt8]()

    /// Capacity in bytes that is kept when the queue is empty.
    private static let keptBytes = 128 << 10

    var isEmpty: Bool { head == sending.count && waiting.isEmpty }

    mutating func append(_ frame: [UInt8]) {
        if waiting.isEmpty { waiting = frame } else { waiting.append(contentsOf: frame) }
    }

    mutating func clear() { self = SendBuffer() }

    /// Offers bytes until all are sent or the socket accepts no more. Returns false when the connection is broken.
    mutating func flush(_ offer: (UnsafeRawBufferPointer) -> Accepted) -> Bool {
        while !isEmpty {
            if head == sending.count {
                swap(&sending, &waiting)
                head = 0
                waiting.removeAll(keepingCapacity: waiting.capacity <= Self.keptBytes)
            }
            let accepted = sending.withUnsafeBytes { offer(UnsafeRawBufferPointer(rebasing: $0[head...])) }
            switch accepted {
            case .bytes(let count): head += count
            case .nothing: return true
            case .broken: return false
            }
        }
        return true
    }
}
