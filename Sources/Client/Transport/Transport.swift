/// What a transport tells. In this order for one connection: `opened`, any number of `text` and `moved`, `closed`.
package enum TransportEvent: Sendable, Equatable {
    case opened
    case text([UInt8])
    /// No message is complete, but bytes of one came in, or bytes of what was to be sent have arrived and more follow.
    case moved
    /// The connection could not be made, or ended without our asking for it.
    case closed(LinkClosure)
}

/// One connection to a server that carries text messages: the part of the client that differs between systems.
///
/// All calls come from one thread, the engine's, and none of them blocks but `wait`.
package protocol Transport: AnyObject {
    /// Begins to connect; an older connection is dropped without a word.
    func connect()
    /// Queues one text message. What is queued when the connection ends is gone.
    func send(_ text: [UInt8])
    /// Gives the system what is queued, as far as it takes it now. What goes wrong is told by `events`.
    func flush()
    /// Ends the connection; no `closed` follows.
    func close()
    /// What happened since the last call, at most about `limit` events; moves bytes both ways.
    func events(limit: Int) -> [TransportEvent]
    /// Sleeps until `wake` is readable, the connection has something to do, or the time is over.
    ///
    /// - Parameters:
    ///   - wake: a file descriptor.
    ///   - milliseconds: negative: no limit.
    func wait(wake: Int32, milliseconds: Int32)
}

/// Where a server is, from `http://`, `https://`, `ws://` or `wss://`.
package struct Endpoint: Sendable, Equatable {
    package let isSecure: Bool
    /// Host and, where it is not the scheme's own, port, as in a `Host` field.
    package let authority: String
    /// Empty, or begins with `/` and ends without one: what stands before `/sock/...`.
    package let prefix: String

    /// - Throws: `invalidName` with what is wrong.
    package init(_ address: String) throws(ClientError) {
        let bad: @Sendable (String) -> ClientError = { ClientError(.invalidName, "server address: \($0)") }
        let parts: [Substring] = address.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].hasPrefix("//") else {
            throw bad("begins with https:// or http:// (or wss://, ws://)")
        }
        switch parts[0].lowercased() {
        case "http", "ws": isSecure = false
        case "https", "wss": isSecure = true
        default: throw bad("the scheme is https or http (or wss, ws)")
        }
        let rest: Substring = parts[1].dropFirst(2)
        let host: Substring = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let path: Substring = rest.dropFirst(host.count)
        guard !host.isEmpty, !host.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F || $0 == 0x40 }) else {
            throw bad("needs a host name, without a user name, in ASCII")
        }
        guard !path.contains("?"), !path.contains("#"), !path.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) else {
            throw bad("has neither a query nor a fragment")
        }
        authority = String(host)
        prefix = String(path.reversed().drop { $0 == "/" }.reversed())
    }

    /// The address as HTTP has it, without a trailing slash.
    package var httpAddress: String { (isSecure ? "https://" : "http://") + authority + prefix }
}

/// How connections are made.
package struct TransportOptions: Sendable {
    /// A PEM file with the certificates to trust instead of the system's.
    package var certificateFile: String?
    /// Pins of public keys, one of which the server's has to be (`KeyPins`); nil: any key with a good certificate.
    package var pinnedKeys: String?
    /// A proxy's address; nil: as the usual environment variables say (`https_proxy`, `no_proxy` ...).
    package var proxy: String?
    package var userAgent: String = "thicket/0.1.0"
    package var connectTimeoutMilliseconds: Int = Int(SyncLimits.connectMilliseconds)
    /// Bytes of one message from the server at most.
    package var messageBytesMax: Int = 64 << 20
    package init() {}
}
