import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

/// Refused edits are listed until they are resolved (docs/decisions/0084).
@Suite("The list of refused edits, and the ways out", .nonceWatch)
struct RefusalListTests {
    private static let key = "a"

    private func listed(_ talk: Transcript) throws -> [String] {
        try talk.machine.refusals(talk.notes).map { "\($0.key) \($0.error.number ?? 0)" }
    }

    /// `a` was edited, and the server has answered with `code`.
    private func refused(_ code: Int, _ kind: BucketKind) throws -> Transcript {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#), ("b", 1, #"{"t":"x"}"#)])
        let first = try #require(try talk.type("a", at: 3, "P").first)
        #expect(try listed(talk).isEmpty, "what has no answer is not refused")
        _ = talk.hear(refusal(code, ccid(first)))
        return talk
    }

    @Test(
        "an edit refused for good is listed with the server's code, also after restarts and without a connection",
        arguments: [400, 413, 499], BucketKind.allCases)
    func lasting(code: Int, kind: BucketKind) throws {
        let talk = try refused(code, kind)
        #expect(try listed(talk) == ["a \(code)"])
        #expect(try talk.machine.refusals(talk.notes)[0].error.code == .refused)
        #expect(try talk.machine.refusals(talk.notes)[0].reason.contains("\(code)"))
        var again = try talk.restarted()
        #expect(try listed(again) == ["a \(code)"])
        _ = again.connect()
        #expect(again.hear("0:auth:user@example.com", "0:c:[]").isEmpty)
        #expect(try listed(again) == ["a \(code)"])
        #expect(try again.machine.unconfirmedKeys(again.notes) == ["a"])
    }

    @Test("a locked sealed bucket lists refused edits by the app's keys, and opens as before")
    func locked() throws {
        let talk = try refused(413, .sealed)
        var options = SyncOptions(app: try AppID("app"), token: "token")
        options.startsOnline = false
        var locked = try SyncMachine(options: options, store: talk.store, random: SystemRandomNumberGenerator())
        #expect(try locked.refusals(talk.notes).map(\.key) == ["a"])
        #expect(try locked.unconfirmedKeys(talk.notes) == ["a"])
        _ = try locked.open(talk.notes, keys: BucketKind.sealed.keys, now: talk.now)
        #expect(try locked.object(talk.notes, EntityKey("a")) == ["t": "abcP"])
        #expect(try locked.refusals(talk.notes).map(\.key) == ["a"])
    }

    @Test(
        "a refused edit leaves the list for good only when the server accepts an edit of its object",
        arguments: BucketKind.allCases)
    func smaller(kind: BucketKind) throws {
        var talk = try refused(413, kind)
        let next = try #require(try talk.type("a", at: 2, "Q", deleting: 2).first)
        #expect(try listed(talk).isEmpty, "its answer is open")
        _ = talk.hear(refusal(413, ccid(next)))
        #expect(try listed(talk) == ["a 413"])
        let last = try #require(try talk.type("a", at: 0, "R").first)
        _ = talk.hear(
            #"0:c:[{"clientid":"me","cv":"c2","id":"a","o":"M","v":{"t":{"o":"d","v":"+R\t=2\t-1\t+Q"}},"sv":1,"ev":2,"ccids":["\#(ccid(last))"]}]"#
        )
        #expect(try listed(talk).isEmpty)
        #expect(try talk.machine.unconfirmedKeys(talk.notes).isEmpty)
        #expect(try talk.ghost("a").version == 2)
    }

    @Test(
        "with a token that permits no changes all waiting edits are listed with 401, until the connection ends",
        arguments: BucketKind.allCases)
    func unauthorized(kind: BucketKind) throws {
        var talk = try refused(401, kind)
        _ = try talk.type("b", at: 0, "y")
        #expect(try Set(listed(talk)) == ["a 401", "b 401"])
        #expect(try talk.machine.refusals(talk.notes).allSatisfy { $0.error.code == .unauthorized })
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        #expect(try listed(talk).isEmpty)
        #expect(try Set(talk.machine.unconfirmedKeys(talk.notes)) == ["a", "b"])
    }

    @Test(
        "a change whose outcome is open is not listed as refused", arguments: [500, 503, 405, 440],
        BucketKind.allCases)
    func open(code: Int, kind: BucketKind) throws {
        var talk = try refused(code, kind)
        #expect(try listed(talk).isEmpty)
        #expect(try talk.machine.isUnsent(talk.notes, EntityKey("a")) == false, "it was sent")
    }

    @Test("a refused edit is sent again on request only", arguments: BucketKind.allCases)
    func again(kind: BucketKind) throws {
        var talk = try refused(413, kind)
        let (isSent, actions) = try talk.machine.retryRefused(
            talk.notes, EntityKey("a"), now: talk.now)
        let sent = talk.sent(actions)
        #expect(isSent && sent.count == 1 && sent[0].contains(#""v":{"t":{"o":"d","v":"=3\t+P"}}"#))
        #expect(try listed(talk).isEmpty)
        _ = talk.hear(refusal(413, ccid(sent.first)))
        #expect(try listed(talk) == ["a 413"])
        let (isOther, none) = try talk.machine.retryRefused(
            talk.notes, EntityKey("b"), now: talk.now)
        #expect(!isOther && none.isEmpty)
    }

    @Test(
        "an edit that was never sent can be discarded; one in flight, or possibly sent, cannot",
        arguments: BucketKind.allCases)
    func unsent(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        _ = talk.machine.goOffline(now: talk.now)
        _ = try talk.type("a", at: 3, "P")
        _ = try talk.set("new", #"{"n":1}"#)
        for key in ["a", "new"] {
            #expect(try talk.machine.isUnsent(talk.notes, EntityKey(key)))
            _ = try talk.machine.discard(talk.notes, EntityKey(key), now: talk.now)
        }
        #expect(try talk.local("a") == #"{"t":"abc"}"# && talk.local("new") == nil)
        #expect(talk.machine.unconfirmed(talk.notes) == (0, 0))
        #expect(try talk.machine.isUnsent(talk.notes, EntityKey("a")) == false, "nothing is left")
        _ = talk.connect()
        _ = talk.hear("0:auth:user@example.com", "0:c:[]")
        #expect(try talk.type("a", at: 0, "x").count == 1)
        #expect(try talk.machine.isUnsent(talk.notes, EntityKey("a")) == false, "it is on its way")
        _ = talk.machine.goOffline(now: talk.now)
        #expect(try talk.machine.isUnsent(talk.notes, EntityKey("a")) == false, "the server may have it")
    }
}
