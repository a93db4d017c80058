import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

@Suite("A channel whose token ends and is renewed", .nonceWatch)
struct ChannelTokenTests {
    private static let expired = #"0:auth:{"msg":"Token expired","code":401}"#

    private func live(
        _ kind: BucketKind, _ objects: [(key: String, version: Int, json: String)] = []
    ) throws -> Transcript {
        var talk = try Transcript(kind, renewsToken: true)
        _ = talk.live(objects)
        return talk
    }

    @Test(
        "an ended token is reported once, and its channel continues with the next token from its own position",
        arguments: BucketKind.allCases)
    func renewed(kind: BucketKind) throws {
        var talk = try live(kind, [("a", 1, #"{"t":"x"}"#)])
        #expect(talk.actions([Self.expired]).filter { $0 == .tokenEnded(1) } == [.tokenEnded(1)])
        #expect(talk.actions([Self.expired]).isEmpty)
        #expect(try talk.type("a", at: 1, "y").isEmpty, "edits wait")
        let sent = talk.sent(talk.machine.adopt(token: "second", number: 2, now: talk.now))
        #expect(sent.count == 1 && sent[0].hasPrefix("0:init:") && sent[0].contains(#""token":"second""#))
        #expect(!sent[0].contains("\"cmd\""), "only a new token")
        #expect(talk.hear("0:auth:user@example.com") == ["0:cv:cv1"])
        let foreign =
            #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":{"t":{"o":"d","v":"+R\t=1"}},"sv":1,"ev":2,"ccids":["q"]}]"#
        #expect(talk.hear(foreign) == ["0:cv:cv2"])
        let edit = talk.hear("0:c:[]")
        #expect(edit.count == 1 && edit[0].contains(#""sv":2"#), "the edit that waited, carried over the change")
        #expect(try talk.local("a") == #"{"t":"Rxy"}"#)
        #expect(talk.machine.status == .syncing(pending: 1))
    }

    @Test(
        "a change in flight is sent again only if it is still not answered after everything else",
        arguments: BucketKind.allCases)
    func strays(kind: BucketKind) throws {
        for isAnswered in [true, false] {
            var talk = try live(kind, [("a", 1, #"{"t":"x"}"#)])
            let change = try #require(try talk.type("a", at: 1, "y").first)
            _ = talk.actions([Self.expired])
            _ = talk.machine.adopt(token: "second", number: 2, now: talk.now)
            #expect(talk.hear("0:auth:user@example.com") == ["0:cv:cv1"])
            if isAnswered {
                #expect(
                    talk.hear(
                        #"0:c:[{"clientid":"me","cv":"cv2","id":"a","o":"M","v":{"t":{"o":"d","v":"=1\t+y"}},"sv":1,"ev":2,"ccids":["\#(ccid(change))"]}]"#
                    ) == ["0:cv:cv1"])
            }
            #expect(talk.hear("0:c:[]") == (isAnswered ? [] : [change]))
            #expect(try talk.local("a") == #"{"t":"xy"}"#)
        }
    }

    @Test(
        "an index scan continues with its last page; a requested object is requested again",
        arguments: BucketKind.allCases)
    func scanning(kind: BucketKind) throws {
        var talk = try Transcript(kind, renewsToken: true)
        _ = talk.connect()
        #expect(
            talk.hear("0:auth:user@example.com", #"0:i:{"current":"cv1","index":[{"id":"a","v":1,"d":{}}],"mark":"m"}"#)
                == ["0:i:1:m::1000"])
        _ = talk.actions([Self.expired])
        _ = talk.machine.adopt(token: "second", number: 2, now: talk.now)
        #expect(talk.hear("0:auth:user@example.com") == ["0:i:1:m::1000"])
        #expect(talk.hear(#"0:i:{"current":"cv1","index":[{"id":"b","v":1,"d":{}}]}"#) == ["0:cv:cv1"])
        #expect(talk.hear("0:c:[]").isEmpty)
        try talk.serverHolds("a", 7, "{}")
        #expect(
            talk.hear(#"0:c:[{"clientid":"x","cv":"c8","id":"a","o":"M","v":{},"sv":7,"ev":8,"ccids":["q"]}]"#)
                == ["0:e:a.8"])
        _ = talk.actions([Self.expired])
        _ = talk.machine.adopt(token: "third", number: 3, now: talk.now)
        #expect(talk.hear("0:auth:user@example.com") == ["0:cv:c8"])
        #expect(talk.hear("0:c:[]") == ["0:e:a.8"])
    }

    @Test(
        "after the grace period, and after a sign-out of this device, the bucket is opened again",
        arguments: BucketKind.allCases)
    func fresh(kind: BucketKind) throws {
        var talk = try live(kind)
        _ = talk.actions([Self.expired])
        talk.now += SyncLimits.graceMilliseconds
        let late = talk.sent(talk.machine.adopt(token: "second", number: 2, now: talk.now))
        #expect(late.count == 1 && late[0].contains(#""cmd":"cv:cv1""#))
        #expect(talk.hear("0:auth:user@example.com", "0:c:[]").isEmpty)
        _ = talk.actions([#"0:auth:{"msg":"Signed out","code":401}"#])
        let again = talk.sent(talk.machine.adopt(token: "third", number: 3, now: talk.now))
        #expect(again.count == 1 && again[0].contains(#""cmd":"cv:cv1""#))
    }

    @Test(
        "an available token is used at once; one that is refused is reported under its own number",
        arguments: BucketKind.allCases)
    func ready(kind: BucketKind) throws {
        var talk = try live(kind)
        #expect(talk.sent(talk.machine.adopt(token: "second", number: 2, now: talk.now)).isEmpty, "no need yet")
        let actions = talk.actions([Self.expired])
        #expect(!actions.contains { if case .tokenEnded = $0 { true } else { false } })
        #expect(talk.sent(actions).first?.contains(#""token":"second""#) == true)
        #expect(talk.actions([#"0:auth:{"msg":"Token invalid","code":401}"#]).contains(.tokenEnded(2)))
        let parked = talk.machine.signOut("over", now: talk.now)
        #expect(parked.contains(.disconnect) && parked.contains(.status(.offline(.unauthorized("over")))))
        _ = talk.machine.adopt(token: "third", number: 3, now: talk.now)
        #expect(talk.machine.tick(now: talk.now).contains(.connect), "a new token connects again")
        #expect(talk.sent(talk.machine.opened(now: talk.now)).first?.contains(#""token":"third""#) == true)
        #expect(talk.actions(["0:auth:user@example.com"]).contains(.tokenGood(3)))
    }

    @Test(
        "when the first token is refused, the connection stays and the next token opens the bucket",
        arguments: BucketKind.allCases)
    func api(kind: BucketKind) throws {
        var talk = try Transcript(kind, renewsToken: true)
        _ = talk.connect()
        let reported = talk.actions([Self.expired])
        #expect(reported.contains(.tokenEnded(1)) && !reported.contains(.disconnect))
        let sent = talk.sent(talk.machine.adopt(token: "second", number: 2, now: talk.now))
        #expect(sent.first?.contains(#""cmd":"i:1:::1000""#) == true)
    }

    @Test("init carries the device id beside the token", arguments: BucketKind.allCases)
    func device(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        talk.machine.options.deviceID = "d/1+x"
        #expect(talk.connect().first?.contains(#""device_id":"d/1+x""#) == true)
    }
}
