/// Why the client could not do what it was asked for.
///
/// `description` is safe to log: the code and what was being done, never a token or content.
public struct ClientError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure. More may come: handle the ones you know and show `detail` for the rest.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public var description: String { rawValue }

        /// A name (app, bucket, key, server address) breaks the rules for it.
        public static let invalidName = Code(rawValue: "invalid-name")
        /// The options contradict each other or cannot be used.
        public static let invalidOptions = Code(rawValue: "invalid-options")
        /// Another session, here or in another process, has this local store open.
        public static let storeInUse = Code(rawValue: "store-in-use")
        /// The local store could not read or keep something (disk full, I/O error, damaged file).
        public static let store = Code(rawValue: "store")
        /// The local store belongs to another app, server or user.
        public static let storeMismatch = Code(rawValue: "store-mismatch")
        /// The key of the local store is sealed under a passphrase, and nobody has given that.
        public static let locked = Code(rawValue: "locked")
        /// There is no object (or no such version) under that key.
        public static let notFound = Code(rawValue: "not-found")
        /// The edit does not fit the object: wrong length, wrong type, a place that is not there.
        public static let misfit = Code(rawValue: "misfit")
        /// The value cannot be written as a JSON object, or the JSON not read as the type.
        public static let invalidValue = Code(rawValue: "invalid-value")
        /// The server does not accept the token, or the token does not permit this.
        public static let unauthorized = Code(rawValue: "unauthorized")
        /// The server refused an edit for good; `number` is its code. The edit is kept.
        public static let refused = Code(rawValue: "refused")
        /// The server does not open the bucket at the moment; `number` is its code. It is tried again.
        public static let unavailable = Code(rawValue: "unavailable")
        /// This needs the server, and there is no connection.
        public static let offline = Code(rawValue: "offline")
        /// It did not happen in the time given.
        public static let deadline = Code(rawValue: "deadline")
        /// The session is closed.
        public static let closed = Code(rawValue: "closed")
        /// The connection could not be made or was lost: name, network, TLS, proxy.
        public static let network = Code(rawValue: "network")
        /// Something answered and could not prove that it is the server; nothing was sent to it. `detail` says what to
        /// do.
        public static let untrusted = Code(rawValue: "untrusted")
        /// The server said something that is not the protocol.
        public static let protocolViolation = Code(rawValue: "protocol")
        /// The bucket is sealed and was opened without its secret, or the other way round; or the object is of the
        /// other kind.
        public static let sealed = Code(rawValue: "sealed")
        /// The session has no keys of its account, and a sealed bucket opens by them (`Session.useKeys`).
        public static let noKeys = Code(rawValue: "no-keys")
        /// The object does not fit what this device has seen of it: read-only until `Bucket.keepMine` or
        /// `Bucket.takeServers`.
        public static let integrity = Code(rawValue: "integrity")
        /// A bound of the client was reached.
        public static let limit = Code(rawValue: "limit")
    }

    public let code: Code
    /// What happened, for a person. Holds no content and no token.
    public let detail: String
    /// The server's number where it gave one (HTTP status, or error of a change).
    public let number: Int?
    /// There was no connection that a request could have gone out on: nobody was asked for anything.
    package let isUnsent: Bool

    public init(_ code: Code, _ detail: String, number: Int? = nil) {
        self.init(code, detail, number: number, isUnsent: false)
    }

    package init(_ code: Code, _ detail: String, number: Int? = nil, isUnsent: Bool) {
        (self.code, self.detail, self.number, self.isUnsent) = (code, detail, number, isUnsent)
    }

    public var description: String {
        number.map { "\(code) (\($0)): \(detail)" } ?? "\(code): \(detail)"
    }
}
