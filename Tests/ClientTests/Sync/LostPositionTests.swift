import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

/// Objects that are absent after the position was lost are not deleted (docs/decisions/0083).
@Suite("Lost positions", .nonceWatch)
struct LostPositionTests {
    private static let auth = "0:auth:user@example.com"
    private static let ghosts = [("a", 3, #"{"t":"abc"}"#), ("b", 1, #"{"t":"b"}"#)]

    private func store(_ name: String) -> String { #"0:o:{"store":"\#(name)"}"# }

    private func index(_ objects: String, mark: String? = nil) -> String {
        #"0:i:{"current":"c9","index":[\#(objects)]\#(mark.map { #","mark":"\#($0)""# } ?? "")}"#
    }

    /// Live with `a` and `b`, in a bucket of this identity.
    private func live(_ kind: BucketKind = .open, store name: String? = "one") throws -> Transcript {
        var talk = try Transcript(kind)
        talk.mayAlarm = kind == .sealed
        _ = talk.connect()
        let list = Self.ghosts.map { #"{"id":"\#($0.0)","v":\#($0.1),"d":\#($0.2)}"# }.joined(separator: ",")
        _ = talk.hear(Self.auth)
        if let name { _ = talk.hear(store(name)) }
        _ = talk.hear(index(list))
        _ = talk.hear("0:c:[]")
        return talk
    }

    /// The connection ends, and the next one's server names the store `name` and does not know the position.
    private func again(_ talk: inout Transcript, store name: String?) -> [String] {
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        let first = talk.hear(Self.auth)
        let reported = name.map { talk.hear(store($0)) } ?? []
        return first + reported + talk.hear("0:cv:?")
    }

    @Test(
        "an object that another bucket's index does not list is sent again as a new one, once",
        arguments: ["two", nil] as [String?])
    func sentAgain(name: String?) throws {
        var talk = try live()
        #expect(again(&talk, store: name) == ["0:i:1:::1000"])
        #expect(talk.hear(index("")) == ["0:cv:c9"])
        let sent = talk.hear("0:c:[]")
        #expect(sent.count == 2)
        #expect(sent[0].contains(#""id":"a""#) && sent[0].contains(#""o":"M","v":{"t":{"o":"+","v":"abc"}}"#))
        #expect(!sent[0].contains(#""sv""#) && sent[1].contains(#""id":"b""#))
        #expect(try talk.local("a") == #"{"t":"abc"}"# && talk.local("b") == #"{"t":"b"}"#)
        // The answers have versions that start again, below those that were known.
        _ = talk.hear(
            #"0:c:[{"clientid":"me","cv":"n1","id":"a","o":"M","v":{"t":{"o":"+","v":"abc"}},"ev":1,"ccids":["\#(ccid(sent[0]))"]}]"#
        )
        #expect(try talk.ghost("a") == (1, #"{"t":"abc"}"#))
        _ = talk.hear(
            #"0:c:[{"clientid":"me","cv":"n2","id":"b","o":"M","v":{"t":{"o":"+","v":"b"}},"ev":1,"ccids":["\#(ccid(sent[1]))"]}]"#
        )
        #expect(talk.machine.isSynced(talk.notes))
        #expect(again(&talk, store: name) == ["0:i:1:::1000"], "a second time nothing of it is pending")
    }

    @Test("a Simperium server sends no identity: a position that it does not know deletes nothing")
    func noIdentity() throws {
        var talk = try live(store: nil)
        #expect(again(&talk, store: nil) == ["0:i:1:::1000"])
        _ = talk.hear(index(#"{"id":"b","v":1,"d":{"t":"b"}}"#))
        let sent = talk.hear("0:c:[]")
        #expect(sent.count == 1 && sent[0].contains(#""id":"a""#))
        #expect(try talk.local("a") == #"{"t":"abc"}"#)
    }

    @Test("a bucket with the same identity whose log was cut still removes what its index does not list")
    func trimmed() throws {
        var talk = try live()
        #expect(again(&talk, store: "one") == ["0:i:1:::1000"])
        _ = talk.hear(index(#"{"id":"b","v":1,"d":{"t":"b"}}"#))
        #expect(talk.hear("0:c:[]").isEmpty)
        #expect(try talk.local("a") == nil && talk.local("b") == #"{"t":"b"}"#)
    }

    @Test("a copy from before identities adopts one if the server knows its position, and not otherwise")
    func adopts() throws {
        for knows in [true, false] {
            var talk = try live(store: nil)
            if knows {
                _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
                _ = talk.connect()
                _ = talk.hear(Self.auth, store("one"), "0:c:[]")
            }
            _ = again(&talk, store: "one")
            _ = talk.hear(index(""))
            #expect(talk.hear("0:c:[]").count == (knows ? 0 : 2))
            #expect(try (talk.local("a") == nil) == knows)
        }
    }

    @Test("another identity is a lost position, even if the server accepts the old position")
    func acceptedByMistake() throws {
        var talk = try live()
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear(Self.auth, store("two")) == ["0:i:1:::1000"])
        #expect(
            talk.hear(
                #"0:c:[{"clientid":"x","cv":"n1","id":"a","o":"M","v":{"t":{"o":"+","v":"new"}},"ev":1,"ccids":["x1"]}]"#
            ).isEmpty)
        #expect(try talk.local("a") == #"{"t":"abc"}"#, "the index will show it")
        let events = talk.events(index(#"{"id":"a","v":1,"d":{"t":"new"}}"#))
        #expect(try talk.local("a") == #"{"t":"new"}"#)
        #expect(events.contains { if case .conflict(let report) = $0 { report.losing == ["t": "abc"] } else { false } })
        #expect(talk.hear("0:c:[]").count == 1, "b is sent again")
    }

    @Test(
        "another bucket's state of an object wins, and the replaced one is reported, also after a restart")
    func reported() throws {
        var talk = try live()
        talk.machine.bucketsWithReaders = []
        _ = again(&talk, store: "two")
        // An equal version proves nothing.
        _ = talk.hear(index(#"{"id":"a","v":3,"d":{"t":"older"}},{"id":"b","v":7,"d":{"t":"b"}}"#))
        #expect(talk.hear("0:c:[]").isEmpty)
        #expect(try talk.ghost("a") == (3, #"{"t":"older"}"#) && talk.ghost("b") == (7, #"{"t":"b"}"#))
        var next = try talk.restarted()
        let undelivered = try next.machine.takeUndelivered(next.notes, now: next.now).0
        #expect(undelivered.count == 1, "objects that are equal are not told: \(undelivered)")
        guard case .conflict(let report)? = undelivered.first else { return }
        #expect(report.key == "a" && report.path.isEmpty)
        #expect(report.losing == ["t": "abc"] && report.winning == ["t": "older"])
        #expect(try next.machine.takeUndelivered(next.notes, now: next.now).0.isEmpty)
    }

    @Test("unsent edits are rebased onto the new bucket's state; an object removed here is not sent again")
    func edits() throws {
        var talk = try live()
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = try talk.type("a", at: 3, "!")
        _ = try talk.remove("b")
        _ = talk.connect()
        _ = talk.hear(Self.auth, store("two"))
        _ = talk.hear(index(""))
        let sent = talk.hear("0:c:[]")
        #expect(sent.count == 1 && sent[0].contains(#""v":{"t":{"o":"+","v":"abc!"}}"#), "\(sent)")
        #expect(try talk.local("b") == nil)
    }

    @Test("a change in flight is sent under its own ccid, and never against a version of another bucket")
    func inFlight() throws {
        var talk = try live()
        let first = try talk.type("a", at: 3, "!")
        #expect(first.count == 1 && first[0].contains(#""sv":3"#))
        _ = again(&talk, store: "two")
        _ = talk.hear(index(#"{"id":"a","v":5,"d":{"t":"xyz"}},{"id":"b","v":1,"d":{"t":"b"}}"#))
        talk = try talk.restarted()
        _ = talk.connect()
        _ = talk.hear(Self.auth, store("two"))
        let sent = talk.hear("0:c:[]")
        #expect(sent.count == 1 && ccid(sent[0]) == ccid(first[0]) && sent[0].contains(#""sv":5"#), "\(sent)")
    }

    @Test("an index scan of another bucket continues after a crash, and still deletes nothing")
    func crash() throws {
        var talk = try live()
        _ = again(&talk, store: "two")
        _ = talk.hear(index(#"{"id":"c","v":1,"d":{"t":"c"}}"#, mark: "m1"))
        talk = try talk.restarted()
        #expect(talk.connect().first?.contains(#""cmd":"i:1:m1::1000""#) == true)
        #expect(talk.hear(Self.auth, store("two")).isEmpty)
        #expect(talk.hear(index(#"{"id":"d","v":1,"d":{"t":"d"}}"#)) == ["0:cv:c9"])
        #expect(talk.hear("0:c:[]").count == 2)
        #expect(try talk.machine.keys(talk.notes, after: nil, limit: 9).map(\.text) == ["a", "b", "c", "d"])
    }

    @Test("an index scan that finds a third bucket starts again, and objects of only one bucket are kept")
    func third() throws {
        var talk = try live()
        _ = again(&talk, store: "two")
        _ = talk.hear(index(#"{"id":"c","v":1,"d":{"t":"c"}}"#, mark: "m1"))
        talk = try talk.restarted()
        _ = talk.connect()
        _ = talk.hear(Self.auth, store("one"))
        #expect(talk.hear(index("", mark: "m2")) == ["0:i:1:::1000"], "the page is of no use")
        _ = talk.hear(index(#"{"id":"a","v":3,"d":{"t":"abc"}}"#))
        let sent = talk.hear("0:c:[]")
        #expect(sent.count == 2 && sent[0].contains(#""id":"b""#) && sent[1].contains(#""id":"c""#), "\(sent)")
    }

    @Test("with a read-only token absent objects are kept, and the refusal is reported")
    func readOnly() throws {
        var talk = try live()
        _ = again(&talk, store: "two")
        _ = talk.hear(index(""))
        let sent = talk.hear("0:c:[]")
        let events = talk.events(refusal(401, ccid(sent.first)))
        #expect(events.contains { if case .refused = $0 { true } else { false } })
        #expect(try talk.local("a") == #"{"t":"abc"}"#)
    }

    @Test("a removal in another bucket does not hide an object that this one creates under a low version")
    func oldRemoval() throws {
        var talk = try live()
        _ = talk.hear(#"0:c:[{"clientid":"x","cv":"c10","id":"a","o":"-","sv":3,"ev":4,"ccids":["x1"]}]"#)
        #expect(try talk.local("a") == nil)
        _ = again(&talk, store: "two")
        _ = talk.hear(index(#"{"id":"b","v":1,"d":{"t":"b"}}"#))
        #expect(talk.hear("0:c:[]").isEmpty, "removed is removed")
        _ = talk.hear(
            #"0:c:[{"clientid":"x","cv":"n1","id":"a","o":"M","v":{"t":{"o":"+","v":"new"}},"ev":1,"ccids":["x2"]}]"#)
        #expect(try talk.local("a") == #"{"t":"new"}"#)
    }

    @Test("an absent sealed object is kept, and an alarm reports it")
    func sealed() throws {
        var talk = try live(.sealed)
        _ = again(&talk, store: "two")
        let events = talk.events(index("")) + talk.events("0:c:[]")
        let alarms = events.compactMap { event -> String? in
            if case .integrity(let report) = event { report.key } else { nil }
        }
        #expect(Set(alarms) == ["a", "b"], "\(events)")
        #expect(try talk.local("a") == #"{"t":"abc"}"# && talk.local("b") == #"{"t":"b"}"#)
    }
}
