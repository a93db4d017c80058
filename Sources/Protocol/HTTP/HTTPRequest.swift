/// A complete request that passed all checks of `HTTPRequestReader`.
public struct HTTPRequest: Sendable, Equatable {
    /// The method as sent; methods are case-sensitive.
    public let method: String
    /// The target after the authority: `/sock/1/app/websocket?x=1`, or `*`.
    public let target: String
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    public let minorVersion: Int
    /// The header fields.
    public let fields: HTTPFields
    /// The body, with its chunks joined. Empty without a body.
    public internal(set) var body: [UInt8] = []

    /// The target up to the question mark, still percent-encoded.
    public var path: Substring { target[..<(target.firstIndex(of: "?") ?? target.endIndex)] }
    /// The target after the question mark, still percent-encoded; nil without one.
    public var query: Substring? {
        target.firstIndex(of: "?").map { target[target.index(after: $0)...] }
    }
    /// Whether the peer wants to keep this connection open (RFC 9112, 9.3).
    public var keepsAlive: Bool {
        let tokens = fields.tokens(of: "connection")
        if tokens.contains("close") { return false }
        return minorVersion >= 1 || tokens.contains("keep-alive")
    }
    /// Whether the peer waits for "100 Continue" before it sends the body.
    public var expectsContinue: Bool { minorVersion >= 1 && fields["expect"] != nil }

    /// Reads a head that `HTTPHeadReader` has collected.
    init(lines: [ArraySlice<UInt8>], limits: HTTPLimits) throws(HTTPFailure) {
        guard let first = lines.first else { throw HTTPFailure(.badRequestLine) }
        let parts = first.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw HTTPFailure(.badRequestLine) }
        method = try Self.method(parts[0])
        minorVersion = try Self.minorVersion(parts[2])
        target = try Self.target(parts[1], method: method, limits: limits)
        fields = try HTTPFields(lines: lines.dropFirst(), limits: limits)
        try Self.checkHost(fields, minorVersion: minorVersion)
        if let expectation = fields["expect"], minorVersion >= 1 {
            let isKnown = expectation.utf8.map(HTTPText.lowercased).elementsEqual("100-continue".utf8)
            guard isKnown && fields.count(of: "expect") == 1 else { throw HTTPFailure(.badExpectation) }
        }
    }

    /// Bytes of a method at most. The longest method in the IANA registry has 16.
    private static let methodBytesMax = 24

    private static func method(_ bytes: ArraySlice<UInt8>) throws(HTTPFailure) -> String {
        guard !bytes.isEmpty && bytes.count <= methodBytesMax && bytes.allSatisfy(HTTPText.isToken) else {
            throw HTTPFailure(.badMethod)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func minorVersion(_ bytes: ArraySlice<UInt8>) throws(HTTPFailure) -> Int {
        let bytes = [UInt8](bytes)
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), bytes[6] == UInt8(ascii: "."),
            HTTPText.isDigit(bytes[5]), HTTPText.isDigit(bytes[7])
        else { throw HTTPFailure(.badVersion) }
        guard bytes[5] == UInt8(ascii: "1"), bytes[7] <= UInt8(ascii: "1") else {
            throw HTTPFailure(.versionNotSupported)
        }
        return Int(bytes[7]) - 0x30
    }

    /// Origin form, absolute form (its authority is dropped, because Host decides) or `*` for OPTIONS (RFC 9112, 3.2).
    private static func target(
        _ bytes: ArraySlice<UInt8>, method: String, limits: HTTPLimits
    ) throws(HTTPFailure) -> String {
        guard bytes.count <= limits.targetBytesMax else { throw HTTPFailure(.targetTooLong) }
        let isClean = bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
        guard isClean && method != "CONNECT" else { throw HTTPFailure(.badTarget) }
        if bytes.first == UInt8(ascii: "/") { return String(decoding: bytes, as: UTF8.self) }
        if bytes.elementsEqual("*".utf8) && method == "OPTIONS" { return "*" }
        let lowered = bytes.prefix(8).map(HTTPText.lowercased)
        let schemeSize = lowered.starts(with: "http://".utf8) ? 7 : lowered.elementsEqual("https://".utf8) ? 8 : 0
        guard schemeSize > 0 else { throw HTTPFailure(.badTarget) }
        let rest = bytes.dropFirst(schemeSize)
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")), slash > rest.startIndex else {
            throw HTTPFailure(.badTarget)
        }
        return String(decoding: rest[slash...], as: UTF8.self)
    }

    private static func checkHost(_ fields: HTTPFields, minorVersion: Int) throws(HTTPFailure) {
        let count = fields.count(of: "host")
        guard count <= 1 else { throw HTTPFailure(.repeatedHost) }
        guard count == 1 || minorVersion == 0 else { throw HTTPFailure(.missingHost) }
        let isClean = (fields["host"] ?? "").utf8.allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && !",/?#@\\\"<>{}^`|".utf8.contains(byte)
        }
        guard isClean else { throw HTTPFailure(.badHost) }
    }
}

/// How many bytes of body follow a head (RFC 9112, 6).
enum HTTPBodyFraming: Equatable {
    case none
    case length(Int)
    case chunked

    /// Determines the framing of a request. A request that states it in two ways is refused even if both agree.
    init(_ request: HTTPRequest, limits: HTTPLimits) throws(HTTPFailure) {
        let lengths = request.fields.count(of: "content-length")
        let codings = request.fields.count(of: "transfer-encoding")
        guard lengths <= 1 else { throw HTTPFailure(.repeatedLength) }
        guard lengths == 0 || codings == 0 else { throw HTTPFailure(.lengthAndCoding) }
        if codings > 0 {
            guard request.minorVersion >= 1 else { throw HTTPFailure(.codingInOldVersion) }
            guard codings == 1, request.fields.tokens(of: "transfer-encoding") == ["chunked"] else {
                throw HTTPFailure(.codingNotSupported)
            }
            self = .chunked
        } else if let text = request.fields["content-length"] {
            let digits = [UInt8](text.utf8)
            guard !digits.isEmpty && digits.allSatisfy(HTTPText.isDigit) else { throw HTTPFailure(.badLength) }
            guard digits.count <= 18, let length = Int(text), length <= limits.bodyBytesMax else {
                throw HTTPFailure(.bodyTooLong)
            }
            self = length == 0 ? .none : .length(length)
        } else {
            self = .none
        }
    }
}
