import ThicketClient
import ThicketProtocol
import ThicketTreeShape

/// What a tree needs of its session to reach the server.
struct TreeConnection: Sendable {
    let makeTransport: @Sendable () -> any Transport
    /// Sends a batch and waits for the answer.
    let post: @Sendable ([UInt8]) async -> BatchReply
    /// A token in place of the refused one with this number.
    let token: @Sendable (Int) async throws(ClientError) -> (text: String, number: Int)
    /// The server accepted the token of this number.
    let tokenWorked: @Sendable (Int) async -> Void

    /// Seconds for a batch: the server decides 1,000 operations and waits for its disk.
    private static let timeoutSeconds = 120
    /// Longest pause, in milliseconds, that an answer of the server can cause.
    private static let askedPauseMax: Int64 = 600_000

    init(_ session: ClientSession, _ tree: TreePlace) {
        let place = session.sessionPlace
        let pool = HTTPPool(options: session.transportOptions)
        let path = "tree/\(HTTPBlobTransport.percentEncoded(tree.owner.text))/batch"
        makeTransport = { place.makeTransport(tree.app) }
        token = { number throws(ClientError) in try await session.token(after: number) }
        tokenWorked = { await session.tokenWorked($0) }
        post = { body in
            do throws(ClientError) {
                return Self.reply(
                    try await session.transfer(
                        pool, method: nil, path: path, fields: ["Content-Type: application/json"], body: body,
                        timeoutSeconds: Self.timeoutSeconds))
            } catch {
                return error.code == .unauthorized ? .unauthorized : .unknown(error.detail, retryAfter: 0)
            }
        }
    }

    /// What an answer to a batch means. A refusal for reasons other than the batch says nothing about it.
    static func reply(_ answer: HTTPAnswer) -> BatchReply {
        if answer.status == 401 { return .unauthorized }
        let asked = answer.fields["retry-after"].flatMap { Int64($0) } ?? 0
        let unknown = BatchReply.unknown(
            "the server answered \(answer.status)", retryAfter: min(max(0, asked), askedPauseMax / 1_000) * 1_000)
        guard answer.status != 429, answer.status < 500 else { return unknown }
        guard let parsed = try? TreeBatchAnswer(parsing: answer.body) else { return unknown }
        if case .made = parsed, answer.status != 200 { return unknown }
        return .answer(parsed)
    }
}
