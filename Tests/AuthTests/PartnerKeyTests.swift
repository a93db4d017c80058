import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@testable import ThicketAuth

/// Public keys that users' devices upload.
@Suite("Public keys of partners' users")
struct PartnerKeyTests {
    private let bench: CredentialBench
    private let (entity, token): (String, String)

    init() throws {
        bench = try CredentialBench()
        entity = try #require(bench.member("sdkEntity", of: try bench.register("ann"))?.stringValue)
        token = try bench.token(try bench.login("ann"))
    }

    private func ask(
        _ method: String, _ body: String = "", entity: String? = nil, token: String? = nil, device: String = "d"
    ) throws -> HTTPResponse {
        let path = "/api/v1/partner/\(bench.partner)/customer/\(entity ?? self.entity)/publickey"
        return try bench.ask("\(method) \(path)", body, token: token ?? self.token, device: device).response
    }

    private func keys(_ first: UInt8, _ second: UInt8) -> String {
        let texts = [first, second].map { Base64.encode(Array(repeating: $0, count: 32)) }
        return #"{"public_key":"\#(texts[0])","sign_key":"\#(texts[1])"}"#
    }

    @Test(
        "uploaded keys are returned; the same upload again changes nothing, other keys get 409 and the first stay"
    )
    func upload() throws {
        #expect(try ask("GET").body == Array(#"{"public_key":null,"sign_key":null}"#.utf8))
        let made = try ask("PUT", keys(1, 2))
        #expect(made.status == 200)
        #expect(made.body == Array(keys(1, 2).utf8))
        #expect(try ask("PUT", keys(1, 2)) == made)
        for other in [keys(1, 3), keys(3, 2), keys(2, 1)] {
            let refused = try ask("PUT", other)
            #expect(refused.status == 409 && bench.member("code", of: refused) == "7")
        }
        #expect(try ask("GET").body == made.body)
    }

    @Test("only the user, on the token's device, uploads keys")
    func outsiders() throws {
        let other = try #require(bench.member("sdkEntity", of: try bench.register("bob"))?.stringValue)
        #expect(try ask("PUT", keys(1, 2), entity: other) == PartnerAnswer.denied)
        #expect(try ask("PUT", keys(1, 2), device: "e") == PartnerAnswer.denied)
        let forged = String(token.dropLast(2)) + (token.hasSuffix("AA") ? "QA" : "AA")
        #expect(try ask("PUT", keys(1, 2), token: forged) == PartnerAnswer.denied)
        bench.now += 1_801
        #expect(try ask("PUT", keys(1, 2)) == PartnerAnswer.expired)
        bench.now -= 1_801
        #expect(try ask("GET").body == Array(#"{"public_key":null,"sign_key":null}"#.utf8))
    }

    @Test(
        "an invalid pair of keys gets 400 if the token is good",
        arguments: [
            "", "[]", "{}", #"{"public_key":"AAAA","sign_key":"AAAA"}"#, #"{"public_key":7,"sign_key":7}"#, "null", "x",
        ])
    func bad(body: String) throws {
        #expect(try ask("PUT", body).status == 400)
        #expect(try ask("PUT", keys(0, 1)).status == 400, "a key of zeros")
        #expect(try ask("PUT", keys(1, 1).replacing("=", with: "")).status == 400)
        #expect(try ask("PUT", keys(1, 1)).status == 200)
    }
}
