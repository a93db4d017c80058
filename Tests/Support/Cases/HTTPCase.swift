public import ThicketProtocol

/// A request that a strict server accepts, or refuses for this problem.
public struct HTTPCase: Sendable {
    public let title: String
    public let bytes: [UInt8]
    /// Nil when the request is good.
    public let problem: HTTPFailure.Problem?

    init(_ title: String, _ text: String, _ problem: HTTPFailure.Problem?) {
        self.init(title, bytes: Array(text.utf8), problem)
    }

    init(_ title: String, bytes: [UInt8], _ problem: HTTPFailure.Problem?) {
        (self.title, self.bytes, self.problem) = (title, bytes, problem)
    }

    private static func get(_ line: String, _ fields: String = "Host: x\r\n") -> String { "\(line)\r\n\(fields)\r\n" }
    private static func post(_ fields: String, _ body: String) -> String {
        "POST / HTTP/1.1\r\nHost: x\r\n\(fields)\r\n\(body)"
    }

    /// All cases.
    public static let all: [HTTPCase] = firstLines + fields + hosts + framing + chunks + lineEnds

    static let firstLines: [HTTPCase] = [
        .init("a plain request", get("GET / HTTP/1.1"), nil),
        .init("HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", nil),
        .init("an absolute target", get("GET http://x/path HTTP/1.1"), nil),
        .init("an absolute target, upper case", get("GET HTTP://x/path HTTP/1.1"), nil),
        .init("an absolute https target", get("GET https://x:1/p?q HTTP/1.1"), nil),
        .init("an absolute target without path", get("GET http://x HTTP/1.1"), .badTarget),
        .init("an absolute target without authority", get("GET http:///x HTTP/1.1"), .badTarget),
        .init("a star for OPTIONS", get("OPTIONS * HTTP/1.1"), nil),
        .init("a star for GET", get("GET * HTTP/1.1"), .badTarget),
        .init("a relative target", get("GET path HTTP/1.1"), .badTarget),
        .init("another scheme", get("GET ftp://x/ HTTP/1.1"), .badTarget),
        .init("CONNECT", get("CONNECT x:443 HTTP/1.1"), .badTarget),
        .init("a fragment", get("GET /a#b HTTP/1.1"), .badTarget),
        .init("a target beyond ASCII", get("GET /ü HTTP/1.1"), .badTarget),
        .init("an unknown method is the router's matter", get("BREW / HTTP/1.1"), nil),
        .init("a method in lower case is another method", get("get / HTTP/1.1"), nil),
        .init("a method with a bracket", get("G(T / HTTP/1.1"), .badMethod),
        .init("a method that is too long", get(String(repeating: "A", count: 25) + " / HTTP/1.1"), .badMethod),
        .init("no method", get(" / HTTP/1.1"), .badMethod),
        .init("no target", get("GET HTTP/1.1"), .badRequestLine),
        .init("no version (HTTP/0.9)", get("GET /"), .badRequestLine),
        .init("two spaces", get("GET  / HTTP/1.1"), .badRequestLine),
        .init("a space at the end", get("GET / HTTP/1.1 "), .badRequestLine),
        .init("a tab for a space", get("GET\t/ HTTP/1.1"), .badRequestLine),
        .init("HTTP/1.2", get("GET / HTTP/1.2"), .versionNotSupported),
        .init("HTTP/2.0", get("GET / HTTP/2.0"), .versionNotSupported),
        .init("HTTP/1.01", get("GET / HTTP/1.01"), .badVersion),
        .init("http/1.1", get("GET / http/1.1"), .badVersion),
        .init("HTTP/1", get("GET / HTTP/1"), .badVersion),
        .init("HTTP/x.1", get("GET / HTTP/x.1"), .badVersion),
        .init("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .versionNotSupported),
        .init("one empty line before the request", "\r\n" + get("GET / HTTP/1.1"), nil),
        .init("two empty lines before the request", "\r\n\r\n" + get("GET / HTTP/1.1"), .badRequestLine),
    ]

    static let fields: [HTTPCase] = [
        .init("a field without value", get("GET / HTTP/1.1", "Host: x\r\nA:\r\n"), nil),
        .init("white space around a value", get("GET / HTTP/1.1", "Host:  \t x \t\r\n"), nil),
        .init("bytes above ASCII in a value", get("GET / HTTP/1.1", "Host: x\r\nA: grün\r\n"), nil),
        .init("a space before the colon", get("GET / HTTP/1.1", "Host : x\r\n"), .badFieldName),
        .init("a tab before the colon", get("GET / HTTP/1.1", "Host\t: x\r\n"), .badFieldName),
        .init("a space in a name", get("GET / HTTP/1.1", "Host: x\r\nA B: c\r\n"), .badFieldName),
        .init("no name", get("GET / HTTP/1.1", "Host: x\r\n: c\r\n"), .badFieldName),
        .init("no colon", get("GET / HTTP/1.1", "Host: x\r\nabc\r\n"), .badFieldName),
        .init("a name beyond ASCII", get("GET / HTTP/1.1", "Host: x\r\nÄ: c\r\n"), .badFieldName),
        .init("a folded line", get("GET / HTTP/1.1", "Host: x\r\nA: b\r\n c\r\n"), .foldedLine),
        .init("a line folded by a tab", get("GET / HTTP/1.1", "Host: x\r\nA: b\r\n\tc\r\n"), .foldedLine),
        .init("a folded first field", get("GET / HTTP/1.1", " Host: x\r\n"), .foldedLine),
        .init("a line of white space", get("GET / HTTP/1.1", "Host: x\r\n \r\n"), .foldedLine),
        .init(
            "64 fields", get("GET / HTTP/1.1", "Host: x\r\n" + String(repeating: "A: b\r\n", count: 63)), nil),
        .init(
            "65 fields", get("GET / HTTP/1.1", "Host: x\r\n" + String(repeating: "A: b\r\n", count: 64)),
            .tooManyFields),
        .init(
            "a line of 16 KiB", get("GET / HTTP/1.1", "Host: x\r\nA: \(String(repeating: "b", count: 16_384))\r\n"),
            .headTooLong),
        .init(
            "a token of 8 KiB and cookies",
            get(
                "GET / HTTP/1.1",
                "Host: x\r\nAuthorization: Bearer \(String(repeating: "b", count: 8_192))\r\n"
                    + "Cookie: \(String(repeating: "c", count: 16_000))\r\n"), nil),
        .init(
            "60 KiB of fields",
            get(
                "GET / HTTP/1.1",
                "Host: x\r\n" + String(repeating: "A: \(String(repeating: "b", count: 1_000))\r\n", count: 60)),
            nil),
        .init(
            "a head of 64 KiB",
            get(
                "GET / HTTP/1.1",
                "Host: x\r\n" + String(repeating: "A: \(String(repeating: "b", count: 1_100))\r\n", count: 63)),
            .headTooLong),
        .init("a target of 5,000 bytes", get("GET /\(String(repeating: "b", count: 5_000)) HTTP/1.1"), .targetTooLong),
        .init(
            "a first line over the bound that is no request line either",
            get("GET /\(String(repeating: "b", count: 4_200))"), .targetTooLong),
        .init("a target that never ends", "GET /" + String(repeating: "b", count: 5_000), .targetTooLong),
        .init("an expectation", post("Expect: 100-continue\r\nContent-Length: 1\r\n", "a"), nil),
        .init("another expectation", get("GET / HTTP/1.1", "Host: x\r\nExpect: miracles\r\n"), .badExpectation),
    ]

    static let hosts: [HTTPCase] = [
        .init("no Host", "GET / HTTP/1.1\r\n\r\n", .missingHost),
        .init("two Hosts", get("GET / HTTP/1.1", "Host: x\r\nHost: x\r\n"), .repeatedHost),
        .init("two Hosts in HTTP/1.0", get("GET / HTTP/1.0", "Host: x\r\nHost: y\r\n"), .repeatedHost),
        .init("an empty Host", get("GET / HTTP/1.1", "Host:\r\n"), nil),
        .init("an IPv6 Host", get("GET / HTTP/1.1", "Host: [::1]:8000\r\n"), nil),
        .init("a Host with a comma", get("GET / HTTP/1.1", "Host: a,b\r\n"), .badHost),
        .init("a Host with a space", get("GET / HTTP/1.1", "Host: a b\r\n"), .badHost),
        .init("a Host with a path", get("GET / HTTP/1.1", "Host: a/b\r\n"), .badHost),
        .init("a Host with a user", get("GET / HTTP/1.1", "Host: me@a\r\n"), .badHost),
        .init("a Host beyond ASCII", get("GET / HTTP/1.1", "Host: bücher\r\n"), .badHost),
    ]

    static let framing: [HTTPCase] = [
        .init("a length", post("Content-Length: 3\r\n", "abc"), nil),
        .init("a length of 0", post("Content-Length: 0\r\n", ""), nil),
        .init("a length with zeros before it", post("Content-Length: 003\r\n", "abc"), nil),
        .init("two lengths that differ", post("Content-Length: 3\r\nContent-Length: 4\r\n", "abc"), .repeatedLength),
        .init("two lengths that agree", post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), .repeatedLength),
        .init("a list of lengths", post("Content-Length: 3, 3\r\n", "abc"), .badLength),
        .init("a signed length", post("Content-Length: +3\r\n", "abc"), .badLength),
        .init("a negative length", post("Content-Length: -3\r\n", "abc"), .badLength),
        .init("a hexadecimal length", post("Content-Length: 0x3\r\n", "abc"), .badLength),
        .init("an empty length", post("Content-Length:\r\n", "abc"), .badLength),
        .init("a length with a space in it", post("Content-Length: 1 3\r\n", "abc"), .badLength),
        .init("a length over the limit", post("Content-Length: 1048577\r\n", ""), .bodyTooLong),
        .init("a length beyond 64 bits", post("Content-Length: 99999999999999999999999\r\n", ""), .bodyTooLong),
        .init(
            "length and coding", post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            .lengthAndCoding),
        .init(
            "coding and length", post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n"),
            .lengthAndCoding),
        .init("chunked", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), nil),
        .init("chunked in capitals", post("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n"), nil),
        .init(
            "chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            .codingNotSupported),
        .init("a list with chunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), .codingNotSupported),
        .init("chunked, chunked", post("Transfer-Encoding: chunked, chunked\r\n", ""), .codingNotSupported),
        .init("identity", post("Transfer-Encoding: identity\r\n", ""), .codingNotSupported),
        .init("chunked behind a vertical tab", post("Transfer-Encoding: \u{0B}chunked\r\n", ""), .controlByte),
        .init("xchunked", post("Transfer-Encoding: xchunked\r\n", ""), .codingNotSupported),
        .init("an empty coding", post("Transfer-Encoding:\r\n", ""), .codingNotSupported),
        .init("a coding name with a space", post("Transfer-Encoding : chunked\r\n", ""), .badFieldName),
        .init(
            "a coding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            .codingInOldVersion),
        .init("GET with a body", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab", nil),
    ]

    private static func chunked(_ body: String) -> String { post("Transfer-Encoding: chunked\r\n", body) }

    static let chunks: [HTTPCase] = [
        .init("several chunks", chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), nil),
        .init("an extension", chunked("3;a=b\r\nabc\r\n0;c\r\n\r\n"), nil),
        .init("trailers", chunked("0\r\nA: b\r\nC: d\r\n\r\n"), nil),
        .init("a bad trailer", chunked("0\r\nA b\r\n\r\n"), .badFieldName),
        .init("a folded trailer", chunked("0\r\nA: b\r\n c\r\n\r\n"), .foldedLine),
        .init("a size that is no number", chunked("x\r\n"), .badChunk),
        .init("a signed size", chunked("+3\r\nabc\r\n"), .badChunk),
        .init("a size with 0x", chunked("0x3\r\nabc\r\n"), .badChunk),
        .init("an empty size", chunked("\r\nabc\r\n"), .badChunk),
        .init("a size with a space behind it", chunked("3 \r\nabc\r\n"), .badChunk),
        .init("only an extension", chunked(";a\r\n"), .badChunk),
        .init("a size of many digits", chunked("0000000000003\r\n"), .badChunk),
        .init("a size that would overflow", chunked("FFFFFFFFFFFFFFFFF\r\n"), .badChunk),
        .init("more than the limit", chunked("100001\r\n"), .bodyTooLong),
        .init("a chunk longer than its size", chunked("3\r\nabcd\r\n0\r\n\r\n"), .badChunk),
        .init("a bare LF behind a size", chunked("3\nabc\r\n0\r\n\r\n"), .bareLineFeed),
        .init("a bare LF behind a chunk", chunked("3\r\nabc\n0\r\n\r\n"), .bareLineFeed),
        .init("a bare LF at the end", chunked("0\r\n\n"), .bareLineFeed),
        .init("a bare CR in an extension", chunked("3;a\rb\r\n"), .bareCarriageReturn),
        .init("a long extension", chunked("3;\(String(repeating: "a", count: 300))\r\n"), .chunkLineTooLong),
        .init(
            "endless trailers", chunked("0\r\n" + String(repeating: "A: bbbbbbbbbbbbbbbbbbbbbbbbb\r\n", count: 200)),
            .headTooLong),
    ]

    static let lineEnds: [HTTPCase] = [
        .init("bare LF behind the request line", "GET / HTTP/1.1\nHost: x\r\n\r\n", .bareLineFeed),
        .init("bare LF behind a field", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", .bareLineFeed),
        .init("bare LF at the end", "GET / HTTP/1.1\r\nHost: x\r\n\n", .bareLineFeed),
        .init("bare CR in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", .bareCarriageReturn),
        .init("bare CR for a line end", "GET / HTTP/1.1\rHost: x\r\r", .bareCarriageReturn),
        .init("CR CR LF", "GET / HTTP/1.1\r\r\nHost: x\r\n\r\n", .bareCarriageReturn),
        .init("NUL in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n", .controlByte),
        .init("NUL in the target", "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", .controlByte),
        .init("DEL in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: \u{7F}\r\n\r\n", .controlByte),
        .init("the hello of TLS", bytes: [0x16, 0x03, 0x01, 0x02, 0x00, 0x01], .controlByte),
        .init("nothing but LF", "\n", .bareLineFeed),
    ]
}
