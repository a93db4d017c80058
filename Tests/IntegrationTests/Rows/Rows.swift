import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Names the rows of "What is answered to what" in `docs/PROTOCOL.md` that a test provokes. TidyTests compares the two
/// lists, so a row without a test fails, and so does a test of a row that is not documented.
struct ProvokedRows: TestTrait {
    let names: [String]
}

extension Trait where Self == ProvokedRows {
    static func rows(_ names: String...) -> ProvokedRows { ProvokedRows(names: names) }
}

/// A server for one row, and a client `c` on ann's bucket `notes`.
final class RowBench {
    let store: TestStore
    private(set) var server: TestServer
    private(set) var client: TestClient
    private let configure: @Sendable (inout ServerConfig) -> Void

    init(_ kind: StoreKind, configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in }) throws {
        store = try TestStore(kind)
        self.configure = configure
        server = try TestServer(store: store.store, configure: configure)
        client = try server.client("c")
    }

    /// Ends the server at once; every test that makes a bench does this at its end.
    func finish() { server.abort() }

    /// The process ends as if killed, and the next one serves the same store.
    func restart(retention: RetentionSettings = .init()) throws {
        server.abort()
        try store.reopen()
        server = try TestServer(store: store.store, retention: retention, configure: configure)
        client = try server.client("c")
    }
}

extension TestClient {
    /// Sends changes and waits until each is acknowledged.
    /// - Returns: the acknowledgements, as the server wrote them.
    @discardableResult
    func apply(_ changes: String...) throws -> [String] { try apply(changes) }

    /// The same for many, all sent before the first answer is read.
    @discardableResult
    func apply(_ changes: [String]) throws -> [String] {
        for change in changes { try send(change) }
        var answers = [String]()
        var count = 0
        // Changes of other clients may arrive between them.
        let own = Set(changes.compactMap { $0.field("ccid") })
        while count < changes.count {
            let answer = try receive()
            guard answer.hasPrefix("0:c:["), !answer.contains("\"error\":") else {
                throw TestFailure("not applied: \(answer)")
            }
            count += own.count == changes.count ? answer.ccids.count { own.contains($0) } : answer.ccids.count
            answers.append(answer)
        }
        return answers
    }

    /// Sends a change as client `c` and expects this refusal of it, to the letter.
    func expect(
        _ change: String, refused code: ErrorCode, at place: SourceLocation = #_sourceLocation
    ) throws {
        let ccids = change.field("ccid").map { $0.isEmpty ? "" : "\"\($0)\"" } ?? ""
        let wanted =
            #"0:c:[{"clientid":"c","id":"\#(change.field("id") ?? "")","error":\#(code.rawValue),"ccids":[\#(ccids)]}]"#
        let answer = try ask(change)
        #expect(answer == wanted, "to \(change)", sourceLocation: place)
    }

    /// Sends an `init` for channel 1 and expects this refusal of it.
    func expect(
        opening fields: String, refused code: ErrorCode, at place: SourceLocation = #_sourceLocation
    ) throws {
        let answer = try ask(#"1:init:{"api":"1.1",\#(fields)}"#)
        #expect(
            answer.hasPrefix(#"1:auth:{"msg":""#) && answer.hasSuffix(",\"code\":\(code.rawValue)}"),
            "\(fields): \(answer)", sourceLocation: place)
    }

    /// The object as the server has it: the body of its newest version, which must be this one.
    func body(_ key: String, _ version: Int) throws -> String {
        let answer = try ask("0:e:\(key).\(version)")
        let start = "0:e:\(key).\(version)\n{\"data\":"
        guard answer.hasPrefix(start) else { throw TestFailure("no such version: \(answer)") }
        return String(answer.dropFirst(start.count).dropLast())
    }
}

/// A change as JSON.
func change(_ json: String) -> String { "0:c:" + json }
