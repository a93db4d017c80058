import Testing

@testable import ThicketProtocol

@Suite("PROXY protocol")
struct ProxyPrefaceTests {
    enum Expected: Equatable, Sendable {
        case source(String?)
        case incomplete
        case failure(ProxyPreface.Failure)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let expected: Expected
        init(_ name: String, _ bytes: [UInt8], _ expected: Expected) {
            (testDescription, self.bytes, self.expected) = (name, bytes, expected)
        }
        init(_ line: String, _ expected: Expected) { self.init(line, Array(line.utf8), expected) }
    }

    private static let signature: [UInt8] = Array("\r\n\r\n\0\r\nQUIT\n".utf8)
    private static func block(_ command: UInt8, _ family: UInt8, _ body: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? body.count
        return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + body
    }
    private static let four: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 2, 0xDC, 4, 1, 0xBB]
    private static let six: [UInt8] = [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 11) + [9] + [UInt8](0..<20)

    static let cases: [Case] = [
        Case("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n", .source("192.0.2.1")),
        Case("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n", .source("2001:db8::1")),
        Case("PROXY UNKNOWN\r\n", .source(nil)),
        Case("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", .source(nil)),
        Case("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r", .incomplete),
        Case("PROX", .incomplete),
        Case("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\n", .failure(.malformed)),
        Case("PROXY TCP4 192.0.2.1 198.51.100.2 56324\r\n", .failure(.malformed)),
        Case("PROXY TCP4 192.0.2.1  198.51.100.2 56324 443\r\n", .failure(.malformed)),
        Case("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443 \r\n", .failure(.malformed)),
        Case("PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n", .failure(.malformed)),
        Case("PROXY TCP4 192.0.2.1 198.51.100.2 056 443\r\n", .failure(.malformed)),
        Case("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n", .failure(.malformed)),
        Case("PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n", .failure(.malformed)),
        Case("PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n", .failure(.malformed)),
        Case("PROXY \r\n", .failure(.malformed)),
        Case("PROXY UNKNOWN " + String(repeating: "x", count: 100), .failure(.tooLong)),
        Case("PUT / HTTP/1.1\r\n", .failure(.notThere)),
        Case("GET / HTTP/1.1\r\n", .failure(.notThere)),
        Case("proxy TCP4", .failure(.notThere)),
        Case("\r\nGET / HTTP/1.1", .failure(.notThere)),
        Case("2: TCP over IPv4", block(0x21, 0x11, four), .source("192.0.2.1")),
        Case("2: TCP over IPv6", block(0x21, 0x21, six), .source("2001:db8::9")),
        Case("2: with more behind the addresses", block(0x21, 0x11, four + [4, 0, 1, 7]), .source("192.0.2.1")),
        Case("2: the proxy itself", block(0x20, 0, []), .source(nil)),
        Case("2: the proxy itself, with addresses", block(0x20, 0x11, four), .source(nil)),
        Case("2: of no family", block(0x21, 0, [1, 2, 3]), .source(nil)),
        Case("2: datagrams", block(0x21, 0x12, four), .source(nil)),
        Case("2: sockets of one machine", block(0x21, 0x31, [UInt8](repeating: 0x61, count: 216)), .source(nil)),
        Case("2: not all there", Array(block(0x21, 0x11, four).dropLast()), .incomplete),
        Case("2: the head only", Array(block(0x21, 0x11, four).prefix(15)), .incomplete),
        Case("2: too short for its family", block(0x21, 0x21, four), .failure(.malformed)),
        Case("2: another version", block(0x11, 0x11, four), .failure(.malformed)),
        Case("2: another command", block(0x22, 0x11, four), .failure(.malformed)),
        Case("2: another family", block(0x21, 0x41, six + six), .failure(.malformed)),
        Case("2: too long", block(0x21, 0x11, four, length: 65_535), .failure(.tooLong)),
        Case("2: a broken signature", Array("\r\n\r\n\0\r\nQUIX\n".utf8), .failure(.notThere)),
    ]

    private func read(_ bytes: [UInt8], pieces: Int) -> (Expected, rest: Int) {
        var preface = ProxyPreface()
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            let outcome = piece.withUnsafeBytes { bytes in
                Result { () throws(ProxyPreface.Failure) in
                    var input = bytes
                    let isComplete = try preface.consume(&input)
                    return (isComplete, input.count)
                }
            }
            switch outcome {
            case .failure(let failure): return (.failure(failure), rest.count)
            case .success((let isComplete, let left)):
                rest = rest.dropFirst(piece.count - left)
                if isComplete { return (.source(preface.source?.description), rest.count) }
            }
        }
        return (.incomplete, 0)
    }

    @Test("every preface is read as its description says, however it is cut, and nothing after it", arguments: cases)
    func table(_ each: Case) {
        for pieces in [1, 2, 5, 16, 1_000] {
            #expect(read(each.bytes, pieces: pieces).0 == each.expected, "in pieces of \(pieces)")
            guard case .source = each.expected else { continue }
            let (result, rest) = read(each.bytes + Array("GET /".utf8), pieces: pieces)
            #expect(result == each.expected && rest == 5, "in pieces of \(pieces)")
        }
    }
}
