import CThicketAllocations
import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketAuth

/// T15: input that tries to make a parser slow, deep or large.
@Suite("T15: hostile heads and bodies", .serialized)
struct HostileBodyTests {
    /// The largest allocation, in bytes, that reading and answering a request of 60 KiB may make.
    private static let blockMax = 1 << 20
    private static let size = 60 << 10
    private static let key = String(repeating: "k", count: 88)
    private static let apiKey = "11111111-2222-4333-8444-555555555555"

    /// Texts of 60 KiB or 2,500 levels, none of which is a valid request.
    private static let bodies: [(name: String, bytes: [UInt8])] = {
        func filled(_ start: String, _ piece: String, _ end: String) -> [UInt8] {
            Array((start + String(repeating: piece, count: size / piece.utf8.count) + end).utf8)
        }
        let deep = String(repeating: "[", count: 2_500) + String(repeating: "]", count: 2_500)
        let objects = String(repeating: #"{"a":"#, count: 2_500) + "1" + String(repeating: "}", count: 2_500)
        return [
            ("one name again and again", filled("{\"x\":1", ",\"x\":1", "}")),
            ("many names", Array(("{" + (0..<5_000).map { "\"n\($0)\":1" }.joined(separator: ",") + "}").utf8)),
            ("2,500 lists", Array(deep.utf8)), ("2,500 objects", Array(objects.utf8)),
            ("lists that never end", filled("", "[", "")), ("2,500 deep in a member", Array("{\"x\":\(deep)}".utf8)),
            ("not UTF-8", Array("{\"x\":\"".utf8) + [UInt8](repeating: 0xC3, count: size)),
            ("a number of 60,000 digits", filled("{\"x\":", "9", "}")),
            ("an exponent of 60,000 digits", filled("{\"x\":1e", "9", "}")),
            ("a long text", filled("{\"x\":\"", "a", "\"}")),
            ("escapes", filled("{\"x\":\"", "\\u0041", "\"}")), ("half pairs", filled("{\"x\":\"", "\\ud800", "\"}")),
            ("white space", filled("", " ", "")), ("commas", filled("[", ",", "]")),
            ("a form of many members", filled("", "a=%41&", "")), ("a form of percents", filled("a=", "%", "")),
            ("zero bytes", .init(repeating: 0, count: size)),
        ]
    }()

    /// The largest block that a piece of work allocates.
    private static func largestBlock(_ body: () throws -> Void) rethrows -> Int {
        thicket_allocations_begin()
        defer { _ = thicket_allocations_end() }
        try body()
        return Int(thicket_allocations_largest())
    }

    @Test(
        "T15: bodies of 60 KiB and 2,500 levels are answered 400, and no block above 1 MiB is allocated",
        .enabled(if: thicket_allocations_are_counted() != 0, "no counter under a sanitizer"))
    func bodies() throws {
        let bench = try AccountBench()
        let partners = Self.partners()
        let token = TokenMaker.registration(partnerEntity: "p9", expiry: "1800000600", key: Self.key)
        let paths = ["create/", "auth/signup", "auth/login", "auth/prelogin", "auth/recover"]
        for body in Self.bodies {
            let text = String(decoding: body.bytes, as: UTF8.self)
            for path in paths {
                var status = 0
                let block = try Self.largestBlock { status = try bench.post(path, text).status }
                #expect(status == 400, "\(path), \(body.name)")
                #expect(block <= Self.blockMax, "\(path), \(body.name): a block of \(block) bytes")
            }
            var status = 0
            let block = try Self.largestBlock {
                var service = partners
                let head: String =
                    "POST /api/v1/authentication/register HTTP/1.1\r\nhost: x\r\n"
                    + "x-rezolve-partner-apikey: \(Self.apiKey)\r\nauthorization: Bearer \(token)\r\n"
                    + "content-length: \(body.bytes.count)\r\n\r\n"
                status =
                    service.answer(
                        try RequestVectors.request(Array(head.utf8) + body.bytes), to: .register, from: "1", now: 1.8e9
                    ).response.status
            }
            #expect(status == 400, "\(body.name)")
            #expect(block <= Self.blockMax, "\(body.name): a block of \(block) bytes")
        }
    }

    @Test(
        "T15: 60 KiB in a head, a token or a token's JSON are refused, and no block above 1 MiB is allocated",
        .enabled(if: thicket_allocations_are_counted() != 0, "no counter under a sanitizer"))
    func heads() throws {
        let partners = Self.partners()
        for body in Self.bodies {
            let tokens: [String] = [
                String(decoding: body.bytes, as: UTF8.self), Base64.encodeURL(body.bytes),
                TokenMaker.sign(
                    header: Array(TokenMaker.loginHeader.utf8), payload: body.bytes, key: Array(Self.key.utf8)),
                // As much as a token may hold.
                TokenMaker.sign(
                    header: Array(TokenMaker.loginHeader.utf8), payload: Array(body.bytes.prefix(5_900)),
                    key: Array(Self.key.utf8)),
                TokenMaker.sign(
                    header: Array(body.bytes.prefix(5_900)), payload: [0x7B, 0x7D], key: Array(Self.key.utf8)),
            ]
            for (place, token) in tokens.enumerated() {
                var isRefused = false
                let block = Self.largestBlock {
                    var service = partners
                    if case .refused(.denied) = service.admit(token, device: "d", app: "notes", from: "1", now: 1.8e9) {
                        isRefused = true
                    }
                }
                #expect(isRefused, "\(body.name), token \(place)")
                #expect(block <= Self.blockMax, "\(body.name), token \(place): a block of \(block) bytes")
            }
            for line in ["x-a: ", "authorization: Bearer ", "GET /", "", "cookie: "] {
                let block = Self.largestBlock {
                    _ = try? RequestVectors.request(
                        Array("GET / HTTP/1.1\r\nhost: x\r\n\(line)".utf8) + body.bytes + Array("\r\n\r\n".utf8))
                }
                #expect(block <= Self.blockMax, "\(body.name), '\(line)': a block of \(block) bytes")
            }
        }
    }

    @Test(
        "T15: the allocation counter reports a block of 2 MiB",
        .enabled(if: thicket_allocations_are_counted() != 0, "no counter under a sanitizer"))
    func counter() {
        let block = Self.largestBlock { _ = [UInt8](repeating: 1, count: 2 << 20).count }
        #expect(block >= 2 << 20)
    }

    private static func partners() -> PartnerService {
        let directory = MemoryDirectory()
        directory.partners[apiKey] = Partner(id: "12", authKeys: [Array(key.utf8)])
        directory.apps = ["notes": "12"]
        directory.entities["e1"] = Entity(id: "e1", partner: "12", partnerEntity: "p1")
        return PartnerService(directory: directory, random: RandomBytes.make)
    }
}
