import Glibc
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

/// T15: whatever a token contains, signed or not, the answer is the same and the server continues.
@Suite("T15: hostile tokens")
struct HostileTokenTests {
    private static let key = String(repeating: "k", count: 88)
    private static let now: Double = 1_800_000_000
    private let directory = MemoryDirectory()
    private let apiKey = "11111111-2222-4333-8444-555555555555"

    init() {
        directory.partners[apiKey] = Partner(id: "12", authKeys: [Array(Self.key.utf8)])
        directory.apps = ["notes": "12"]
        directory.entities["e1"] = Entity(id: "e1", partner: "12", partnerEntity: "p1")
    }

    private static let good =
        #"{"rezolve_entity_id":"e1","partner_entity_id":"p1","device_id":"d","exp":1800000900}"#

    /// Payloads signed with a partner's key that are invalid, each for another reason.
    private static let payloads = {
        let deep = String(repeating: "[", count: 2_500) + String(repeating: "]", count: 2_500)
        func with(_ member: String) -> [UInt8] { Array((String(good.dropLast()) + "," + member + "}").utf8) }
        func exp(_ value: String) -> [UInt8] { Array(good.replacing("1800000900", with: value).utf8) }
        return [
            ("a name twice", with(#""exp":1800000900"#)),
            ("a name twice, once escaped", with(#""\u0065xp":1800000900"#)),
            ("a name twice, further in", with(#""x":{"a":1,"a":1}"#)),
            ("2,500 deep", with("\"x\":" + deep)),
            ("not UTF-8", Array(good.utf8.dropLast()) + Array(",\"x\":\"".utf8) + [0xC3, 0x28] + Array("\"}".utf8)),
            ("half a pair", with(#""x":"\ud800""#)),
            ("a byte order mark", [0xEF, 0xBB, 0xBF] + Array(good.utf8)),
            ("a zero byte behind it", Array(good.utf8) + [0]),
            ("two objects", Array((good + good).utf8)),
            ("1e400", exp("1e400")), ("-1e400", exp("-1e400")), ("10^40", exp("1" + String(repeating: "0", count: 40))),
            ("2^63", exp("9223372036854775808")), ("milliseconds", exp("1800000900000")),
            ("NaN", exp("NaN")), ("a number of 5,000 digits", exp(String(repeating: "9", count: 5_000))),
            ("5 KiB of spaces and nothing", .init(repeating: 0x20, count: 5_120)), ("nothing", []),
        ]
    }()

    private func request(_ token: String) throws -> HTTPRequest {
        try RequestVectors.request(
            Array(
                ("GET /api/v1/partner/12/customer/e1/publickey HTTP/1.1\r\nhost: x\r\n"
                    + "x-rezolve-partner-apikey: \(apiKey)\r\nx-rezolve-device-id: d\r\n"
                    + "authorization: Bearer \(token)\r\n\r\n").utf8))
    }

    private func answer(_ token: String) throws -> HTTPResponse {
        var service = PartnerService(directory: directory, random: RandomBytes.make)
        return service.answer(
            try request(token), to: .publicKey(partner: "12", entity: "e1"), from: "1", now: Self.now
        ).response
    }

    @Test("signed tokens with invalid content are refused in the same bytes")
    func signed() throws {
        let header: [UInt8] = Array(TokenMaker.loginHeader.utf8)
        let fine = TokenMaker.sign(header: header, payload: Array(Self.good.utf8), key: Array(Self.key.utf8))
        #expect(try answer(fine).status == 200)
        for (name, payload) in Self.payloads {
            let token = TokenMaker.sign(header: header, payload: payload, key: Array(Self.key.utf8))
            #expect(try answer(token) == PartnerAnswer.denied, "\(name)")
        }
        // The same texts as headers: each is invalid as a header, too.
        for (name, payload) in Self.payloads {
            let token = TokenMaker.sign(
                header: payload, payload: Array(Self.good.utf8), key: Array(Self.key.utf8))
            #expect(try answer(token) == PartnerAnswer.denied, "\(name)")
        }
    }

    @Test("60 KiB of letters, of dots or of base64 as a token are refused unread")
    func long() throws {
        for text: String in [
            String(repeating: "a", count: 61_440), String(repeating: ".", count: 61_440),
            String(repeating: "a", count: 61_000) + ".a." + String(repeating: "b", count: 86),
        ] {
            #expect(!SignedToken.hasForm(text))
            var service = PartnerService(directory: directory, random: RandomBytes.make)
            guard case .refused(.denied) = service.admit(text, device: "d", app: "notes", from: "1", now: Self.now)
            else {
                Issue.record("\(text.prefix(10))")
                continue
            }
            // A token longer than a request's head is refused before it is looked for, so this one is cut.
            #expect(try answer(String(text.prefix(6_000))) == PartnerAnswer.denied)
        }
    }

    @Test("3,000 tokens with bytes changed, cut or inserted are refused in the same bytes, in the stream as well")
    func mutated() throws {
        let seed = getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? 15
        var random = SeededRandom(seed: seed)
        let fine: [UInt8] = Array(
            TokenMaker.sign(TokenMaker.loginHeader, Self.good, key: Self.key).utf8)
        let letters: [UInt8] = Array("ABCxyz019-_.=+/ \u{7F}".utf8)
        for round in 0..<3_000 {
            var token: [UInt8] = fine
            for _ in 0...Int(random.next() % 3) {
                let place = Int(random.next() % UInt64(token.count))
                let letter: UInt8 = letters[Int(random.next() % UInt64(letters.count))]
                switch random.next() % 3 {
                case 0: token[place] = letter
                case 1: token.remove(at: place)
                default: token.insert(letter, at: place)
                }
            }
            guard token != fine else { continue }
            let text = String(decoding: token, as: UTF8.self)
            var service = PartnerService(directory: directory, random: RandomBytes.make)
            if case .refused(.denied) = service.admit(text, device: "d", app: "notes", from: "1", now: Self.now) {
            } else {
                Issue.record("let in, seed \(seed), round \(round): \(text)")
            }
            guard let request = try? request(text) else { continue }
            let answer: HTTPResponse = service.answer(
                request, to: .publicKey(partner: "12", entity: "e1"), from: "2", now: Self.now
            ).response
            // White space at the end of a field's line is not part of its value.
            guard text.utf8.last != 0x20 else { continue }
            #expect(answer == PartnerAnswer.denied, "seed \(seed), round \(round)")
        }
    }
}
