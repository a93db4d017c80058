/// Events of a transport. For one connection their order is: `opened`, any number of `text` and `moved`, `closed`.
package enum TransportEvent: Sendable, Equatable {
    case opened
    case text([UInt8])
    /// No message is complete yet, but bytes of one were received, or bytes to be sent were acknowledged and more
    /// follow.
    case moved
    /// The connection could not be made, or ended without a call of `close`.
    case closed(LinkClosure)
}

/// A connection to a server that carries text messages: the part of the client that differs between systems.
///
/// All calls come from the engine's thread, and only `wait` blocks.
package protocol Transport: AnyObject {
    /// Starts to connect; an older connection is dropped without a closing handshake.
    func connect()
    /// Queues one text message. Queued messages are lost when the connection ends.
    func send(_ text: [UInt8])
    /// Hands queued bytes to the system, as far as it accepts them now. `events` reports errors.
    func flush()
    /// Ends the connection; no `closed` event follows.
    func close()
    /// Moves bytes in both directions, and returns the events since the last call, about `limit` at most.
    func events(limit: Int) -> [TransportEvent]
    /// Sleeps until `wake` is readable, the connection has an event, or the time is over.
    ///
    /// - Parameters:
    ///   - wake: a file descriptor.
    ///   - milliseconds: the longest sleep; negative for no limit.
    func wait(wake: Int32, milliseconds: Int32)
}

/// The address of a server, parsed from `http://`, `https://`, `ws://` or `wss://`.
package struct Endpoint: Sendable, Equatable {
    package let isSecure: Bool
    /// The host, and the port where it is not the scheme's default, as in a `Host` field.
    package let authority: String
    /// The path before `/sock/...`: empty, or beginning with `/` and without a trailing slash.
    package let prefix: String

    /// - Throws: `invalidName` with a description of the problem.
    package init(_ address: String) throws(ClientError) {
        let bad: @Sendable (String) -> ClientError = { ClientError(.invalidName, "server address: \($0)") }
        let parts: [Substring] = address.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].hasPrefix("//") else {
            throw bad("must begin with https:// or http:// (or wss://, ws://)")
        }
        switch parts[0].lowercased() {
        case "http", "ws": isSecure = false
        case "https", "wss": isSecure = true
        default: throw bad("the scheme must be https or http (or wss, ws)")
        }
        let rest: Substring = parts[1].dropFirst(2)
        let host: Substring = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path: Substring = rest.dropFirst(host.count)
        guard !host.isEmpty, !host.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F || $0 == 0x40 }) else {
            throw bad("needs a host name, without a user name, in ASCII")
        }
        guard !path.contains("?"), !path.contains("#"), !path.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) else {
            throw bad("must not have a query or a fragment")
        }
        authority = String(host)
        prefix = String(path.reversed().drop { $0 == "/" }.reversed())
    }

    /// The address with an HTTP scheme, without a trailing slash.
    package var httpAddress: String { (isSecure ? "https://" : "http://") + authority + prefix }
}

/// Options of connections.
package struct TransportOptions: Sendable {
    /// A PEM file with the certificates to trust instead of the system's.
    package var certificateFile: String?
    /// Pins of public keys, one of which the server must have (`KeyPins`); nil accepts any key with a valid
    /// certificate.
    package var pinnedKeys: String?
    /// A proxy's address; nil uses the usual environment variables (`https_proxy`, `no_proxy`, …).
    package var proxy: String?
    package var userAgent = "thicket/0.1.0"
    package var connectTimeoutMilliseconds = Int(SyncLimits.connectMilliseconds)
    /// Largest message from the server, in bytes.
    package var messageBytesMax = 64 << 20
    package init() {}
}
