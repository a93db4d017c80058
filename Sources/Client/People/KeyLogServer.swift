internal import ThicketCrypto
internal import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// The server's key log, as a device asks it. Answers are bytes that nothing has verified yet. Tests put a server that
/// lies in its place.
package protocol KeyLogServer: Sendable {
    /// Key, head and witnesses of the log.
    func logState() async throws(ClientError) -> LogState
    /// - Returns: a `KeyLogLookup`; nil: the server says that the log has no entry.
    func lookup(_ user: String, from: UInt64, known: UInt64) async throws(ClientError) -> [UInt8]?
    /// - Returns: nil: the server says that the log has no entry.
    func lookup(
        name: String, from: UInt64, fromName: UInt64, known: UInt64
    ) async throws(ClientError) -> NamedAnswer?
    /// - Returns: a `KeyLogConsistency`; nil: the server answered without one.
    func consistency(older: UInt64, newer: UInt64) async throws(ClientError) -> [UInt8]?
    /// Appends the account's own entries; known ones are not appended twice.
    func append(_ entries: [[UInt8]]) async throws(ClientError)
}

/// What the server says about its log.
package struct LogState: Sendable {
    /// The log's key, 32 bytes.
    package var key: [UInt8]
    /// The newest head; nil: no entries.
    package var head: [UInt8]?
    /// Statements of rotated keys, the oldest first.
    package var rotations: [[UInt8]] = []
    /// Confirmations of witnesses: key, head, signature.
    package var witnesses: [(key: [UInt8], head: [UInt8], signature: [UInt8])] = []

    package init(key: [UInt8], head: [UInt8]?) { (self.key, self.head) = (key, head) }

    /// The confirmations that can be parsed.
    var confirmations: [KeyLogWitness] {
        witnesses.compactMap { each in
            guard let key: Ed25519.VerifyingKey = try? .init(each.key), let head = try? KeyLogHead(each.head) else {
                return nil
            }
            return KeyLogWitness(key: key, head: head, signature: each.signature)
        }
    }
}

/// The answer to a look-up of a name; both look-ups are of one head.
package struct NamedAnswer: Sendable {
    /// The account that has the name, as the server says; nil: none.
    package var user: String?
    package var name: [UInt8]
    package var account: [UInt8]?

    package init(user: String?, name: [UInt8], account: [UInt8]?) {
        (self.user, self.name, self.account) = (user, name, account)
    }
}

/// The key log of a session's server (docs/AUTH.md, "The key log").
struct SessionKeyLog: KeyLogServer {
    /// Not the session itself, which has a reference to its key book.
    let calls: ServerCalls
    let keeper: TokenKeeper
    let isPartner: Bool

    func logState() async throws(ClientError) -> LogState {
        let object = try ServerCalls.object(try await ask("GET", "keylog/head"))
        var state = LogState(key: try Self.octets("key", object), head: nil)
        if !(object["head"]?.isNull ?? true) { state.head = try Self.octets("head", object) }
        for value in object["rotations"]?.arrayValue ?? [] { state.rotations.append(try Self.octets(value)) }
        for value in object["witnesses"]?.arrayValue ?? [] {
            guard let each = value.objectValue else { throw Self.unusable }
            state.witnesses.append(
                (try Self.octets("key", each), try Self.octets("head", each), try Self.octets("signature", each)))
        }
        return state
    }

    func lookup(_ user: String, from: UInt64, known: UInt64) async throws(ClientError) -> [UInt8]? {
        let path = "keys/\(ClientSession.coded(user))?from=\(from)&known=\(known)"
        guard let object = try await found(path) else { return nil }
        return try Self.octets("lookup", object)
    }

    func lookup(
        name: String, from: UInt64, fromName: UInt64, known: UInt64
    ) async throws(ClientError) -> NamedAnswer? {
        let path = "keys?name=\(ClientSession.coded(name))&from=\(from)&from_name=\(fromName)&known=\(known)"
        guard let object = try await found(path) else { return nil }
        let hasAccount = !(object["lookup"]?.isNull ?? true)
        return NamedAnswer(
            user: object["user"]?.stringValue, name: try Self.octets("name_lookup", object),
            account: hasAccount ? try Self.octets("lookup", object) : nil)
    }

    func consistency(older: UInt64, newer: UInt64) async throws(ClientError) -> [UInt8]? {
        let answer = try await ask("GET", "keylog/consistency?older=\(older)&newer=\(newer)", accepting: [400, 404])
        guard answer.status < 300 else { return nil }
        return try Self.octets("proof", try ServerCalls.object(answer))
    }

    func append(_ entries: [[UInt8]]) async throws(ClientError) {
        _ = try await ask(
            "POST", "keylog/entries", ["entries": .array(entries.map { .string(Base64.encodeURL($0)) })])
    }

    /// - Returns: nil for a log without entries.
    private func found(_ path: String) async throws(ClientError) -> JSONObject? {
        let answer = try await ask("GET", path, accepting: [404])
        guard answer.status == 404 else { return try ServerCalls.object(answer) }
        let code = (try? JSONValue(parsing: answer.body))?["code"]?.stringValue
        guard code == "empty_log" else { throw ServerCalls.refusal(answer) }
        return nil
    }

    private func ask(
        _ method: String, _ path: String, _ body: JSONObject? = nil, accepting: Set<Int> = []
    ) async throws(ClientError) -> HTTPAnswer {
        let first = try await keeper.token()
        do throws(ClientError) {
            return try await ask(method, path, body, accepting, first)
        } catch {
            guard error.isTokenOver else { throw error }
        }
        return try await ask(method, path, body, accepting, try await keeper.token(after: first.number))
    }

    private func ask(
        _ method: String, _ path: String, _ body: JSONObject?, _ accepting: Set<Int>, _ token: TokenMachine.Token
    ) async throws(ClientError) -> HTTPAnswer {
        let fields = isPartner ? calls.partnerTokenFields(token.text) : calls.accountFields(token.text)
        return try await calls.ask(method, "/1/\(calls.app)/\(path)", body, fields: fields, accepting: accepting)
    }

    private static let unusable = ClientError(.protocolViolation, "the server's answer about the key log is unusable")

    private static func octets(_ name: String, _ object: JSONObject) throws(ClientError) -> [UInt8] {
        guard let value = object[name] else { throw unusable }
        return try octets(value)
    }

    private static func octets(_ value: JSONValue) throws(ClientError) -> [UInt8] {
        guard let text = value.stringValue, let bytes = Base64.decodeURL(Array(text.utf8)[...]) else { throw unusable }
        return bytes
    }
}
