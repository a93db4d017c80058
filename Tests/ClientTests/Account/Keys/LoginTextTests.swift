import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

@Suite("Logins hide tokens and users when printed", .serialized, .timeLimit(.minutes(15)))
struct LoginTextTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func accounts(_ device: String, isLocked: Bool = false) throws -> Accounts {
        let calls = try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: device, options: .init())
        let line = BadLine(calls) { _, request in
            guard isLocked, request.path == "login" else { return .none }
            return .says { $0.setting(["locked": .bool(true), "access": .null]) }
        }
        return Accounts(app: "notes", device: device, api: try line.api())
    }

    /// The text that printing, logging or dumping the value shows.
    private static func texts(_ value: some Any) -> String {
        var dumped = ""
        dump(value, to: &dumped)
        dump([value], to: &dumped)
        return "\(value) \(String(reflecting: value)) \([value]) \(dumped)"
    }

    @Test(
        "a login, received keys, a locked account and a token request print neither the token nor the user"
    )
    func texts() async throws {
        let ann = try await accounts("old").signUp(name: "ann.canary", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        _ = try await accounts("old").give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        let received = try #require(try await accounts("new").receive(begun))
        guard
            case .locked(let locked) = try await accounts("new", isLocked: true).signIn(
                name: "ann.canary", password: KeyBench.secret("one"))
        else { throw ClientError(.refused, "it is not locked") }
        let request = TokenRequest(
            entityId: "ann.canary", partnerId: "partner", deviceId: "new", accessToken: ann.accessToken)
        let shown: [(text: String, token: String)] = [
            (Self.texts(ann), ann.accessToken), (Self.texts(received), received.accessToken),
            (Self.texts(locked), locked.accessToken), (Self.texts(request), request.accessToken),
        ]
        for (text, token) in shown {
            #expect(token.count > 20 && !text.contains(token) && !text.contains("canary"), "\(text.prefix(40))")
        }
        #expect(Self.texts(["canary"]).contains("canary"), "the search is not blind")
    }
}
