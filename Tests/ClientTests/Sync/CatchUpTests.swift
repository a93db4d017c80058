import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

@Suite("Catching up, and its end", .nonceWatch)
struct CatchUpTests {
    private func change(_ ev: Int) -> String {
        #"{"clientid":"x","cv":"cv\#(ev)","id":"a","o":"M","v":{"n":{"o":"r","v":\#(ev)}},"sv":\#(ev - 1),"ev":\#(ev),"ccids":["q\#(ev)"]}"#
    }

    /// Connected again with a change of `b` that was in flight when the connection ended.
    private func returned(_ kind: BucketKind) throws -> (talk: Transcript, first: String) {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"n":1}"#), ("b", 1, #"{"t":"x"}"#)])
        let first = try #require(try talk.type("b", at: 0, "y").first)
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com").isEmpty)
        return (talk, first)
    }

    @Test(
        "an answer in two messages: the first is not the end, and nothing is sent again before all has arrived",
        arguments: BucketKind.allCases)
    func twoParts(kind: BucketKind) throws {
        var (talk, first) = try returned(kind)
        #expect(talk.hear("0:c:[\(change(2))]") == ["0:cv:cv2"])
        #expect(!talk.machine.isSynced(talk.notes))
        #expect(talk.machine.status == .connecting)
        let mine =
            #"{"clientid":"me","cv":"cv4","id":"b","o":"M","v":{"t":{"o":"d","v":"+y\t=1"}},"sv":1,"ev":2,"ccids":["\#(ccid(first))"]}"#
        #expect(talk.hear("0:c:[\(change(3)),\(mine)]") == ["0:cv:cv4"])
        // The answer to the first question, then the one to the second.
        #expect(talk.hear("0:c:[\(change(3)),\(mine)]").isEmpty)
        #expect(talk.machine.status == .upToDate)
        #expect(talk.hear("0:c:[]").isEmpty)
        #expect(try talk.local("a") == #"{"n":3}"#)
        #expect(try talk.local("b") == #"{"t":"yx"}"#)
    }

    @Test(
        "after one message and an empty one the client is caught up, and the pending change is sent",
        arguments: BucketKind.allCases)
    func onePart(kind: BucketKind) throws {
        var (talk, first) = try returned(kind)
        #expect(talk.hear("0:c:[\(change(2))]") == ["0:cv:cv2"])
        let reported = talk.actions(["0:c:[]"])
        #expect(reported.contains(.event(talk.notes, .caughtUp)))
        #expect(talk.sent(reported) == [first])
    }

    @Test("an answer in 39 messages leads to two questions, not to one for each", arguments: BucketKind.allCases)
    func manyParts(kind: BucketKind) throws {
        var (talk, first) = try returned(kind)
        var questions = [String]()
        for ev in 2...40 { questions += talk.hear("0:c:[\(change(ev))]") }
        #expect(questions == ["0:cv:cv2", "0:cv:cv3"])
        #expect(!talk.machine.isSynced(talk.notes))
        #expect(talk.hear("0:c:[\(change(3))]") == [first])
        for ev in 4...40 { #expect(talk.hear("0:c:[\(change(ev))]").isEmpty) }
        #expect(try talk.local("a") == #"{"n":40}"#)
        #expect(talk.machine.status == .syncing(pending: 1))
    }

    @Test("a refusal of an earlier change is not the answer to cv", arguments: BucketKind.allCases)
    func refusalOnly(kind: BucketKind) throws {
        var (talk, first) = try returned(kind)
        let refusal = #"0:c:[{"clientid":"me","id":"b","error":503,"ccids":["\#(ccid(first))"]}]"#
        #expect(talk.hear(refusal).isEmpty)
        #expect(!talk.machine.isSynced(talk.notes))
        #expect(talk.machine.status == .connecting)
    }

    @Test(
        "pauses grow while a server accepts the token and then closes; they start again once all was caught up",
        arguments: BucketKind.allCases)
    func backoff(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        var pauses = [Int64]()
        for _ in 0..<8 {
            talk.now = max(talk.now, talk.machine.deadline ?? talk.now)
            _ = talk.machine.tick(now: talk.now)
            _ = talk.machine.opened(now: talk.now)
            _ = talk.hear("0:auth:user@example.com")
            _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
            pauses.append(try #require(talk.machine.deadline) - talk.now)
        }
        #expect(pauses[7] >= 16_000)
        talk.now = try #require(talk.machine.deadline)
        _ = talk.machine.tick(now: talk.now)
        _ = talk.machine.opened(now: talk.now)
        _ = talk.hear("0:auth:user@example.com", #"0:i:{"current":"cv1","index":[]}"#, "0:c:[]")
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        #expect(try #require(talk.machine.deadline) - talk.now <= 250)
    }

    @Test(
        "a bucket that the server does not open is reported with its message and never counts as up to date",
        arguments: BucketKind.allCases)
    func refusedBucket(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.connect()
        let reported = talk.actions([#"0:auth:{"msg":"no room","code":500}"#])
        let words = reported.compactMap { action in
            if case .event(_, .unavailable(let reason)) = action { reason.detail } else { nil }
        }
        #expect(words == ["the server does not open the bucket: no room"])
        #expect(talk.machine.status == .connecting)
        #expect(talk.machine.unavailability(talk.notes)?.number == 500)
        talk.now += 30_000
        _ = talk.machine.tick(now: talk.now)
        #expect(talk.machine.unavailability(talk.notes) == nil)
        _ = talk.hear("0:auth:user@example.com", #"0:i:{"current":"cv1","index":[]}"#, "0:c:[]")
        #expect(talk.machine.status == .upToDate)
    }

    @Test(
        "waiting for a bucket that the server does not open fails with the server's message",
        arguments: BucketKind.allCases)
    func waitForRefused(kind: BucketKind) async throws {
        let server = LoopbackServer()
        server.with { $0.closedBuckets = ["notes"] }
        let session = try await server.session()
        let notes = try await session.bucket("notes", kind)
        let failure = await #expect(throws: ClientError.self) {
            try await notes.waitUntilSynced(timeout: .seconds(300))
        }
        #expect(failure?.code == .unavailable)
        #expect(failure?.detail.hasSuffix("closed for a test") == true)
        await session.close()
    }

    @Test("a pause after 503 that ends during an index scan requests no second page", arguments: BucketKind.allCases)
    func pauseAndScan(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"n":1}"#), ("b", 1, #"{"n":1}"#)])
        let first = try #require(try talk.set("a", #"{"n":2}"#).first)
        let second = try #require(try talk.set("b", #"{"n":2}"#).first)
        _ = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":503,"ccids":["\#(ccid(first))"]}]"#)
        #expect(
            talk.hear(#"0:c:[{"clientid":"me","id":"b","error":409,"ccids":["\#(ccid(second))"]}]"#) == ["0:i:1:::1000"]
        )
        talk.now += 5_000
        #expect(talk.sent(talk.machine.tick(now: talk.now)).isEmpty)
        try talk.serverTakes(second)
        let page = #"0:i:{"current":"cv2","index":[{"id":"a","v":1,"d":{"n":1}},{"id":"b","v":2,"d":{"n":2}}]}"#
        #expect(talk.hear(page) == ["0:cv:cv2"])
        #expect(talk.hear("0:c:[]") == [first])
    }

    @Test(
        "an object that was requested and is in no index is gone, and no longer waited for",
        arguments: BucketKind.allCases)
    func wantedButGone(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live()
        try talk.serverHolds("ghost", 7, "{}")
        let unknown =
            #"0:c:[{"clientid":"x","cv":"cv2","id":"ghost","o":"M","v":{},"sv":7,"ev":8,"ccids":["q"]}]"#
        #expect(talk.hear(unknown) == ["0:e:ghost.8"])
        #expect(talk.hear("0:e:ghost.8\n?") == ["0:i:1:::1000"])
        #expect(talk.hear(#"0:i:{"current":"cv9","index":[]}"#) == ["0:cv:cv9"])
        #expect(talk.hear("0:c:[]").isEmpty)
        #expect(talk.machine.isSynced(talk.notes))
        #expect(talk.store.edited(talk.notes).isEmpty)
    }
}

@Suite("The app's diffs that mix up new and known keys", .nonceWatch)
struct FittedEditTests {
    private func edit(_ talk: inout Transcript, _ diff: String) throws -> [String] {
        let diff = try ObjectDiff(JSONValue(parsing: diff))
        return talk.sent(try talk.machine.edit(talk.notes, EntityKey("a"), by: diff, now: talk.now))
    }

    @Test(
        "an insertion of a known key and its removal end as a removal, also inside an object",
        arguments: BucketKind.allCases)
    func insertThenRemove(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"k":1,"o":{"k":1}}"#)])
        _ = talk.machine.goOffline(now: talk.now)
        _ = try edit(&talk, #"{"k":{"o":"+","v":2},"o":{"o":"O","v":{"k":{"o":"+","v":2}}}}"#)
        _ = try edit(&talk, #"{"k":{"o":"-"},"o":{"o":"O","v":{"k":{"o":"-"}}}}"#)
        #expect(try talk.local("a") == #"{"o":{}}"#)
        _ = talk.connect()
        let sent = talk.hear("0:auth:user@example.com", "0:c:[]")
        #expect(sent.first?.contains(#""v":{"k":{"o":"-"},"o":{"o":"O","v":{"k":{"o":"-"}}}}"#) == true)
    }

    @Test(
        "a removal of an absent key is not an edit; a replacement of an absent key is an insertion",
        arguments: BucketKind.allCases)
    func missing(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"k":1}"#)])
        #expect(try edit(&talk, #"{"x":{"o":"-"}}"#).isEmpty)
        #expect(talk.machine.status == .upToDate)
        #expect(try edit(&talk, #"{"x":{"o":"r","v":1}}"#).first?.contains(#""v":{"x":{"o":"+","v":1}}"#) == true)
    }
}
