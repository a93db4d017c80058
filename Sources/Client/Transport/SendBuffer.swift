/// Frames on their way to a socket that may take only a part of them.
///
/// What was offered and not taken is offered again: the very same bytes, at the same place and none more. OpenSSL wants
/// that of whoever calls it again after it could take nothing (SSL_write, "the buffer must be the same").
struct SendBuffer {
    /// What became of an offer.
    enum Taken {
        /// So many bytes went, at least one.
        case bytes(Int)
        /// None now.
        case nothing
        /// The connection is of no use any more.
        case broken
    }

    /// What the socket is being given, from `head` on. Not touched until it is taken.
    private var sending = [UInt8]()
    private var head = 0
    /// Frames behind it.
    private var waiting = [UInt8]()

    /// Bytes of memory that are kept when nothing is on its way.
    private static let keptBytes = 128 << 10

    var isEmpty: Bool { head == sending.count && waiting.isEmpty }

    mutating func append(_ frame: [UInt8]) {
        if waiting.isEmpty { waiting = frame } else { waiting.append(contentsOf: frame) }
    }

    mutating func clear() { self = SendBuffer() }

    /// Offers bytes until they are gone or no more are taken. False: the connection is broken.
    mutating func flush(_ offer: (UnsafeRawBufferPointer) -> Taken) -> Bool {
        while !isEmpty {
            if head == sending.count {
                swap(&sending, &waiting)
                head = 0
                waiting.removeAll(keepingCapacity: waiting.capacity <= Self.keptBytes)
            }
            let taken = sending.withUnsafeBytes { offer(UnsafeRawBufferPointer(rebasing: $0[head...])) }
            switch taken {
            case .bytes(let count): head += count
            case .nothing: return true
            case .broken: return false
            }
        }
        return true
    }
}
