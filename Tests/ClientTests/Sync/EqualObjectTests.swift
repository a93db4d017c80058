import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

/// The app sets an object as a whole, and others set it to the same value (docs/decisions/0086).
@Suite("Setting an object to the value that others have set", .nonceWatch)
struct EqualObjectTests {
    private func foreign(_ deltas: String..., from version: Int = 2) -> String {
        let changes = deltas.enumerated().map { place, delta in
            let end = version + place
            return #"{"clientid":"x","cv":"cv\#(end)","id":"a","o":"M","v":{"t":{"o":"d","v":"\#(delta)"}},"#
                + #""sv":\#(end - 1),"ev":\#(end),"ccids":["q\#(end)"]}"#
        }
        return "0:c:[\(changes.joined(separator: ","))]"
    }

    private func changes(_ texts: [String]) -> [String] { texts.filter { $0.hasPrefix("0:c:{") } }

    /// The object has `shopping:` at version 1, and the connection is cut.
    private func cut(_ kind: BucketKind) throws -> Transcript {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"shopping:"}"#)])
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        return talk
    }

    @Test(
        "an offline set equal to a foreign one leaves nothing to send", arguments: BucketKind.allCases,
        [false, true])
    func offline(kind: BucketKind, restarts: Bool) throws {
        var talk = try cut(kind)
        #expect(try talk.set("a", #"{"t":"shopping: milk"}"#).isEmpty)
        if restarts { talk = try talk.restarted() }
        _ = talk.connect()
        #expect(changes(talk.hear("0:auth:user@example.com", foreign(#"=9\t+ milk"#), "0:c:[]")).isEmpty)
        #expect(try talk.local("a") == #"{"t":"shopping: milk"}"#)
        #expect(try talk.ghost("a") == (2, #"{"t":"shopping: milk"}"#))
        #expect(talk.machine.status == .upToDate)
    }

    @Test(
        "a value that others reach in several changes of one answer leaves nothing to send",
        arguments: BucketKind.allCases)
    func chain(kind: BucketKind) throws {
        var talk = try cut(kind)
        _ = try talk.set("a", #"{"t":"shopping: tea"}"#)
        _ = try talk.set("a", #"{"t":"shopping: milk"}"#)
        _ = talk.connect()
        #expect(changes(talk.hear("0:auth:user@example.com", foreign(#"=9\t+ m"#, #"=11\t+ilk"#), "0:c:[]")).isEmpty)
        #expect(try talk.local("a") == #"{"t":"shopping: milk"}"#)
        #expect(talk.machine.status == .upToDate)
    }

    @Test("text typed at the same place is kept, also before and after a set", arguments: BucketKind.allCases, 0..<3)
    func keystrokes(kind: BucketKind, order: Int) throws {
        var talk = try cut(kind)
        if order == 1 { _ = try talk.set("a", #"{"t":"shopping: "}"#) }
        _ = try talk.type("a", at: order == 1 ? 10 : 9, order == 1 ? "milk" : " milk")
        if order == 2 { _ = try talk.set("a", #"{"t":"shopping: milk","n":1}"#) }
        _ = talk.connect()
        let sent = changes(talk.hear("0:auth:user@example.com", foreign(#"=9\t+ milk"#), "0:c:[]"))
        #expect(sent.count == 1)
        #expect(try talk.local("a")?.hasPrefix(#"{"t":"shopping: milk milk""#) == true)
    }

    @Test("only the part that others have not set is sent", arguments: BucketKind.allCases)
    func partly(kind: BucketKind) throws {
        var talk = try cut(kind)
        _ = try talk.set("a", #"{"t":"shopping: milk","n":1}"#)
        _ = talk.connect()
        let sent = changes(talk.hear("0:auth:user@example.com", foreign(#"=9\t+ milk"#), "0:c:[]"))
        #expect(sent.count == 1 && sent.first?.contains(#""v":{"n":{"o":"+","v":1}}"#) == true, "\(sent)")
        #expect(try talk.local("a") == #"{"t":"shopping: milk","n":1}"#)
    }

    /// Open buckets only: in a sealed one the change is refused first, see `refusedSealed`.
    @Test("the app never sees a value in flight twice, and 412 ends the change", arguments: [false, true])
    func inFlight(restarts: Bool) throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"shopping:"}"#)])
        let sent = try talk.set("a", #"{"t":"shopping: milk"}"#)
        #expect(sent.first?.hasSuffix(#","v":{"t":{"o":"d","v":"=9\t+ milk"}},"whole":true}"#) == true, "\(sent)")
        if restarts {
            talk = try talk.restarted()
            _ = talk.connect()
            _ = talk.hear("0:auth:user@example.com")
        }
        var again = talk.hear(foreign(#"=9\t+ milk"#))
        #expect(try talk.local("a") == #"{"t":"shopping: milk"}"#)
        if restarts { again += talk.hear("0:c:[]") }
        #expect(changes(again) == (restarts ? sent : []), "the same bytes once more")
        #expect(talk.hear(refusal(412, ccid(sent.first))).isEmpty)
        #expect(try talk.local("a") == #"{"t":"shopping: milk"}"#)
        #expect(talk.machine.status == .upToDate)
    }

    @Test("an edit made behind a change in flight is applied to what others did, after 412")
    func inFlightAndMore() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"shopping:"}"#)])
        let sent = try talk.set("a", #"{"t":"shopping: milk"}"#)
        _ = try talk.type("a", at: 14, ", tea")
        _ = talk.hear(foreign(#"=9\t+ milk"#))
        #expect(try talk.local("a") == #"{"t":"shopping: milk, tea"}"#)
        let next = talk.hear(refusal(412, ccid(sent.first)))
        #expect(next.first?.contains(#""sv":2,"o":"M","v":{"t":{"o":"d","v":"=14\t+, tea"}}"#) == true, "\(next)")
        #expect(next.first?.contains("whole") == false)
    }

    @Test("a server that does not know the whole mark applies the change: its answer counts")
    func olderServer() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"shopping:"}"#)])
        let id = ccid(try talk.set("a", #"{"t":"shopping: milk"}"#).first)
        _ = talk.hear(foreign(#"=9\t+ milk"#))
        _ = talk.hear(
            #"0:c:[{"clientid":"me","cv":"cv3","id":"a","o":"M","v":{"t":{"o":"d","v":"=14\t+ milk"}},"sv":2,"ev":3,"ccids":["\#(id)"]}]"#
        )
        #expect(try talk.local("a") == #"{"t":"shopping: milk milk"}"#)
        #expect(talk.machine.status == .upToDate)
    }

    @Test("sealed: a change refused (405) because others came first is rebased, and nothing of it is left")
    func refusedSealed() throws {
        var talk = try Transcript(.sealed)
        _ = talk.live([("a", 1, #"{"t":"shopping:"}"#)])
        let sent = try talk.set("a", #"{"t":"shopping: milk"}"#)
        #expect(changes(talk.hear(foreign(#"=9\t+ milk"#))).isEmpty)
        #expect(changes(talk.hear(refusal(405, ccid(sent.first)))).isEmpty)
        #expect(try talk.local("a") == #"{"t":"shopping: milk"}"#)
        #expect(try talk.ghost("a") == (2, #"{"t":"shopping: milk"}"#))
        #expect(talk.machine.status == .upToDate)
    }

    @Test("sealed: a change refused while nothing newer is known reads the index and is sent again under its id")
    func refusedSealedFirst() throws {
        var talk = try Transcript(.sealed)
        _ = talk.live([("a", 1, #"{"t":"shopping:"}"#)])
        let sent = try talk.set("a", #"{"t":"shopping: milk"}"#)
        #expect(talk.hear(refusal(405, ccid(sent.first))) == ["0:i:1:::1000"])
        let page = #"0:i:{"current":"cv2","index":[{"id":"a","v":2,"d":{"t":"shopping: milk"}}]}"#
        let again = changes(talk.hear(page, "0:c:[]"))
        #expect(again.count == 1 && ccid(again.first) == ccid(sent.first))
        #expect(changes(talk.hear(refusal(405, ccid(sent.first)))).isEmpty)
        #expect(try talk.local("a") == #"{"t":"shopping: milk"}"#)
        #expect(talk.machine.status == .upToDate)
    }

    @Test("sealed: a change refused (405) because others changed something else is sent again, up to twice")
    func refusedSealedAgain() throws {
        var talk = try Transcript(.sealed)
        _ = talk.live([("a", 1, #"{"t":"shopping:"}"#)])
        var sent = try talk.set("a", #"{"t":"shopping: milk"}"#)
        for version in 2...4 {
            _ = talk.hear(foreign(#"+.\t=\#(7 + version)"#, from: version))
            try #require(sent.count == 1)
            guard version < 4 else { break }
            sent = changes(talk.hear(refusal(405, ccid(sent.first))))
        }
        #expect(try talk.local("a") == #"{"t":"...shopping: milk"}"#)
    }

    @Test("a delta that cuts a surrogate pair is sent with whole pairs", arguments: BucketKind.allCases)
    func pairs(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"🙋"}"#)])
        let diff = ObjectDiff([(key: "t", operation: .text(try TextDelta(parsing: "=1\t-1\t+%ED%B9%8C")))])
        let sent = talk.sent(try talk.machine.edit(talk.notes, EntityKey("a"), by: diff, now: talk.now))
        #expect(sent.first?.contains(#""v":{"t":{"o":"d","v":"-2\t+%F0%9F%99%8C"}}"#) == true, "\(sent)")
        #expect(try talk.local("a") == #"{"t":"🙌"}"#)
    }
}
