import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

@Suite("The connection", .nonceWatch)
struct LinkTests {
    @Test(
        "a heartbeat is sent after 20 s of silence; without an answer for 10 s the connection is closed",
        arguments: BucketKind.allCases)
    func heartbeat(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live()
        #expect(talk.machine.deadline == talk.now + 20_000)
        talk.now += 20_000
        #expect(talk.sent(talk.machine.tick(now: talk.now)) == ["h:0"])
        #expect(talk.hear("h:1").isEmpty)
        talk.now += 20_000
        #expect(talk.sent(talk.machine.tick(now: talk.now)) == ["h:2"])
        talk.now += 10_000
        #expect(talk.machine.tick(now: talk.now).contains(.disconnect))
    }

    @Test("pauses between attempts grow, vary, and stay bounded", arguments: BucketKind.allCases)
    func backoff(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        var pauses = [Int64]()
        for _ in 0..<14 {
            talk.now = max(talk.now, talk.machine.deadline ?? talk.now)
            #expect(talk.machine.tick(now: talk.now).contains(.connect))
            _ = talk.machine.closed(LinkClosure(detail: "refused"), now: talk.now)
            pauses.append(try #require(talk.machine.deadline) - talk.now)
        }
        #expect(pauses[0] <= 250)
        #expect(pauses.allSatisfy { $0 <= 60_000 })
        #expect(pauses.suffix(3).allSatisfy { $0 >= 30_000 })
        #expect(Set(pauses.suffix(3)).count > 1, "jitter")
        #expect(talk.machine.status == .offline(.unreachable("refused")))
    }

    @Test("an attempt to connect that hangs for 30 s is given up", arguments: BucketKind.allCases)
    func hangs(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.machine.goOnline(now: talk.now)
        talk.now += 30_000
        #expect(talk.machine.tick(now: talk.now).first == .disconnect)
    }

    @Test("a session stays offline until it is asked; edits wait and are sent then", arguments: BucketKind.allCases)
    func switches(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live()
        #expect(talk.machine.goOffline(now: talk.now) == [.disconnect, .status(.offline(.requested))])
        #expect(talk.machine.deadline == nil)
        #expect(try talk.set("a", "{\"n\":1}").isEmpty)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:c:[]").count == 1)
    }

    @Test("a request that is never answered ends the connection", arguments: BucketKind.allCases)
    func unanswered(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.connect()
        talk.now += 20_000
        _ = talk.machine.tick(now: talk.now)
        _ = talk.hear("h:1")
        talk.now += 20_000
        _ = talk.machine.tick(now: talk.now)
        _ = talk.hear("h:3")
        talk.now += 20_001
        #expect(talk.machine.tick(now: talk.now).contains(.disconnect))
    }

    @Test("the server gets the state it asks for, without content", arguments: BucketKind.allCases)
    func state(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 3, #"{"t":"secret"}"#)])
        let id = ccid(try talk.type("a", at: 0, "x").first)
        let answer = talk.hear("0:index")
        #expect(answer.count == 1)
        #expect(
            answer[0].hasPrefix(
                #"0:index:{"current":"cv1","index":[{"id":"a","v":3}],"pending":[{"id":"a","sv":3,"ccid":"\#(id)"}]"#))
        #expect(!answer[0].contains("secret"))
    }

    @Test("log lines go out only while the server wants them", arguments: BucketKind.allCases)
    func log(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live()
        #expect(talk.hear("log:1").first?.hasPrefix("log:{\"log\":") == true)
        #expect(talk.hear("0:c:nonsense").contains { $0.hasPrefix("log:") })
        #expect(talk.hear("log:0").isEmpty)
    }

    @Test(
        "an unreadable change leads to an index scan, since its content is lost",
        arguments: [
            "0:c:{", "0:c:[{}]", #"0:c:[{"id":"a","o":"M","ev":"x","cv":"1","ccids":[]}]"#,
        ], BucketKind.allCases)
    func unreadable(text: String, kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, "{}")])
        #expect(talk.hear(text).contains("0:i:1:::1000"))
    }

    @Test(
        "a malformed message, or one for no open bucket, is ignored",
        arguments: [
            "", "x", "h:", "h:x", "99:c:[]", "0:?", "0:o:{}", "0:zzz:1", "log:", ":::", "0:e:a.1\n?",
            "0:e:a.1\n{\"data\":{}}",
        ], BucketKind.allCases)
    func nonsense(text: String, kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, "{}")])
        #expect(talk.hear(text).isEmpty)
        #expect(try talk.set("a", #"{"n":1}"#).count == 1)
    }

    @Test(
        "a position that the server does not know leads to the index, also when a late answer came before",
        arguments: BucketKind.allCases)
    func lateUnknownPosition(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, "{}")])
        let change = try #require(try talk.set("a", #"{"n":1}"#).first)
        let ccid = try #require(
            try JSONValue(parsing: String(change.dropFirst("0:c:".count)))["ccid"]?.stringValue)
        let other = try #require(try talk.set("b", "{}").first)
        let known = try #require(
            try JSONValue(parsing: String(other.dropFirst("0:c:".count)))["ccid"]?.stringValue)
        // 409 leads to the index; the other change is still in flight when that is read.
        let again = talk.hear(
            #"0:c:[{"clientid":"x","id":"b","error":409,"ccids":["\#(known)"]}]"#)
        #expect(again == ["0:i:1:::1000"])
        #expect(talk.hear(#"0:i:{"current":"cv1","index":[{"id":"a","v":1,"d":{}}]}"#) == ["0:cv:cv1"])
        let diff = #"{"n":{"o":"+","v":1}}"#
        let late = talk.hear(
            #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":\#(diff),"sv":1,"ev":2,"ccids":["\#(ccid)"]}]"#)
        #expect(late == ["0:cv:cv1"])
        #expect(talk.hear("0:cv:?").isEmpty, "the second index in a row waits a moment")
        talk.now = try #require(talk.machine.deadline)
        #expect(talk.sent(talk.machine.tick(now: talk.now)) == ["0:i:1:::1000"])
        #expect(!talk.machine.isSynced(talk.notes))
    }

    @Test("members are in the server's order once an edit is confirmed", arguments: BucketKind.allCases)
    func memberOrder(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live()
        let change = try #require(try talk.set("a", #"{"l":[2],"t":"x"}"#).first)
        let ccid = try #require(
            try JSONValue(parsing: String(change.dropFirst("0:c:".count)))["ccid"]?.stringValue)
        let diff = #"{"t":{"o":"+","v":"x"},"l":{"o":"+","v":[2]}}"#
        _ = talk.hear(#"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":\#(diff),"ev":1,"ccids":["\#(ccid)"]}]"#)
        // The server of a sealed bucket has no order of its own.
        let ordered = kind == .open ? #"{"t":"x","l":[2]}"# : #"{"l":[2],"t":"x"}"#
        #expect(try talk.local("a") == ordered)
        #expect(try talk.ghost("a").json == ordered)
    }

    @Test(
        "a deletion survives a new read of the object in which little of the text around it is left",
        arguments: BucketKind.allCases)
    func deletionOverGap(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        _ = talk.machine.goOffline(now: talk.now)
        _ = try talk.type("a", at: 1, "", deleting: 1)
        _ = talk.connect()
        // Others typed around every character, and the log that records it is gone.
        _ = talk.hear("0:auth:user@example.com", "0:cv:?")
        _ = talk.hear(#"0:i:{"current":"cv9","index":[{"id":"a","v":9,"d":{"t":"1a2b3c4"}}]}"#)
        #expect(try talk.local("a") == #"{"t":"1a23c4"}"#)
    }
}
