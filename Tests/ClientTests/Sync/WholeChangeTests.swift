import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

/// A change whose edit the server cannot read carries the object as a whole (`d`), which undoes what others did since
/// it was made.
@Suite("Resending a change that carries the object as a whole", .nonceWatch)
struct WholeChangeTests {
    private static let foreign =
        #"{"clientid":"x","cv":"c2","id":"a","o":"M","v":{"t":{"o":"d","v":"+R\t=3"}},"sv":1,"ev":2,"ccids":["q"]}"#

    private func isWhole(_ change: String) -> Bool { change.contains(#","d":{"#) }

    /// `P` after "abc" was refused with 440, and was sent again with `d`.
    private func sent() throws -> (talk: Transcript, whole: String) {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = ccid(try talk.type("a", at: 3, "P").first)
        let next = talk.hear(refusal(440, first))
        try #require(next.count == 1 && isWhole(next[0]) && ccid(next[0]) == first)
        return (talk, next[0])
    }

    /// The connection ends, and on the next one the server sends `texts`.
    private func again(_ talk: inout Transcript, _ texts: String...) -> [String] {
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        var changes = talk.hear("0:auth:user@example.com")
        for text in texts { changes += talk.hear(text) }
        return changes.filter { $0.hasPrefix("0:c:{") }
    }

    @Test("a whole-object change is sent again as it was while nothing newer is known")
    func nothingNewer() throws {
        var (talk, whole) = try sent()
        #expect(again(&talk, "0:c:[]") == [whole])
        talk = try talk.restarted()
        #expect(again(&talk, "0:c:[]") == [whole])
    }

    @Test(
        "a whole-object change is sent without the whole after foreign changes, also after a restart",
        arguments: [false, true])
    func newer(restarts: Bool) throws {
        var (talk, whole) = try sent()
        if restarts { talk = try talk.restarted() }
        let next = again(&talk, "0:c:[\(Self.foreign)]", "0:c:[]")
        try #require(next.count == 1)
        #expect(next[0].contains(#""sv":2,"o":"M","v":{"t":{"o":"d","v":"=4\t+P"}}"#) && !isWhole(next[0]))
        #expect(ccid(next[0]) == ccid(whole), "a server that took it before says so")
        #expect(try talk.local("a") == #"{"t":"RabcP"}"#)
        #expect(talk.hear(refusal(440, ccid(whole))).filter(isWhole).count == 1, "of the newest state, if it has to be")
    }

    @Test("a whole-object change is sent without the whole also after a pause that the server asked for")
    func afterPause() throws {
        var (talk, whole) = try sent()
        #expect(talk.hear(refusal(503, ccid(whole))).isEmpty)
        #expect(talk.hear("0:c:[\(Self.foreign)]").isEmpty)
        talk.now = try #require(talk.machine.deadline)
        let next = talk.sent(talk.machine.tick(now: talk.now)).filter { $0.hasPrefix("0:c:{") }
        #expect(next.count == 1 && next[0].contains(#""sv":2"#) && !isWhole(next[0]))
        #expect(ccid(next.first) == ccid(whole))
    }

    @Test(
        "after an index with a newer state the server decides whether that contains the change",
        arguments: [409, 405])
    func index(code: Int) throws {
        var (talk, whole) = try sent()
        let text = code == 409 ? "RabcP" : "Rabc"
        let next = again(
            &talk, "0:cv:?", #"0:i:{"current":"c9","index":[{"id":"a","v":9,"d":{"t":"\#(text)"}}]}"#, "0:c:[]")
        #expect(next.count == 1 && next[0].contains(#""sv":1"#) && !isWhole(next[0]))
        #expect(ccid(next.first) == ccid(whole))
        let last = talk.hear(refusal(code, ccid(whole))).filter { $0.hasPrefix("0:c:{") }
        #expect(try talk.local("a") == #"{"t":"RabcP"}"#)
        guard code == 405 else { return #expect(talk.machine.unconfirmed(talk.notes) == (0, 0)) }
        #expect(last.count == 1 && last[0].contains(#""sv":9,"o":"M","v":{"t":{"o":"d","v":"=4\t+P"}}"#))
        #expect(ccid(last.first) == ccid(whole) && !isWhole(last[0]))
    }

    @Test("a change refused while a newer state is requested is sent without the whole after a cut")
    func cutWhileWaiting() throws {
        var (talk, whole) = try sent()
        let misfit =
            #"0:c:[{"clientid":"x","cv":"c8","id":"a","o":"M","v":{"t":{"o":"d","v":"=9\t+x"}},"sv":7,"ev":8,"ccids":["q"]}]"#
        #expect(talk.hear(misfit) == ["0:e:a.8"])
        #expect(talk.hear(refusal(405, ccid(whole))).isEmpty)
        let next = again(&talk, "0:c:[]")
        #expect(next.count == 1 && ccid(next.first) == ccid(whole) && !isWhole(next[0]))
        let state = "0:e:a.8\n" + #"{"data":{"t":"Rabc"}}"#
        let more = talk.hear(state) + talk.hear(refusal(405, ccid(whole)))
        let last = more.filter { $0.hasPrefix("0:c:{") }
        #expect(last.count == 1 && last[0].contains(#""sv":8"#) && !isWhole(last[0]))
        #expect(try talk.local("a") == #"{"t":"RabcP"}"#)
    }

    @Test("when others removed the object it is recreated with the edit")
    func removed() throws {
        var (talk, whole) = try sent()
        let gone = #"{"clientid":"x","cv":"c2","id":"a","o":"-","ev":2,"ccids":["q"]}"#
        let next = again(&talk, "0:c:[\(gone)]", "0:c:[]")
        #expect(next.count == 1 && !next[0].contains("\"sv\"") && !isWhole(next[0]))
        #expect(next[0].contains(#""v":{"t":{"o":"+","v":"abcP"}}"#) && ccid(next[0]) == ccid(whole))
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
    }

    @Test("when others made the same edit nothing is left to send")
    func nothingLeft() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = ccid(try talk.type("a", at: 2, "", deleting: 1).first)
        try #require(talk.hear(refusal(440, first)).filter(isWhole).count == 1)
        let same =
            #"{"clientid":"x","cv":"c2","id":"a","o":"M","v":{"t":{"o":"d","v":"=2\t-1"}},"sv":1,"ev":2,"ccids":["q"]}"#
        #expect(again(&talk, "0:c:[\(same)]", "0:c:[]") == [])
        #expect(try talk.local("a") == #"{"t":"ab"}"#)
        #expect(talk.machine.unconfirmed(talk.notes) == (0, 0))
        #expect(try talk.type("a", at: 2, "L").count == 1)
    }

    @Test(
        "when nothing is left of the change, the newer state that waited for its answer is adopted",
        arguments: [false, true])
    func nothingLeftButHeld(typesMore: Bool) throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = ccid(try talk.type("a", at: 2, "", deleting: 1).first)
        try #require(talk.hear(refusal(440, first)).filter(isWhole).count == 1)
        if typesMore { _ = try talk.type("a", at: 0, "L") }
        let same =
            #"0:c:[{"clientid":"x","cv":"c2","id":"a","o":"M","v":{"t":{"o":"d","v":"=2\t-1"}},"sv":1,"ev":2,"ccids":["q"]}]"#
        let misfit =
            #"0:c:[{"clientid":"x","cv":"c8","id":"a","o":"M","v":{"t":{"o":"d","v":"=9\t+x"}},"sv":7,"ev":8,"ccids":["r"]}]"#
        #expect(talk.hear(same, misfit) == ["0:e:a.8"])
        #expect(talk.hear("0:e:a.8\n" + #"{"data":{"t":"abXYZ"}}"#).isEmpty)
        #expect(talk.hear(refusal(503, first)).isEmpty)
        talk.now = try #require(talk.machine.deadline)
        let next = talk.sent(talk.machine.tick(now: talk.now)).filter { $0.hasPrefix("0:c:{") }
        #expect(try talk.local("a") == (typesMore ? #"{"t":"LabXYZ"}"# : #"{"t":"abXYZ"}"#))
        #expect(try talk.ghost("a").version == 8)
        #expect(talk.machine.unconfirmed(talk.notes) == (typesMore ? 1 : 0, 0))
        #expect(next.count == (typesMore ? 1 : 0))
        #expect(next.allSatisfy { $0.contains(#""sv":8,"o":"M","v":{"t":{"o":"d","v":"+L\t=5"}}"#) })
        #expect(next.allSatisfy { ccid($0) != first })
    }

    @Test("edits made since stay after the change, and are sent when it is accepted")
    func typedSince() throws {
        var (talk, whole) = try sent()
        _ = try talk.type("a", at: 4, "L")
        let next = again(&talk, "0:c:[\(Self.foreign)]", "0:c:[]")
        #expect(next.count == 1 && next[0].contains(#""sv":2,"o":"M","v":{"t":{"o":"d","v":"=4\t+P"}}"#))
        let taken =
            #"0:c:[{"clientid":"me","cv":"c3","id":"a","o":"M","v":{"t":{"o":"d","v":"=4\t+P"}},"sv":2,"ev":3,"ccids":["\#(ccid(whole))"]}]"#
        let last = talk.hear(taken)
        #expect(last.count == 1 && last[0].contains(#""sv":3,"o":"M","v":{"t":{"o":"d","v":"=5\t+L"}}"#))
        #expect(ccid(last.first) != ccid(whole) && !isWhole(last[0]))
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
    }

    @Test("a change that was refused with 405 twice is not sent as a whole")
    func refusedTwice() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = ccid(try talk.type("a", at: 3, "P").first)
        #expect(talk.hear("0:c:[\(Self.foreign)]").isEmpty)
        let next = talk.hear(refusal(405, first))
        #expect(next.count == 1 && next[0].contains(#""sv":2"#) && ccid(next[0]) == first)
        #expect(talk.hear(refusal(405, first)) == ["0:i:1:::1000"])
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":2,"d":{"t":"Rabc"}}]}"#)
        let last = talk.hear("0:c:[]")
        #expect(last.count == 1 && last[0].contains(#""sv":2"#) && !isWhole(last[0]) && ccid(last[0]) == first)
    }
}
