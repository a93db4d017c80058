/// An error of the client library.
///
/// `description` is safe to log: it holds the code and what was being done, never a token or content.
public struct ClientError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of error. Later versions may add codes: handle the known ones and show `detail` for the rest.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The code as a stable text, such as `not-found`.
        public let rawValue: String
        /// Makes a code from its text; the text need not be a known code.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The same as `rawValue`.
        public var description: String { rawValue }

        /// A name (app, bucket, key, server address) breaks the rules for such names.
        public static let invalidName = Code(rawValue: "invalid-name")
        /// The options contradict each other or cannot be used.
        public static let invalidOptions = Code(rawValue: "invalid-options")
        /// Another session, in this process or another, has this local store open.
        public static let storeInUse = Code(rawValue: "store-in-use")
        /// The local store could not read or write (disk full, I/O error, damaged file).
        public static let store = Code(rawValue: "store")
        /// The local store belongs to another app, server or user.
        public static let storeMismatch = Code(rawValue: "store-mismatch")
        /// The key of the local store is sealed under a passphrase that has not been given.
        public static let locked = Code(rawValue: "locked")
        /// The object or the version does not exist.
        public static let notFound = Code(rawValue: "not-found")
        /// The edit does not fit the object: wrong length, wrong type, or a position outside it.
        public static let misfit = Code(rawValue: "misfit")
        /// The value does not encode as a JSON object, or the JSON does not decode as the type.
        public static let invalidValue = Code(rawValue: "invalid-value")
        /// The server does not accept the token, or the token does not permit the operation.
        public static let unauthorized = Code(rawValue: "unauthorized")
        /// The server refused an edit; `number` is its code. The edit is kept.
        public static let refused = Code(rawValue: "refused")
        /// The server does not open the bucket at the moment; `number` is its code. The client tries again.
        public static let unavailable = Code(rawValue: "unavailable")
        /// The operation needs the server, and there is no connection.
        public static let offline = Code(rawValue: "offline")
        /// The operation did not complete in time.
        public static let deadline = Code(rawValue: "deadline")
        /// The session is closed.
        public static let closed = Code(rawValue: "closed")
        /// The connection failed or was lost: name resolution, network, TLS, proxy.
        public static let network = Code(rawValue: "network")
        /// The peer could not prove that it is the server; nothing was sent to it. `detail` says what to do.
        public static let untrusted = Code(rawValue: "untrusted")
        /// The server sent something that violates the protocol.
        public static let protocolViolation = Code(rawValue: "protocol")
        /// A sealed bucket was opened without its keys, or an open one with keys; or the object is of the other kind.
        public static let sealed = Code(rawValue: "sealed")
        /// The session has no keys of its account, and a sealed bucket needs them (`Session.useKeys`).
        public static let noKeys = Code(rawValue: "no-keys")
        /// The object contradicts what this device has seen of it: read-only until `Bucket.keepMine` or
        /// `Bucket.takeServers`.
        public static let integrity = Code(rawValue: "integrity")
        /// A limit of the client was reached.
        public static let limit = Code(rawValue: "limit")
    }

    /// The kind of the error.
    public let code: Code
    /// A text for the user. Holds no content and no token.
    public let detail: String
    /// The server's number where it gave one (an HTTP status, or the error code of a change).
    public let number: Int?
    /// No request was sent, because there was no connection to send it on.
    package let isUnsent: Bool
    /// The newest entry of the key log that a refused one would have to follow, as the server sent it.
    package var newestEntry: [UInt8]?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - detail: a text for the user; must hold no content and no token.
    ///   - number: the server's number, where it gave one.
    ///   - code: the kind of error.
    public init(_ code: Code, _ detail: String, number: Int? = nil) {
        self.init(code, detail, number: number, isUnsent: false)
    }

    package init(_ code: Code, _ detail: String, number: Int? = nil, isUnsent: Bool) {
        (self.code, self.detail, self.number, self.isUnsent) = (code, detail, number, isUnsent)
    }

    /// The code, the number where there is one, and `detail`.
    public var description: String {
        number.map { "\(code) (\($0)): \(detail)" } ?? "\(code): \(detail)"
    }
}
