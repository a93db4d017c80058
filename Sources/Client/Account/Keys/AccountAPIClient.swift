package import ThicketCrypto
import ThicketProtocol

/// Runs account flows: sends their requests to the server, and derives keys from passwords on a dedicated thread,
/// because one derivation takes a second.
package struct AccountAPIClient: Sendable {
    /// Derives keys from a password. Tests use a cheaper function.
    package typealias Stretch =
        @Sendable (SecureBytes, [UInt8], PasswordCost) throws(CryptoError) -> PasswordKeys
    /// Sends one request. Tests simulate a hostile server or an unreliable network.
    package typealias Ask = @Sendable (AccountRequest) async throws(ClientError) -> AccountReply

    private let ask: Ask
    private let stretcher: Stretcher

    /// - Throws: `limit` when the system cannot make a thread.
    package init(_ calls: ServerCalls, stretch: Stretch? = nil) throws(ClientError) {
        try self.init(stretch: stretch) { request throws(ClientError) in try await calls.ask(request) }
    }

    package init(stretch: Stretch?, ask: @escaping Ask) throws(ClientError) {
        self.ask = ask
        // Not `??`: the compiler of Swift 6.3 crashes on a closure with typed errors after it.
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
                step = try flow.receive(.stretched(try await stretcher.keys(password, salt, cost)))
            case .ask(let request):
                let event: AccountEvent
                do throws(ClientError) { event = .answered(try await ask(request)) } catch { event = .refused(error) }
                step = try flow.receive(event)
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

    /// A 204 answer, such as to a logout, becomes a reply without members.
    private static func reply(_ answer: HTTPAnswer) throws(ClientError) -> AccountReply {
        AccountReply(answer.status == 204 ? [:] : try object(answer))
    }
}

/// Derives keys from one password at a time, because each derivation takes 128 MiB, on a dedicated thread.
private actor Stretcher {
    private let loop: EngineLoop
    private let stretch: AccountAPIClient.Stretch
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ stretch: @escaping AccountAPIClient.Stretch) throws(ClientError) {
        self.stretch = stretch
        loop = try EngineLoop()
    }

    deinit { loop.stop() }

    func keys(_ password: SecureBytes, _ salt: [UInt8], _ cost: PasswordCost) throws(AccountError) -> PasswordKeys {
        do throws(CryptoError) { return try stretch(password, salt, cost) } catch { throw .init(stretching: error) }
    }
}
