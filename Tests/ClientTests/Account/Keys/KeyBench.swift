import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol

/// Helpers that the tests of accounts with keys share.
enum KeyBench {
    /// Stretches with N = 2^14 whatever cost is asked for: the server accepts no account that states less than 2^17.
    static let weak: AccountAPIClient.Stretch = { password, salt, _ throws(CryptoError) in
        try PasswordKeys(
            password: password, salt: salt, cost: try PasswordRules.tests.cost(kdf: 1, log2N: 14, r: 8, p: 1))
    }

    static func secret(_ text: String) -> SecureBytes { SecureBytes(copying: Array(text.utf8)) }

    /// Returns the error that an account call throws, nil without one.
    static func failure(_ body: () async throws -> Void) async -> AccountError? {
        do {
            try await body()
            return nil
        } catch {
            if !(error is AccountError) { Issue.record(error) }
            return error as? AccountError
        }
    }
}

/// A connection to a server on which a test loses requests and answers, and changes answers.
final class BadLine: Sendable {
    enum Fault: Sendable {
        case none
        /// The server never receives the request.
        case losesRequest
        /// The server does it, and the answer is lost.
        case losesAnswer
        case refuses(ClientError)
        /// The server does it and answers with this error: a proxy has sent the request twice.
        case doesAndRefuses(ClientError)
        case says(@Sendable (JSONObject) -> JSONObject)
        case saysInstead(@Sendable () -> JSONObject)
    }

    private let asked = Mutex<[String]>([])
    private let calls: ServerCalls?
    private let fault: @Sendable (_ number: Int, _ request: AccountRequest) -> Fault

    /// - Parameter fault: the fault of the request with this number, counted from 1.
    init(_ calls: ServerCalls?, _ fault: @escaping @Sendable (Int, AccountRequest) -> Fault) {
        (self.calls, self.fault) = (calls, fault)
    }

    /// Requested paths, in their order.
    var paths: [String] { asked.withLock { $0 } }

    func api(stretch: @escaping AccountAPIClient.Stretch = KeyBench.weak) throws -> AccountAPIClient {
        try AccountAPIClient(stretch: stretch) { request throws(ClientError) in try await self.ask(request) }
    }

    private func ask(_ request: AccountRequest) async throws(ClientError) -> AccountReply {
        let number = asked.withLock {
            $0.append(request.path)
            return $0.count
        }
        let lost = ClientError(.network, "the line went dead")
        switch fault(number, request) {
        case .losesRequest: throw lost
        case .refuses(let error): throw error
        case .saysInstead(let make): return AccountReply(make())
        case .none: return try await reach(request)
        case .losesAnswer:
            _ = try await reach(request)
            throw lost
        case .doesAndRefuses(let error):
            _ = try await reach(request)
            throw error
        case .says(let change):
            return AccountReply(change(try await reach(request).members))
        }
    }

    private func reach(_ request: AccountRequest) async throws(ClientError) -> AccountReply {
        guard let calls else { throw ClientError(.network, "there is no server") }
        return try await calls.ask(request)
    }
}
