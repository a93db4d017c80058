import ThicketPlatform

/// A part of a file that is sent without a copy in this process.
public struct FileSlice: Sendable {
    /// The file.
    public let file: OpenFile
    /// The next byte to send.
    public internal(set) var offset: Int64
    /// Bytes to send.
    public internal(set) var count: Int

    /// A part of a file. The file must not become shorter while it is sent.
    public init(_ file: OpenFile, offset: Int64, count: Int) {
        (self.file, self.offset, self.count) = (file, offset, count)
    }
}

/// Consecutive bytes of a body.
public enum BodyPiece: Sendable {
    /// Bytes in memory.
    case bytes([UInt8])
    /// Bytes of a file; not on a connection with TLS, whose bytes must be encrypted (`EventLoop.sendsFiles`).
    case file(FileSlice)

    /// Number of bytes.
    public var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .file(let slice): slice.count
        }
    }
}

/// An answer of known length whose body the delegate supplies piece by piece: each piece when the previous one has
/// left, so that the loop holds at most one.
final class HTTPDownload {
    /// Bytes that the delegate has not supplied yet.
    var missing: Int
    /// What is left of the piece in a file.
    var file: FileSlice?
    /// The delegate was asked for the next piece and has not supplied it.
    var isAsking = false

    init(length: Int) { missing = length }

    /// Accounts for bytes of the file that the socket accepted.
    func sent(_ count: Int) {
        guard var slice = file else { return }
        (slice.offset, slice.count) = (slice.offset + Int64(count), slice.count - count)
        file = slice.count > 0 ? slice : nil
    }
}
