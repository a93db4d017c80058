import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

/// A refused change keeps its ccid (docs/decisions/0005): a server that is restored a second time may contain it.
@Suite("A change that one restored server refuses and the next one contains", .nonceWatch)
struct TwoRestoresTests {
    /// The connection ends, and on the next one the server does not know our position and has `index`.
    private func restored(_ talk: inout Transcript, _ index: String) -> [String] {
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:cv:?") == ["0:i:1:::1000"])
        _ = talk.hear(#"0:i:{"current":"c9","index":[\#(index)]}"#)
        return talk.hear("0:c:[]")
    }

    /// `P` after "abc" is sent and has no answer; `L` after that is not sent yet.
    private func sent() throws -> (Transcript, String) {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = try talk.type("a", at: 3, "P")
        _ = try talk.type("a", at: 4, "L")
        return (talk, try #require(first.first))
    }

    @Test(
        "a change that the next server contains (409) is in the text once, and later edits follow it",
        arguments: [405, 404])
    func once(code: Int) throws {
        var (talk, first) = try sent()
        let before = code == 405 ? #"{"id":"a","v":1000,"d":{"t":"ab"}}"# : #"{"id":"b","v":1,"d":{}}"#
        #expect(restored(&talk, before) == [first])
        let fresh = talk.hear(refusal(code, ccid(first)))
        #expect(fresh.count == 1 && fresh[0] != first && ccid(fresh[0]) == ccid(first))
        #expect(try talk.local("a") == (code == 405 ? #"{"t":"abPL"}"# : #"{"t":"abcPL"}"#))
        let other = code == 405 ? "" : #",{"id":"b","v":1001,"d":{}}"#
        let again = restored(&talk, #"{"id":"a","v":2000,"d":{"t":"RabcP"}}\#(other)"#)
        #expect(again == fresh, "only the server knows whether it is inside")
        let next = talk.hear(refusal(409, ccid(first)))
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
        #expect(next.count == 1 && next[0].contains(#""sv":2000,"o":"M","v":{"t":{"o":"d","v":"=5\t+L"}}"#))
        #expect(ccid(next.first) != ccid(first))
    }

    @Test("edits made while a change is refused stay after it, also over a restart")
    func typedSince() throws {
        var (talk, first) = try sent()
        _ = restored(&talk, #"{"id":"a","v":1000,"d":{"t":"ab"}}"#)
        let fresh = talk.hear(refusal(405, ccid(first)))
        _ = try talk.type("a", at: 0, "M")
        talk = try talk.restarted()
        #expect(try talk.local("a") == #"{"t":"MabPL"}"#)
        #expect(restored(&talk, #"{"id":"a","v":2000,"d":{"t":"abcP"}}"#) == fresh)
        let next = talk.hear(refusal(409, ccid(first)))
        #expect(try talk.local("a") == #"{"t":"MabcPL"}"#)
        #expect(next.count == 1 && next[0].contains(#""sv":2000,"o":"M","v":{"t":{"o":"d","v":"+M\t=4\t+L"}}"#))
    }

    @Test("a third server that does not contain the change either applies it once")
    func neither() throws {
        var (talk, first) = try sent()
        _ = restored(&talk, #"{"id":"a","v":1000,"d":{"t":"ab"}}"#)
        _ = talk.hear(refusal(405, ccid(first)))
        _ = restored(&talk, #"{"id":"a","v":2000,"d":{"t":"Xab"}}"#)
        let fresh = talk.hear(refusal(405, ccid(first)))
        #expect(fresh.count == 1 && fresh[0].contains(#""sv":2000,"o":"M","v":{"t":{"o":"d","v":"=3\t-0\t+P"}}"#))
        let next = talk.hear(
            #"0:c:[{"clientid":"me","cv":"c10","id":"a","o":"M","v":{"t":{"o":"d","v":"=3\t+P"}},"sv":2000,"ev":2001,"ccids":["\#(ccid(first))"]}]"#
        )
        #expect(next.count == 1 && next[0].contains(#""sv":2001"#))
        #expect(try talk.local("a") == #"{"t":"XabPL"}"#)
    }

    @Test("a refused change waits for a newer state that is requested", arguments: [405, 440])
    func waits(code: Int) throws {
        var (talk, first) = try sent()
        let misfit =
            #"0:c:[{"clientid":"x","cv":"cv8","id":"a","o":"M","v":{"t":{"o":"d","v":"=9\t+x"}},"sv":7,"ev":8,"ccids":["q"]}]"#
        #expect(talk.hear(misfit) == ["0:e:a.8"])
        #expect(talk.hear(refusal(code, ccid(first))).allSatisfy { !$0.hasPrefix("0:c:") })
        let next = talk.hear(
            "0:e:a.8\n" + #"{"data":{"t":"Rabc"}}"#,
            #"0:i:{"current":"c9","index":[{"id":"a","v":8,"d":{"t":"Rabc"}}]}"#, "0:c:[]")
        let changes = next.filter { $0.hasPrefix("0:c:") }
        #expect(changes.count == 1 && changes[0].contains(#""sv":8,"o":"M","v":{"t":{"o":"d","v":"=4\t+P"}}"#))
        #expect(ccid(changes.first) == ccid(first))
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
    }

    @Test("a removal made after a change replaces it when the change is refused")
    func removed() throws {
        var (talk, first) = try sent()
        _ = try talk.remove("a")
        _ = restored(&talk, #"{"id":"a","v":1000,"d":{"t":"ab"}}"#)
        let next = talk.hear(refusal(405, ccid(first)))
        #expect(next.count == 1 && next[0].contains(#""sv":1000,"o":"-""#) && ccid(next[0]) != ccid(first))
        #expect(try talk.local("a") == nil)
    }

    @Test("a refused change of which nothing is left is not sent; the next edit has its own ccid")
    func nothingLeft() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = try #require(try talk.type("a", at: 2, "", deleting: 1).first)
        _ = try talk.type("a", at: 2, "L")
        #expect(restored(&talk, #"{"id":"a","v":1000,"d":{"t":"ab"}}"#) == [first])
        let next = talk.hear(refusal(405, ccid(first)))
        #expect(next.count == 1 && next[0].contains(#""sv":1000,"o":"M","v":{"t":{"o":"d","v":"=2\t+L"}}"#))
        #expect(ccid(next.first) != ccid(first))
        #expect(try talk.local("a") == #"{"t":"abL"}"#)
    }

    @Test("refusals of an edit of which nothing is left do not count against the next edit")
    func countsEnd() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = try #require(try talk.type("a", at: 2, "", deleting: 1).first)
        _ = restored(&talk, #"{"id":"a","v":1000,"d":{"t":"ab"}}"#)
        #expect(talk.hear(refusal(405, ccid(first))).isEmpty)
        talk = try talk.restarted()
        _ = talk.connect()
        _ = talk.hear("0:auth:user@example.com", "0:c:[]")
        let removal = try talk.remove("a")
        #expect(removal.count == 1 && removal[0].contains(#""sv":1000,"o":"-""#), "it names its version")
    }

    @Test(
        "405 before the index is read: the change is made from the index's state each time, at last as a whole",
        arguments: [(5, "Xabc"), (6, "XYabc")])
    func beforeTheIndex(newest: (Int, String)) throws {
        var (talk, first) = try sent()
        var last = [first]
        let plain = Array(repeating: (5, "Xabc", false), count: 3)
        let pages = plain + [(newest.0, newest.1, true)]
        for (version, text, isWhole) in pages {
            #expect(talk.hear(refusal(405, ccid(last.first))) == ["0:i:1:::1000"])
            let index = #"{"id":"a","v":\#(version),"d":{"t":"\#(text)"}}"#
            _ = talk.hear(#"0:i:{"current":"c9","index":[\#(index)]}"#)
            last = talk.hear("0:c:[]")
            #expect(last.count == 1 && last[0].contains(#""sv":\#(version),"o":"M""#))
            #expect(ccid(last.first) == ccid(first))
            #expect(last.first?.contains(#""d":{"t":"\#(text)P"}"#) == isWhole, "with all that others did")
            #expect(try talk.local("a") == #"{"t":"\#(text)PL"}"#)
        }
    }

    @Test("a removal while a refused change waits for the newest state ends the change")
    func removedWaiting() throws {
        var (talk, first) = try sent()
        let misfit =
            #"0:c:[{"clientid":"x","cv":"cv8","id":"a","o":"M","v":{"t":{"o":"d","v":"=9\t+x"}},"sv":7,"ev":8,"ccids":["q"]}]"#
        #expect(talk.hear(misfit) == ["0:e:a.8"])
        #expect(talk.hear(refusal(405, ccid(first))).isEmpty)
        #expect(try talk.remove("a").isEmpty)
        let gone = #"0:c:[{"clientid":"x","cv":"cv9","id":"a","o":"-","ev":9,"ccids":["r"]}]"#
        #expect(talk.hear(gone).isEmpty, "it is gone already")
        #expect(try talk.local("a") == nil)
        #expect(talk.machine.unconfirmed(talk.notes) == (0, 0))
    }

    @Test("a removal made before a refused change is sent again: neither is sent, and the object stays removed")
    func removedBefore() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#), ("b", 1, #"{"t":"b"}"#)])
        let first = ccid(try talk.type("a", at: 3, "P").first)
        let other = ccid(try talk.type("b", at: 1, "x").first)
        #expect(talk.hear(#"0:c:[{"clientid":"me","id":"b","error":503,"ccids":["\#(other)"]}]"#).isEmpty)
        #expect(talk.hear(#"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"-","ev":2,"ccids":["q"]}]"#).isEmpty)
        #expect(talk.hear(refusal(404, first)).isEmpty, "the server asked for a pause")
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
        #expect(try talk.remove("a").isEmpty)
        talk.now = try #require(talk.machine.deadline)
        let next = talk.sent(talk.machine.tick(now: talk.now))
        #expect(next.filter { $0.contains(#""id":"a""#) } == [])
        #expect(next.contains { ccid($0) == other })
        #expect(try talk.local("a") == nil)
        #expect(talk.machine.unconfirmed(talk.notes).edited == 1, "that of b alone")
    }

    @Test("a removal made during an index scan replaces the refused change, and names its version")
    func removedDuringScan() throws {
        var (talk, first) = try sent()
        #expect(talk.hear(refusal(405, ccid(first))) == ["0:i:1:::1000"])
        #expect(try talk.remove("a").isEmpty)
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":5,"d":{"t":"Xabc"}}]}"#)
        let next = talk.hear("0:c:[]")
        #expect(next.count == 1 && next[0].contains(#""sv":5,"o":"-""#) && ccid(next[0]) != ccid(first))
        #expect(try talk.local("a") == nil)
    }
}
