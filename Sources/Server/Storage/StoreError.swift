/// The reason for a failed store operation. Every kind except `closed` may be temporary: the same call may succeed
/// later.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Classification of the failure; decides the answer to the client.
    public enum Kind: Hashable, Sendable {
        /// No space left: the disk, a quota or a file size limit.
        case full
        /// The disk failed a read, write or sync.
        case io
        /// Another process held the lock on the file for longer than the busy timeout.
        case busy
        /// Another writer changed data on which this write depends.
        case stale
        /// Invalid data was read: a broken page, chain or body.
        case corrupt
        /// The store is closed (or has crashed, in a simulation).
        case closed
        /// The database refused rows: a duplicate number, a row of the wrong shape.
        case constraint
        /// The file is not a Thicket store.
        case schema
        /// The store has an earlier schema and must be migrated first.
        case older
        /// The store has a later schema that this program does not know.
        case newer
        /// The folder or file cannot be opened: missing, or no permission.
        case unavailable
    }

    /// Classification of the failure.
    public let kind: Kind
    /// The failed operation and its result; safe to log, contains no user content.
    public let detail: String

    /// Creates an error; `detail` must not contain user content.
    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// Kind and detail in one line, for logs.
    public var description: String { "store \(kind): \(detail)" }

    /// Whether the failure may concern a single table: a broken page of it, or a row that violates its constraints.
    var mayBeOfOneTable: Bool { kind == .corrupt || kind == .constraint || kind == .io }
}
