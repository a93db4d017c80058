import Testing
import ThicketProtocol

@Suite struct ServerMessageTests {
    static func key(_ text: String) throws -> EntityKey { try EntityKey(text) }
    static func cv(_ text: String) throws -> ChangeVersion { try ChangeVersion(text) }

    @Test("every row of the grammar is written as clients expect it, and read again")
    func grammar() throws {
        let applied = AppliedChange(
            clientID: "sjs-\"1", cv: try Self.cv("511aa58737a401031d57db90"), key: try Self.key("a.b"),
            operation: .modify, diff: .value(["new": ["o": "+", "v": "object"]]), sv: 3, ev: 4, ccids: ["c1", "c2"])
        var created = applied
        created.sv = nil
        created.ev = 1
        let removed = AppliedChange(
            clientID: "x", cv: try Self.cv("c"), key: try Self.key("k"), operation: .remove, ev: 5, ccids: ["r"])
        let refused = RefusedChange(clientID: "x", key: "no/good key", error: 440, ccids: ["c"])
        let page = IndexPage(
            current: try Self.cv("cur"),
            entries: [
                .init(key: try Self.key("one"), version: 2, data: .value(["a": "é\n"])),
                .init(key: try Self.key("two"), version: 1),
            ], mark: "m1")
        let table: [(ServerMessage, String)] = [
            (.heartbeat(2), "h:2"), (.log(0), "log:0"), (.log(2), "log:2"),
            (.channel(0, .authorized(user: "user@example.com")), "0:auth:user@example.com"),
            (.channel(0, .authorized(user: "a: b {c}")), "0:auth:a: b {c}"),
            (
                .channel(1, .authFailed(code: 401, message: "Token \"invalid\"")),
                #"1:auth:{"msg":"Token \"invalid\"","code":401}"#
            ),
            (.channel(0, .authExpired), "0:auth:expired"),
            (
                .channel(0, .index(page)),
                #"0:i:{"current":"cur","index":[{"id":"one","v":2,"d":{"a":"é\n"}},{"id":"two","v":1}],"mark":"m1"}"#
            ),
            (
                .channel(0, .index(IndexPage(current: page.current, entries: []))),
                #"0:i:{"current":"cur","index":[]}"#
            ),
            (
                .channel(0, .entity(EntityReply(key: "a.b", version: 2, data: .value(["x": "1\n2"])))),
                "0:e:a.b.2\n" + #"{"data":{"x":"1\n2"}}"#
            ),
            (.channel(0, .entity(EntityReply(key: "key", version: 1, data: nil))), "0:e:key.1\n?"),
            (.channel(0, .changes([])), "0:c:[]"),
            (
                .channel(0, .changes([.applied(applied)])),
                #"0:c:[{"clientid":"sjs-\"1","cv":"511aa58737a401031d57db90","id":"a.b","o":"M","v":{"new":{"o":"+","v":"object"}},"sv":3,"ev":4,"ccids":["c1","c2"]}]"#
            ),
            (
                .channel(0, .changes([.applied(created), .applied(removed), .refused(refused)])),
                #"0:c:[{"clientid":"sjs-\"1","cv":"511aa58737a401031d57db90","id":"a.b","o":"M","v":{"new":{"o":"+","v":"object"}},"ev":1,"ccids":["c1","c2"]},"#
                    + #"{"clientid":"x","cv":"c","id":"k","o":"-","ev":5,"ccids":["r"]},"#
                    + #"{"clientid":"x","id":"no/good key","error":440,"ccids":["c"]}]"#
            ),
            (.channel(0, .changeVersionUnknown), "0:cv:?"), (.channel(4, .indexRequest), "4:index"),
            (.channel(0, .notUnderstood), "0:?"),
            (.channel(0, .options(["namespace": "n"])), #"0:o:{"namespace":"n"}"#),
            (
                .channel(
                    0,
                    .removed(
                        RemovedPage(
                            .bucket(after: "a"), entries: [.init(key: "b", version: 3, timestamp: 1_700_000_000_000)],
                            mark: "b"))),
                #"0:removed:{"after":"a","removed":[{"id":"b","v":3,"t":1700000000000}],"mark":"b"}"#
            ),
            (
                .channel(
                    0, .removed(RemovedPage(.object("b"), entries: [.init(key: "b", version: 3, timestamp: nil)]))),
                #"0:removed:{"id":"b","removed":[{"id":"b","v":3}]}"#
            ),
            (.channel(0, .unknown(command: "new")), "0:new"),
        ]
        for (message, text) in table {
            #expect(message.text == text)
            #expect(try server(text) == message, "\(text)")
        }
        #expect(refused.code == .invalidDiff)
        let elements = [applied, removed].map { change in
            var writer = JSONWriter()
            change.write(to: &writer)
            return writer.bytes
        }
        #expect(
            ServerMessage.changes(7, elements: elements)
                == ServerMessage.channel(7, .changes([.applied(applied), .applied(removed)])).encoded())
    }

    @Test("a client reads the answers of older and other servers")
    func lenient() throws {
        #expect(try server("0:c:?") == .channel(0, .changeVersionUnknown))
        #expect(try server("0:index:") == .channel(0, .indexRequest))
        #expect(
            try server("0:auth:{\"msg\":\"x\",\"code\":\"401\"}") == .channel(0, .authFailed(code: 401, message: "x")))
        // A text that begins with a brace is a failure, never a user.
        #expect(try server("0:auth:{broken") == .channel(0, .authFailed(code: 500, message: "")))
        #expect(try server("0:auth:{}") == .channel(0, .authFailed(code: 500, message: "")))
        // As the public notes print it.
        let refused = RefusedChange(
            clientID: "offending-client", key: "object-key", error: 401, ccids: ["abcdef"])
        #expect(
            try server(#"0:c:[{"clientid":"offending-client","id":"object-key","error":"401","ccids":["abcdef"]}]"#)
                == .channel(0, .changes([.refused(refused)])))
        guard
            case .channel(0, .index(let page)) = try server(
                #"0:i: {"current": "5119dafb", "index": [{"id": "one", "v": 2}], "mark": ""}"#)
        else {
            Issue.record("not a page")
            return
        }
        #expect(page.mark == nil)
        #expect(page.current.text == "5119dafb")
        let zero = #"0:c:[{"clientid":"x","cv":1,"id":"k","o":"M","v":{},"sv":0,"ev":"1","ccids":[]}]"#
        guard case .channel(0, .changes(let events)) = try server(zero), case .applied(let change)? = events.first
        else {
            Issue.record("not a change")
            return
        }
        #expect(change.sv == nil)
        #expect(change.ev == 1)
        #expect(change.cv.text == "1")
    }

    @Test("an answer with a missing or invalid field is refused")
    func refuses() {
        let good = [
            "cv": "\"c\"", "id": "\"k\"", "o": "\"M\"", "v": "{}", "ev": "2", "ccids": "[\"x\"]", "clientid": "\"y\"",
        ]
        for (missing, problem) in [("cv", "cv"), ("id", "id"), ("o", "o"), ("v", "v"), ("ev", "ev")] {
            let fields = good.filter { $0.key != missing }.map { "\"\($0.key)\":\($0.value)" }
                .joined(separator: ",")
            #expect(throws: WireError.shape(command: "c", problem: problem), "\(missing)") {
                try server("0:c:[{\(fields)}]")
            }
        }
        for text in [
            "0:c:{}", "0:c:[7]", "0:c:", "0:c:[", #"0:c:[{"error":"x"}]"#, "0:i:{}", "0:i:[]", "0:i:",
            #"0:i:{"current":"","index":[]}"#, #"0:i:{"current":"c"}"#, #"0:i:{"current":"c","index":[{"id":"k"}]}"#,
            #"0:i:{"current":"c","index":[{"v":1}]}"#, #"0:i:{"current":"c","index":[{"id":"a b","v":1}]}"#,
            #"0:i:{"current":"c","index":[{"id":"k","v":0}]}"#, "0:e:key.1", "0:e:key\n?", "0:e:key.1\n",
            "0:e:key.1\n{}",
            "0:e:key.1\n{\"data\":7}", "0:e:key.1\n{\"data\":{}", "0:o:{", "", "x:1", "1000000:c:[]",
        ] {
            #expect(throws: WireError.self, "\(text)") { try server(text) }
        }
    }

    @Test("a user name that a client would take for a failure is sent with the prefix user:")
    func names() throws {
        for name in ["12345", "1e5", "true", "null", "\"x\"", "{", "{}", "[1]", "expired", " 7 "] {
            let text = ServerMessage.channel(0, .authorized(user: name)).text
            #expect(text == "0:auth:user:" + name)
            #expect(try server(text) == .channel(0, .authorized(user: "user:" + name)))
            #expect((try? JSONValue(parsing: String(text.dropFirst(7)))) == nil)
        }
        for name in ["user@example.com", "jürgen", "a b", "1@x", "expired@x"] {
            #expect(ServerReply.spokenName(of: name) == name)
        }
    }

    @Test("every message of the server is one line, except for the one break in an entity")
    func lines() throws {
        let data = JSONFragment.bytes(Array("{\n \"a\": \"x\\ny\"\r\n}".utf8))
        let entity = ServerMessage.channel(0, .entity(EntityReply(key: "k", version: 1, data: data))).encoded()
        #expect(entity.filter { $0 == 0x0A }.count == 1)
        #expect(!entity.contains(0x0D))
        let page = IndexPage(
            current: try Self.cv("c"), entries: [.init(key: try Self.key("k"), version: 1, data: data)])
        #expect(!ServerMessage.channel(0, .index(page)).encoded().contains(0x0A))
    }
}
