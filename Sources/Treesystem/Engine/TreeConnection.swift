import ThicketClient
import ThicketProtocol
import ThicketTreeShape

/// What a tree needs of its session to reach the server.
struct TreeConnection: Sendable {
    let makeTransport: @Sendable () -> any Transport
    /// Sends a batch and waits for the answer.
    let post: @Sendable ([UInt8]) async -> BatchReply
    /// Asks for lists of children.
    let children: @Sendable (ChildrenQuery) async -> ChildrenReply
    /// A token in place of the refused one with this number.
    let token: @Sendable (Int) async throws(ClientError) -> (text: String, number: Int)
    /// Looks up and verifies keys of other accounts.
    let people: any PeopleLookUp
    /// Heads of the key log that came with messages.
    let heads = HeadComparisons()
    /// The server accepted the token of this number.
    let tokenWorked: @Sendable (Int) async -> Void

    /// Seconds for a batch: the server decides 1,000 operations and waits for its disk.
    private static let timeoutSeconds = 120
    /// Longest pause, in milliseconds, that an answer of the server can cause.
    private static let askedPauseMax: Int64 = 600_000

    /// - Parameter branch: the branch of another account; nil: the own tree.
    init(_ session: ClientSession, _ tree: TreePlace, _ branch: BranchName? = nil) {
        people = SessionPeople(session: session)
        let place = session.sessionPlace
        let pool = HTTPPool(options: session.transportOptions)
        // A branch's name stands where the name of the bucket does, and has its owner in it.
        let named = branch.map { HTTPBlobTransport.percentEncoded($0.text) }
        let base = (named ?? "tree/\(HTTPBlobTransport.percentEncoded(tree.owner.text))") + "/"
        let path = base + "batch"
        makeTransport = { place.makeTransport(tree.app) }
        token = { number throws(ClientError) in try await session.token(after: number) }
        tokenWorked = { await session.tokenWorked($0) }
        children = { query in
            do throws(ClientError) {
                // Only the list of a single parent has further pages.
                let isPost = query.before == nil
                return Self.childrenReply(
                    try await session.transfer(
                        pool, method: isPost ? nil : "GET",
                        path: base + "children" + (isPost ? "" : "?" + query.parameters),
                        fields: isPost ? ["Content-Type: application/json"] : [],
                        body: isPost ? query.object.serialized() : nil, timeoutSeconds: Self.timeoutSeconds))
            } catch {
                return error.code == .unauthorized ? .unauthorized : .failed(error.detail, retryAfter: 0)
            }
        }
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

    static func childrenReply(_ answer: HTTPAnswer) -> ChildrenReply {
        if answer.status == 401 { return .unauthorized }
        guard answer.status == 200, let page = try? ChildrenPage(parsing: answer.body) else {
            return .failed("the server answered \(answer.status)", retryAfter: askedPause(answer))
        }
        return .page(page)
    }

    /// Milliseconds that the server asked for.
    private static func askedPause(_ answer: HTTPAnswer) -> Int64 {
        let asked = answer.fields["retry-after"].flatMap { Int64($0) } ?? 0
        return min(max(0, asked), askedPauseMax / 1_000) * 1_000
    }

    /// What an answer to a batch means. A refusal for reasons other than the batch says nothing about it.
    static func reply(_ answer: HTTPAnswer) -> BatchReply {
        if answer.status == 401 {
            guard case .refused(let refusal)? = try? TreeBatchAnswer(parsing: answer.body) else { return .unauthorized }
            return .answer(.refused(refusal))
        }
        let why =
            answer.status == 503
            ? "the server cannot store changes now (503): it is busy, or its disk is full"
            : "the server answered \(answer.status)"
        let unknown = BatchReply.unknown(why, retryAfter: askedPause(answer))
        guard answer.status != 429, answer.status < 500 else { return unknown }
        guard let parsed = try? TreeBatchAnswer(parsing: answer.body) else { return unknown }
        if case .made = parsed, answer.status != 200 { return unknown }
        return .answer(parsed)
    }
}
