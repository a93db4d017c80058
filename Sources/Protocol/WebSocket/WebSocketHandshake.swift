import ThicketPlatform
/// Both sides of the opening handshake (RFC 6455, 4), as pure functions: the caller passes SHA-1 and random bytes.
public enum WebSocketHandshake {
    /// The GUID of RFC 6455, 1.3. The accept value, made from it, proves that the server read this key as a WebSocket
    /// server.
    private static let magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// The value of `Sec-WebSocket-Accept` for a key.
    public static func acceptValue(key: String, sha1: ([UInt8]) -> [UInt8]) -> String {
        Base64.encode(sha1(Array(key.utf8) + Array(magic.utf8)))
    }

    /// Checks a client's opening request.
    ///
    /// - Returns: the key to answer.
    /// - Throws: status 426 for another WebSocket version or a request that does not ask for an upgrade, 400 for the
    ///   rest.
    public static func key(of request: HTTPRequest) throws(HTTPFailure) -> String {
        let fields = request.fields
        // A body is refused, even an empty chunked one: a proxy could take it for the first bytes of the WebSocket.
        guard request.method == "GET", request.minorVersion >= 1, request.body.isEmpty,
            fields["transfer-encoding"] == nil, fields.tokens(of: "upgrade").contains("websocket"),
            fields.tokens(of: "connection").contains("upgrade")
        else { throw HTTPFailure(.notAnUpgrade) }
        guard fields.count(of: "sec-websocket-version") == 1, fields["sec-websocket-version"] == "13" else {
            throw HTTPFailure(.webSocketVersion)
        }
        guard fields.count(of: "sec-websocket-key") == 1, let key = fields["sec-websocket-key"],
            isSixteenBytes(key)
        else { throw HTTPFailure(.badKey) }
        return key
    }

    /// A server's answer. It never agrees to an extension or a subprotocol.
    public static func accepted(key: String, sha1: ([UInt8]) -> [UInt8]) -> [UInt8] {
        let value = acceptValue(key: key, sha1: sha1)
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(value)\r\n\r\n"
        return Array(head.utf8)
    }

    /// A client's opening request.
    ///
    /// - Parameters:
    ///   - host: the host, with the port if it is not the scheme's default.
    ///   - target: path and query, beginning with `/`.
    ///   - nonce: 16 random bytes, new for each request.
    ///   - fields: more fields, such as `user-agent`.
    public static func request(host: String, target: String, nonce: [UInt8], fields: HTTPFields = []) -> [UInt8] {
        var head =
            "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: \(Base64.encode(nonce))\r\nSec-WebSocket-Version: 13\r\n"
        for field in fields.all { head += "\(field.name): \(field.value)\r\n" }
        return Array((head + "\r\n").utf8)
    }

    /// Checks a server's answer to `request` (RFC 6455, 4.1).
    ///
    /// - Throws: `refusedUpgrade` for any status but 101; otherwise the exact problem of the 101 answer.
    public static func check(
        _ head: HTTPResponseHead, nonce: [UInt8], sha1: ([UInt8]) -> [UInt8]
    ) throws(HTTPFailure) {
        guard head.status == 101 else { throw HTTPFailure(.refusedUpgrade) }
        guard head.fields.tokens(of: "upgrade") == ["websocket"],
            head.fields.tokens(of: "connection").contains("upgrade")
        else { throw HTTPFailure(.notAnUpgrade) }
        let expected = acceptValue(key: Base64.encode(nonce), sha1: sha1)
        guard let accept = head.fields["sec-websocket-accept"], accept.utf8.elementsEqual(expected.utf8),
            head.fields.count(of: "sec-websocket-accept") == 1
        else { throw HTTPFailure(.badAccept) }
        guard head.fields["sec-websocket-extensions"] == nil else { throw HTTPFailure(.unexpectedExtension) }
        guard head.fields["sec-websocket-protocol"] == nil else { throw HTTPFailure(.unexpectedSubprotocol) }
    }
}

extension WebSocketHandshake {
    /// Whether `text` is the base64 of 16 bytes: 22 letters, the last of which carries two bits, and two `=`. Its
    /// unused bits need not be zero.
    private static func isSixteenBytes(_ text: String) -> Bool {
        let bytes = [UInt8](text.utf8)
        guard bytes.count == 24, bytes[22...].elementsEqual("==".utf8) else { return false }
        return bytes[..<22].allSatisfy(Base64.isLetter)
    }
}
