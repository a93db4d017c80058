import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// The data API's answers to invalid bodies and names: the reason and the place, on a real server.
@Suite("REST bodies and names that are refused")
struct BodyReasonTests {
    private static let paths = ["notes/i/a", "notes/i/a/v/1", "notes/i/a?replace=1", "notes/changes"]

    @Test("each body that is not JSON is 400 with reason and place, and none of it comes back", arguments: paths)
    func reasons(path: String) throws {
        try withServer(.memory) { server in
            let http = try server.http()
            for bad in BadJSON.all + [.empty] {
                let answer = try http.ask("POST", path, bytes: bad.bytes)
                #expect(answer.status == 400 && answer.code == "invalid_json", "\(bad.name): \(answer)")
                #expect(answer.message == "The body is \(bad.reason).", "\(bad.name)")
                #expect(!answer.body.contains(BadJSON.secret), "\(bad.name)")
            }
            #expect(try http.ask("GET", "notes/i/a").status == 404, "nothing was written")
        }
    }

    @Test("a large body, which a reader thread parses, gets the same answer")
    func large() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            let text = String(repeating: "x", count: 100_000)
            for path in ["notes/i/a", "notes/changes"] {
                let answer = try http.ask("POST", path, body: "{\"t\":\"\(text)\",\"t\":1}")
                #expect(answer.status == 400 && answer.code == "invalid_json")
                #expect(
                    answer.message == "The body is not JSON: a repeated key (line 1, column 100009).")
            }
        }
    }

    @Test("nesting beyond 256 levels is 413 with its place; 256 levels are accepted")
    func deep() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            func lists(_ count: Int) -> String {
                String(repeating: "[", count: count) + String(repeating: "]", count: count)
            }
            for (path, start, end) in [
                ("notes/i/a", "{\"a\":", "}"), ("notes/changes", "", ""),
            ] {
                let levels = start.isEmpty ? 256 : 255
                let answer = try http.ask("POST", path, body: start + lists(levels + 1) + end)
                #expect(answer.status == 413 && answer.code == "too_large", "\(answer)")
                let column = start.utf8.count + levels + 1
                #expect(answer.message == "The body is nested deeper than 256 levels (line 1, column \(column)).")
                let taken = try http.ask("POST", path, body: start + lists(levels) + end)
                #expect(taken.code != "invalid_json" && taken.message?.contains("nested") != true, "\(taken)")
            }
        }
    }

    @Test("JSON other than an object is 400 with its reason", arguments: ["[]", "7", "null", "\"hunter2\"", " [{}] "])
    func noObject(body: String) throws {
        try withServer(.memory) { server in
            let answer = try server.http().ask("POST", "notes/i/a", body: body)
            #expect(answer.status == 400 && answer.code == "invalid_json")
            #expect(answer.message == "The body is JSON, but not one object.")
        }
    }

    @Test("more than 1,000 changes in one body are 400 with that reason")
    func manyChanges() throws {
        try withServer(.memory) { server in
            let body = "[" + Array(repeating: "{}", count: 1_001).joined(separator: ",") + "]"
            let answer = try server.http().ask("POST", "notes/changes", body: body)
            #expect(answer.status == 400 && answer.code == "invalid_json")
            #expect(answer.message == "The body has more than 1000 changes.")
        }
    }

    @Test(
        "an invalid key is 400 with its first bad character, for every method, and never comes back raw",
        arguments: [
            ("a%20b", "holds a blank (character 2)"), ("a%20", "holds a blank (character 2)"),
            ("a%2Fb", "holds '/' (character 2)"), ("a+b%0A", "holds '+' (character 2)"),
            ("%00", "holds U+0000 (character 1)"), ("ab%1B%5B2J", "holds U+001B (character 3)"),
            ("a%7F", "holds U+007F (character 2)"), ("%C3%A9", "holds U+00E9 (character 1)"),
            ("ab%E2%80%AEc", "holds U+202E (character 3)"), ("a%F0%9F%8E%89", "holds U+1F389 (character 2)"),
        ])
    func keys(key: String, problem: String) throws {
        try withServer(.memory) { server in
            let http = try server.http()
            for method in ["GET", "POST", "DELETE"] {
                for path in ["notes/i/\(key)", "notes/i/\(key)/v/1"] {
                    let answer = try http.ask(method, path, body: method == "POST" ? "{}" : nil)
                    #expect(answer.status == 400 && answer.code == "invalid_key", "\(method): \(answer)")
                    #expect(answer.message == "The object's key \(problem), which is not admitted.", "\(method)")
                    #expect(answer.body.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "\(method)")
                }
            }
            #expect(try http.ask("HEAD", "notes/i/\(key)").status == 400)
        }
    }

    @Test("a name that is too long is 400 with its length and the maximum; a name with a bad character is 400, too")
    func names() throws {
        try withServer(.memory) { server in
            let http = try server.http()
            let long = String(repeating: "k", count: 257)
            for (path, code, message) in [
                ("notes/i/\(long)", "invalid_key", "The object's key is 257 bytes long, the maximum is 256."),
                ("\(long)/i/k", "invalid_bucket", "The bucket's name is 257 bytes long, the maximum is 64."),
                (
                    "a%40b/i/k", "invalid_bucket",
                    "The bucket's name holds '@' (character 2), which is not admitted."
                ),
                (
                    "notes/i/k?clientid=a%09", "invalid_parameter",
                    "The parameter 'clientid' holds U+0009 (character 2), which is not admitted."
                ),
                (
                    "notes/i/k?ccid=c%20d", "invalid_parameter",
                    "The parameter 'ccid' holds a blank (character 2), which is not admitted."
                ),
            ] {
                let answer = try http.ask("DELETE", path)
                #expect(answer.status == 400 && answer.code == code, "\(path): \(answer)")
                #expect(answer.message == message)
            }
        }
    }

    private func withServer(_ kind: StoreKind, _ body: (TestServer) throws -> Void) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        try body(server)
    }
}
