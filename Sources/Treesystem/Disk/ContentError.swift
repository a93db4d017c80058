/// Why content cannot be read, stored or transferred. No case contains content, names or keys.
public enum ContentError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Stored or received bytes are not those that were sealed: changed, cut, lengthened or in another order.
    case contentDamaged
    /// The bytes are not those of this content: another node's, or another version's.
    case contentMismatch
    /// The content was written by a newer version.
    case newerFormat
    /// The content is longer than `ContentLayout.lengthMax`.
    case tooLarge
    /// The asked range is beyond the end of its section.
    case outOfRange
    /// The asked part of the content is not on this device, or is not any more.
    case missing
    /// A source file changed each time while it was read (`SpoolLimits.attemptsMax`).
    case sourceChanged
    /// A source file cannot be read; the system's error number.
    case sourceUnreadable(Int32)
    /// A promise led to a promise, more than `SpoolLimits.promisesMax` times.
    case promiseTooDeep
    /// A promise threw: its operation waits.
    case promiseFailed
    /// The disk, or the user's quota on it, is full.
    case diskFull
    /// A file of the store cannot be read or written; the system's error number.
    case disk(Int32)
    /// The index of the store cannot be opened, read or written.
    case index(String)
    /// More than `DiskLimits.entriesMax` files are retained or persistent.
    case tooManyFiles
    /// The transfer was cancelled by its last caller.
    case cancelled
    /// More callers wait for one transfer, or more transfers for their turn, than the named bound permits.
    case tooManyCallers
    /// The server could not be reached, or did not answer, as often as the cap of failures permits.
    case unreachable
    /// The server has no space for it, as often as the cap of failures permits.
    case serverFull
    /// The server has no such blob for this user: it was replaced, removed, or never belonged to the node.
    case notFound
    /// The node refers to this content, and the server has lost its bytes. Another device may still have them.
    case lost
    /// The server refused the transfer for good; its HTTP status.
    case refused(Int)

    /// A sentence without content.
    public var description: String {
        switch self {
        case .contentDamaged: "the content is damaged"
        case .contentMismatch: "the bytes are those of another content"
        case .newerFormat: "the content was written by a newer version"
        case .tooLarge: "the content is too large"
        case .outOfRange: "the range is beyond the end of the section"
        case .missing: "this part of the content is not on this device"
        case .sourceChanged: "the source file changes while it is read"
        case .sourceUnreadable(let number): "the source file cannot be read (errno \(number))"
        case .promiseTooDeep: "a promise led to too many promises"
        case .promiseFailed: "the promised content was not delivered"
        case .diskFull: "the disk is full"
        case .disk(let number): "a file of the store cannot be read or written (errno \(number))"
        case .index(let what): "the index of the store: \(what)"
        case .tooManyFiles: "the store has too many files"
        case .cancelled: "the transfer was cancelled"
        case .tooManyCallers: "too many callers wait for transfers"
        case .unreachable: "the server cannot be reached"
        case .notFound: "the server does not have this content"
        case .lost: "the server has lost this content"
        case .serverFull: "the server's disk is full (507)"
        case .refused(401): "the server refused the transfer: the token may only read (401)"
        case .refused(let status): "the server refused the transfer (\(status))"
        }
    }
}
