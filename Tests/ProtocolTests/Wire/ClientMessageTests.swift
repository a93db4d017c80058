import Testing
import ThicketProtocol

@Suite struct ClientMessageTests {
    /// A message, how it is read, and how that is written when it differs (wire contract, section 3).
    static let grammar: [(String, ClientMessage, String?)] = [
        ("h:0", .heartbeat(0), nil), ("h:1", .heartbeat(1), nil), ("h:987654321", .heartbeat(987_654_321), nil),
        // The counter is an echo; an odd one may not end a connection.
        ("h", .heartbeat(0), "h:0"), ("h:", .heartbeat(0), "h:0"), ("h:x", .heartbeat(0), "h:0"),
        ("h:-5", .heartbeat(0), "h:0"), ("h:1.5", .heartbeat(0), "h:0"),
        ("h:9223372036854775807", .heartbeat(0), "h:0"), ("h:99999999999999999999", .heartbeat(0), "h:0"),
        (#"log:{"log":"text: \"x\""}"#, .log(["log": "text: \"x\""]), nil),
        (#"log:{"log":"t","bucket":"note"}"#, .log(["log": "t", "bucket": "note"]), nil),
        ("log:plain: text", .log("plain: text"), #"log:"plain: text""#), ("log", .log(""), #"log:"""#),
        ("0:i::::500", .channel(0, .index(IndexRequest(limit: 500))), nil),
        ("0:i:1:::10", .channel(0, .index(IndexRequest(wantsData: true, limit: 10))), nil),
        ("3:i:1:MARK::10", .channel(3, .index(IndexRequest(wantsData: true, mark: "MARK", limit: 10))), nil),
        ("0:i::MARK::500", .channel(0, .index(IndexRequest(mark: "MARK", limit: 500))), nil),
        ("0:i:1::abc:", .channel(0, .index(IndexRequest(wantsData: true, since: "abc"))), nil),
        ("0:i:::", .channel(0, .index(IndexRequest())), "0:i::::"),
        ("0:i", .channel(0, .index(IndexRequest())), "0:i::::"),
        ("0:i:", .channel(0, .index(IndexRequest())), "0:i::::"),
        ("0:i:1", .channel(0, .index(IndexRequest(wantsData: true))), "0:i:1:::"),
        ("0:i:1:M", .channel(0, .index(IndexRequest(wantsData: true, mark: "M"))), "0:i:1:M::"),
        ("0:i:0:::5:more:fields", .channel(0, .index(IndexRequest(limit: 5))), "0:i::::5"),
        ("0:i:true:::", .channel(0, .index(IndexRequest())), "0:i::::"),
        ("0:i::::0", .channel(0, .index(IndexRequest())), "0:i::::"),
        ("0:i::::-3", .channel(0, .index(IndexRequest())), "0:i::::"),
        ("0:i::::many", .channel(0, .index(IndexRequest())), "0:i::::"),
        ("0:e:key.1", .channel(0, .entity(key: "key", version: 1)), nil),
        ("0:e:a.b.c.12", .channel(0, .entity(key: "a.b.c", version: 12)), nil),
        ("0:e:.x.1", .channel(0, .entity(key: ".x", version: 1)), nil),
        ("0:e:key.0", .channel(0, .entity(key: "key", version: 0)), nil),
        ("0:e:a:b.2", .channel(0, .entity(key: "a:b", version: 2)), nil),
        ("0:e:", .channel(0, .unreadableEntity(argument: "")), nil),
        ("0:e", .channel(0, .unreadableEntity(argument: "")), "0:e:"),
        ("0:e:key", .channel(0, .unreadableEntity(argument: "key")), nil),
        ("0:e:key.", .channel(0, .unreadableEntity(argument: "key.")), nil),
        ("0:e:.1", .channel(0, .unreadableEntity(argument: ".1")), nil),
        ("0:e:key.x", .channel(0, .unreadableEntity(argument: "key.x")), nil),
        ("0:e:key.-1", .channel(0, .unreadableEntity(argument: "key.-1")), nil),
        // The answer repeats the argument, so a version must be written in its one form.
        ("0:e:key.01", .channel(0, .unreadableEntity(argument: "key.01")), nil),
        ("0:e:key.99999999999999999999", .channel(0, .unreadableEntity(argument: "key.99999999999999999999")), nil),
        ("0:cv:511aa58737a401031d57db90", .channel(0, .changesSince("511aa58737a401031d57db90")), nil),
        ("0:cv:0", .channel(0, .changesSince("0")), nil), ("0:cv:", .channel(0, .changesSince("")), nil),
        ("0:cv", .channel(0, .changesSince("")), "0:cv:"), ("0:cv:a:b", .channel(0, .changesSince("a:b")), nil),
        ("0:options:{}", .channel(0, .unknown(command: "options")), "0:options"),
        ("0:", .channel(0, .unknown(command: "")), nil), ("0", .channel(0, .unknown(command: "")), "0:"),
        ("0:C:{}", .channel(0, .unknown(command: "C")), "0:C"),
        ("0: c:{}", .channel(0, .unknown(command: " c")), "0: c"),
        ("12:cv:x", .channel(12, .changesSince("x")), nil), ("007:cv:x", .channel(7, .changesSince("x")), "7:cv:x"),
        ("999999:cv:x", .channel(999_999, .changesSince("x")), nil),
    ]

    @Test("every row of the grammar is read, and written as it is sent")
    func readsGrammar() throws {
        for (text, message, written) in Self.grammar {
            #expect(try client(text) == message, "\(text)")
            #expect(message.text == written ?? text, "\(text)")
        }
    }

    @Test("a text without a channel is an error, and nothing else is")
    func refuses() {
        for text in ["", ":", "x", "hello:1", "-1:c:{}", "0x1:c:{}", " 0:c:{}", "h1:2", "٣:cv:x", "H:1", "{}"] {
            #expect(throws: WireError.notAMessage, "\(text)") { try client(text) }
        }
        for text in ["1000000:cv:x", "4294967296:cv:x", "99999999999999999999999:cv:x"] {
            #expect(throws: WireError.channelNumber, "\(text)") { try client(text) }
        }
    }

    @Test("an unknown command is kept by its first bytes only")
    func unknown() throws {
        let message = try client("0:" + String(repeating: "x", count: 10_000))
        #expect(message == .channel(0, .unknown(command: String(repeating: "x", count: 32))))
    }

    @Test("a page has the default size when none is asked for, and never more than the maximum")
    func pages() {
        #expect(IndexRequest().pageLimit == 100)
        #expect(IndexRequest(limit: 7).pageLimit == 7)
        #expect(IndexRequest(limit: 1_000_000).pageLimit == 1_000)
    }

    @Test("a client's state is read from either spelling, whatever else it contains")
    func indexState() throws {
        let android =
            #"0:index:{"current":"cv1","index":[{"id":"a","v":2}],"pending":[{"id":"a","sv":2,"ccid":"c"}],"extra":{"x":1}}"#
        let state = IndexState(
            current: "cv1", index: [.init(key: "a", version: 2)], pending: [.init(key: "a", sv: 2, ccid: "c")],
            extra: ["x": 1])
        #expect(try client(android) == .channel(0, .indexState(state)))
        #expect(try client(android).text == android)
        let ios =
            #"0:index:{"current":"cv1","index":[{"id":"a","v":"2"}],"pendings":[{"id":"a","sv":"2","ccid":"c"}]}"#
        #expect(
            try client(ios)
                == .channel(
                    0,
                    .indexState(IndexState(current: "cv1", index: state.index, pending: state.pending))))
        for odd in ["0:index", "0:index:", "0:index:[]", "0:index:{", #"0:index:{"index":7,"pending":{}}"#] {
            #expect(try client(odd) == .channel(0, .indexState(IndexState())), "\(odd)")
        }
    }
}
