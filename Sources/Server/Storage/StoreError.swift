/// Why the store did not do what was asked. Every kind but `closed` may pass by itself: the same call may work later.
public struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Kind: Hashable, Sendable {
        /// No room: the disk, a quota or a file size limit.
        case full
        /// The disk failed a read, write or sync.
        case io
        /// Another process holds the file longer than we wait.
        case busy
        /// Somebody else has changed what the write rests on.
        case stale
        /// What was read cannot be right: a broken page, chain or body.
        case corrupt
        /// The store is closed (or, in a simulation, has crashed).
        case closed
        /// Rows were refused: a number taken twice, a row of the wrong shape.
        case constraint
        /// The file is not a Thicket store at all.
        case schema
        /// A store of an earlier schema, which is to be brought up to date first.
        case older
        /// A store of a later schema, which this program does not know.
        case newer
        /// The folder or file cannot be opened: missing, or no permission.
        case unavailable
    }

    public let kind: Kind
    /// What we were doing and what came back; safe to log, never user content.
    public let detail: String

    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    public var description: String { "store \(kind): \(detail)" }

    /// Whether it may concern one table alone, by a broken page of it or a row that it does not take.
    var mayBeOfOneTable: Bool { kind == .corrupt || kind == .constraint || kind == .io }
}
