package import ThicketCrypto
import ThicketProtocol

/// Runs the flows of accounts: asks the server, and stretches passwords on a thread of its own, since one run takes a
/// second.
package struct AccountDoor: Sendable {
    /// Stretches a password. Tests put something cheaper in its place.
    package typealias Stretch =
        @Sendable (SecureBytes, [UInt8], PasswordCost) throws(CryptoError) -> PasswordKeys
    /// Does one request. Tests put what a hostile server, or a bad line, does in its place.
    package typealias Ask = @Sendable (AccountRequest) async throws(ClientError) -> AccountReply

    private let ask: Ask
    private let stretcher: Stretcher

    /// - Throws: `limit` when the system gives no thread.
    package init(_ calls: ServerCalls, stretch: Stretch? = nil) throws(ClientError) {
        try self.init(stretch: stretch) { request throws(ClientError) in try await calls.ask(request) }
    }

    package init(stretch: Stretch?, ask: @escaping Ask) throws(ClientError) {
        self.ask = ask
        // Not `??`: the compiler of Swift 6.3 crashes at a closure with typed errors behind it.
        if let stretch { stretcher = try Stretcher(stretch) } else { stretcher = try Stretcher(Self.scrypt) }
    }

    private static let scrypt: Stretch = { password, salt, cost throws(CryptoError) in
        try PasswordKeys(password: password, salt: salt, cost: cost)
    }

    /// Runs a flow to its end.
    package func run<Flow: AccountFlow>(_ flow: Flow) async throws(AccountError) -> Flow.Outcome {
        var flow = flow
        var step = try flow.begin()
        while true {
            switch step {
            case .done(let outcome): return outcome
            case .stretch(let password, let salt, let cost):
                step = try flow.take(.stretched(try await stretcher.keys(password, salt, cost)))
            case .ask(let request):
                let event: AccountEvent
                do throws(ClientError) { event = .answered(try await ask(request)) } catch { event = .refused(error) }
                step = try flow.take(event)
            }
        }
    }
}

extension ServerCalls {
    package func ask(_ request: AccountRequest) async throws(ClientError) -> AccountReply {
        let fields: [String]
        switch request.asker {
        case .app: fields = appFields
        case .user(let token): fields = accountFields(token)
        case .partner(let token): fields = partnerTokenFields(token)
        }
        let path = "/1/\(app)/auth/\(request.path)"
        guard let body = request.body else {
            return try Self.reply(try await ask(request.method, path, fields: fields))
        }
        return try Self.reply(try await ask(request.method, path, secret: body, fields: fields))
    }

    /// Of what is done and needs no words (204), as a logout, a reply without members.
    private static func reply(_ answer: HTTPAnswer) throws(ClientError) -> AccountReply {
        AccountReply(answer.status == 204 ? [:] : try object(answer))
    }
}

/// One password after the other, each of which takes 128 MiB, on a thread that nobody else waits for.
private actor Stretcher {
    private let loop: EngineLoop
    private let stretch: AccountDoor.Stretch
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ stretch: @escaping AccountDoor.Stretch) throws(ClientError) {
        self.stretch = stretch
        loop = try EngineLoop()
    }

    deinit { loop.stop() }

    func keys(_ password: SecureBytes, _ salt: [UInt8], _ cost: PasswordCost) throws(AccountError) -> PasswordKeys {
        do throws(CryptoError) { return try stretch(password, salt, cost) } catch { throw .init(stretching: error) }
    }
}
