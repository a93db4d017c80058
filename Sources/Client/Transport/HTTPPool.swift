import ThicketProtocol
import ThicketPlatform

/// A few HTTP clients whose connections are kept, for transfers: a request waits for an idle one in order.
///
/// Requests must be idempotent (`HTTPClient.init`).
package actor HTTPPool {
    /// Clients, and so connections, of a pool.
    package static let clientsMax = 3
    /// Requests that wait for a client.
    package static let waitersMax = 1_024

    private let options: TransportOptions
    private var clients = [HTTPClient]()
    private var idle = [HTTPClient]()
    private var waiters = Deque<CheckedContinuation<HTTPClient, Never>>()

    package init(options: TransportOptions = TransportOptions()) { self.options = options }

    /// Connections made so far.
    package var connectionsMade: Int {
        get async {
            var count = 0
            for client in clients { count += await client.connectionsMade }
            return count
        }
    }

    /// Sends a request and waits for the answer.
    ///
    /// - Throws: as `HTTPClient.request`; `limit` when too many requests wait.
    package func request(
        _ address: String, method: String?, fields: [String], body: [UInt8]?, timeoutSeconds: Int
    ) async throws(ClientError) -> HTTPAnswer {
        let client = try await acquire()
        let outcome: Result<HTTPAnswer, ClientError>
        do throws(ClientError) {
            outcome = .success(
                try await client.request(
                    address, method: method, fields: fields, body: body, timeoutSeconds: timeoutSeconds))
        } catch {
            outcome = .failure(error)
        }
        release(client)
        return try outcome.get()
    }

    private func acquire() async throws(ClientError) -> HTTPClient {
        if let client = idle.popLast() { return client }
        if clients.count < Self.clientsMax {
            let made = try HTTPClient(options: options, keepsConnection: true)
            clients.append(made)
            return made
        }
        guard waiters.count < Self.waitersMax else { throw ClientError(.limit, "too many transfers wait") }
        return await withCheckedContinuation { waiters.append($0) }
    }

    private func release(_ client: HTTPClient) {
        if let waiter = waiters.popFirst() { waiter.resume(returning: client) } else { idle.append(client) }
    }
}

extension ClientSession {
    /// Options of connections to the session's server.
    package var transportOptions: TransportOptions { calls.options }

    /// Makes a request of the user to the data API over a pool's connections, and returns any answer but a 401 about
    /// the token, which renews it as `calling` does. A 401 to a token that may not write is returned: another token of
    /// the user has the same rights.
    ///
    /// - Parameters:
    ///   - pool: the connections.
    ///   - method: nil: POST with a body, otherwise GET.
    ///   - path: the path after `/1/APP/`; must not need percent-encoding.
    ///   - fields: header lines besides the token's.
    ///   - body: the body.
    ///   - timeoutSeconds: for the whole request.
    /// - Throws: as `calling`.
    package func transfer(
        _ pool: HTTPPool, method: String?, path: String, fields: [String], body: [UInt8]?, timeoutSeconds: Int
    ) async throws(ClientError) -> HTTPAnswer {
        let (calls, user) = (calls, user)
        return try await calling { token throws(ClientError) in
            let own =
                switch user {
                case .partner: calls.partnerTokenFields(token)
                case .account: calls.accountFields(token)
                }
            let answer = try await pool.request(
                "\(calls.address)/1/\(calls.app)/\(path)", method: method, fields: own + fields, body: body,
                timeoutSeconds: timeoutSeconds)
            guard answer.status != 401 || Self.isAboutRights(answer) else { throw ServerCalls.refusal(answer) }
            return answer
        }
    }

    /// Whether the token is valid and the request was refused to it: `read_only`, and the refusal of a batch.
    private static func isAboutRights(_ answer: HTTPAnswer) -> Bool {
        let object = (try? JSONValue(parsing: answer.body))?.objectValue
        return object?["code"]?.stringValue == "read_only" || object?["error"] != nil
    }
}
