import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@Suite("A new device gets the keys from an old one, at a real server", .serialized, .timeLimit(.minutes(15)))
struct PairingTests {
    private let bench: AccountServer
    init() throws { bench = try AccountServer() }

    private func accounts(
        _ device: String, _ fault: @escaping @Sendable (AccountRequest) -> BadLine.Fault = { _ in .none }
    ) throws -> Accounts {
        let calls = try ServerCalls(
            address: bench.address, app: "notes", apiKey: bench.accountKey, deviceId: device, options: .init())
        let line = BadLine(calls) { _, request in fault(request) }
        return Accounts(app: "notes", device: device, api: try line.api())
    }

    @Test("a pairing shows four equal words, gives the same keys and a login that outlives the old device's")
    func pair() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let new = try accounts("new")
        let begun = try await new.beginPairing()
        #expect(begun.pairing.code.filter { $0 != "-" }.count == 26)
        #expect(try await new.receive(begun) == nil)
        let typed = begun.pairing.code.uppercased().replacing("-", with: " ")
        let words = try await accounts("old").give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: typed)
        let received = try #require(try await new.receive(begun))
        #expect(received.words == words && words.split(separator: " ").count == 4)
        let there = try await new.open(received)
        #expect(there.account.bundle == ann.account.bundle && there.account.accessKey == ann.account.accessKey)
        #expect(there.accessToken != ann.accessToken && there.account.name == "ann")
        #expect(there.account.pin != nil && there.account.pin == ann.account.pin)
        // A11: a code is answered once.
        let again = await KeyBench.failure {
            _ = try await self.accounts("old").give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: typed)
        }
        #expect(again == .pairingOver)
        let session = try await bench.notes().resume(ann)
        await session.signOut()
        await session.close()
        #expect(try await new.refresh(there.account, accessToken: there.accessToken) == there.account)
    }

    private func logins(_ ann: SignedIn) async throws -> Int {
        let session = try await bench.notes().resume(ann)
        let count = try await session.tokens().count
        await session.close()
        return count
    }

    @Test(
        "an answer that was lost on its way to the new device is received at the next try"
    )
    func lostOnTheWay() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let words = try await accounts("old").give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        let dead = try accounts("new") { _ in .losesAnswer }
        let lost = await KeyBench.failure { _ = try await dead.receive(begun) }
        guard case .server(let reason)? = lost, reason.code == .network else {
            throw ClientError(.refused, "\(lost as Any)")
        }
        let received = try #require(try await accounts("new").receive(begun))
        #expect(received.words == words)
        #expect(try await logins(ann) == 2, "the old device's and the new one's")
    }

    @Test(
        "an old device whose answer or its confirmation was lost sends the answer again and shows the words",
        arguments: [true, false])
    func undelivered(isThere: Bool) async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let puts = Mutex<Int>(0)
        let old = try accounts("old") { request in
            guard request.method == "PUT",
                puts.withLock({
                    $0 += 1; return $0 == 1
                })
            else { return .none }
            return isThere ? .losesAnswer : .losesRequest
        }
        let words = try await old.give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        #expect(try await accounts("new").receive(begun)?.words == words)
        #expect(try await logins(ann) == 2)
    }

    @Test("an old device whose answer a proxy sent twice finds it in place after the 409, and the login stays")
    func sentTwice() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let old = try accounts("old") {
            $0.method == "PUT" ? .doesAndRefuses(ClientError(.refused, "there is an answer", number: 409)) : .none
        }
        let words = try await old.give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        let received = try #require(try await accounts("new").receive(begun))
        #expect(received.words == words)
        #expect(try await logins(ann) == 2, "the old device's and the new one's")
    }

    @Test("when every confirmation is lost the outcome is unknown, and the login stays for a device that may have it")
    func silence() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let puts = Mutex<Int>(0)
        let old = try accounts("old") { request in
            guard request.method == "PUT" else { return .none }
            return puts.withLock {
                $0 += 1; return $0 == 1
            } ? .losesAnswer : .losesRequest
        }
        let error = await KeyBench.failure {
            _ = try await old.give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        guard case .unknown? = error else { throw ClientError(.refused, "\(error as Any)") }
        let received = try #require(try await accounts("new").receive(begun))
        #expect(try await accounts("new").open(received).account.bundle == ann.account.bundle)
    }

    @Test("a login that no device receives ends: that of a refused answer and that of a discarded one")
    func nobodysLogin() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let late = try accounts("old") {
            $0.method == "PUT" ? .refuses(ClientError(.notFound, "it is over", number: 404)) : .none
        }
        let error = await KeyBench.failure {
            _ = try await late.give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        #expect(error == .pairingOver)
        #expect(try await logins(ann) == 1)
        _ = try await accounts("old").give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        let received = try #require(try await accounts("new").receive(begun))
        #expect(try await logins(ann) == 2)
        try await accounts("new").discard(received)
        #expect(try await logins(ann) == 1)
    }

    @Test("when the answer to the new device's login is lost, the outcome is reported as unknown")
    func loginUndelivered() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let old = try accounts("old") { $0.path == "tokens" ? .losesAnswer : .none }
        let error = await KeyBench.failure {
            _ = try await old.give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        guard case .unknown? = error else { throw ClientError(.refused, "\(error as Any)") }
        #expect(try await logins(ann) == 2, "it was made, and the list of tokens shows it")
    }

    @Test("nothing is sealed to a key of low order, whose shared secret is public, and no login is left")
    func lowOrder() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let hello = [UInt8](repeating: 0, count: 32) + Array("new".utf8)
        let old = try accounts("old") {
            $0.method == "GET" ? .saysInstead { ["hello": .string(Base64.encodeURL(hello)), "sealed": .null] } : .none
        }
        let error = await KeyBench.failure {
            _ = try await old.give(
                ann.account, accessToken: ann.accessToken, toDeviceWithCode: PairingCode.text(of: hello))
        }
        #expect(error == .pairingForged)
        #expect(try await logins(ann) == 1)
    }

    @Test("an undelivered login that cannot be ended is reported as left")
    func loginLeft() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let old = try accounts("old") {
            if $0.path == "logout" { return .losesRequest }
            return $0.method == "PUT" ? .refuses(ClientError(.notFound, "it is over", number: 404)) : .none
        }
        let error = await KeyBench.failure {
            _ = try await old.give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        #expect(error == .loginLeft(.pairingOver))
        #expect(try await logins(ann) == 2)
    }

    @Test(
        "when a server hides the answer that it has, the outcome is unknown and the login stays",
        arguments: [true, false])
    func hidden(isNull: Bool) async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let isAnswered = Mutex<Bool>(false)
        let old = try accounts("old") {
            if $0.method == "PUT" {
                isAnswered.withLock { $0 = true }
                return .doesAndRefuses(ClientError(.refused, "there is an answer", number: 409))
            }
            guard isAnswered.withLock({ $0 }), $0.path.hasPrefix("pair/") else { return .none }
            return .says { $0.setting(["sealed": isNull ? .null : .string("!")]) }
        }
        let error = await KeyBench.failure {
            _ = try await old.give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        guard case .unknown? = error else { throw ClientError(.refused, "\(error as Any)") }
        #expect(try await logins(ann) == 2, "the new device may have the login")
    }

    @Test("A11: a server that shows another key than the code's gets nothing sealed and no login")
    func replacedKey() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let begun = try await accounts("new").beginPairing()
        let foreign = Base64.encodeURL(X25519.PrivateKey.random().publicKey.octets + Array("new".utf8))
        let asked = Mutex<[String]>([])
        let lying = try accounts("old") { request in
            asked.withLock { $0.append(request.method) }
            return request.path.hasPrefix("pair/") && request.method == "GET"
                ? .says { $0.setting(["hello": .string(foreign)]) } : .none
        }
        let error = await KeyBench.failure {
            _ = try await lying.give(ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        #expect(error == .pairingForged)
        #expect(asked.withLock { $0 } == ["GET"], "nothing was sealed, and no login made")
    }

    @Test("A11: the second answer to a code is refused without words, and a changed answer does not open")
    func race() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let eve = try await accounts("eve").signUp(name: "eve", password: KeyBench.secret("two"))
        let new = try accounts("new")
        let begun = try await new.beginPairing()
        _ = try await accounts("eve").give(
            eve.account, accessToken: eve.accessToken, toDeviceWithCode: begun.pairing.code)
        let late = await KeyBench.failure {
            _ = try await self.accounts("old").give(
                ann.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        #expect(late == .pairingOver, "the second device learns of the first, and shows no words")
        // An answer that was changed on the way does not open.
        let other = try await new.beginPairing()
        let changed = try accounts("new") { _ in
            .says { answer in
                guard let text = answer["sealed"]?.stringValue,
                    var bytes = Base64.decodeURL(Array(text.utf8)[...])
                else { return answer }
                bytes[3] ^= 1
                return answer.setting(["sealed": .string(Base64.encodeURL(bytes))])
            }
        }
        _ = try await accounts("old").give(
            ann.account, accessToken: ann.accessToken, toDeviceWithCode: other.pairing.code)
        #expect(await KeyBench.failure { _ = try await changed.receive(other) } == .pairingForged)
    }

    @Test("a malformed code is unreadable; a well-formed code without a pairing is over")
    func codes() async throws {
        let ann: SignedIn = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let cases: [(String, AccountError)] = [
            ("", .unreadableCode(line: nil)), ("abc", .unreadableCode(line: nil)),
            (String(repeating: "a", count: 27), .unreadableCode(line: nil)),
            ("!" + String(repeating: "a", count: 25), .unreadableCode(line: nil)),
            (String(repeating: "a", count: 26), .pairingOver),
        ]
        for (code, expected) in cases {
            let error = await KeyBench.failure {
                _ = try await self.accounts("old").give(
                    ann.account, accessToken: ann.accessToken, toDeviceWithCode: code)
            }
            #expect(error == expected, "\(code)")
        }
    }

    @Test("a token alone makes no login for another device: the access key's proof is required")
    func tokens() async throws {
        let ann = try await accounts("old").signUp(name: "ann", password: KeyBench.secret("one"))
        let eve = try await accounts("eve").signUp(name: "eve", password: KeyBench.secret("two"))
        let begun = try await accounts("new").beginPairing()
        let error = await KeyBench.failure {
            _ = try await self.accounts("old").give(
                eve.account, accessToken: ann.accessToken, toDeviceWithCode: begun.pairing.code)
        }
        guard case .server(let refused)? = error else { throw ClientError(.refused, "\(error as Any)") }
        #expect(refused.number == 401)
    }
}
