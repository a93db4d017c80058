import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

/// A refusal comes after the changes of its group, so its reason may no longer hold (docs/decisions/0005).
@Suite("Refusals that arrive after a newer change", .nonceWatch)
struct RecreatedTests {
    private let gone = #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"-","ev":2,"ccids":["q"]}]"#

    /// Another client recreates `a` with one key.
    private func creation(_ key: String, _ json: String, ev: Int = 3) -> String {
        #"0:c:[{"clientid":"y","cv":"cv\#(ev)","id":"a","o":"M","v":{"\#(key)":{"o":"+","v":\#(json)}},"ev":\#(ev),"ccids":["r\#(ev)"]}]"#
    }
    private func isAtRest(_ talk: Transcript) -> Bool {
        talk.machine.isSynced(talk.notes) && talk.machine.unconfirmed(talk.notes) == (0, 0)
    }

    @Test("an edit is rebased onto the recreated object, on its version")
    func edit() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"ab","n":1}"#)])
        let id = ccid(try talk.type("a", at: 2, "c").first)
        #expect(talk.hear(gone, creation("m", "5")).isEmpty)
        let next = talk.hear(refusal(404, id))
        #expect(next.count == 1 && ccid(next.first) == id)
        #expect(next.first?.contains(#""sv":3,"o":"M""#) == true)
        #expect(next.first?.contains(#""v":{"t":{"o":"+","v":"abc"},"n":{"o":"+","v":1}}"#) == true)
        #expect(try talk.local("a") == #"{"m":5,"t":"abc","n":1}"#)
        _ = talk.hear(
            #"0:c:[{"clientid":"me","cv":"cv4","id":"a","o":"M","v":{"t":{"o":"+","v":"abc"},"n":{"o":"+","v":1}},"sv":3,"ev":4,"ccids":["\#(ccid(next.first))"]}]"#
        )
        #expect(try talk.ghost("a") == (4, #"{"m":5,"t":"abc","n":1}"#))
        #expect(isAtRest(talk))
    }

    @Test(
        "an edit and a removal after it concern the removed object: the recreated one stays, in either order",
        arguments: [true, false])
    func removedLater(isRefusedFirst: Bool) throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"ab"}"#)])
        let id = ccid(try talk.type("a", at: 2, "c").first)
        #expect(try talk.remove("a").isEmpty, "one change is in flight")
        let (first, second) =
            isRefusedFirst ? (refusal(404, id), creation("m", "5")) : (creation("m", "5"), refusal(404, id))
        #expect(talk.hear(gone, first).isEmpty)
        #expect(try talk.local("a") == nil)
        let reported = talk.actions([second])
        #expect(talk.sent(reported).isEmpty)
        #expect(reported.contains { if case .event(_, .changed(let change)) = $0 { change.key == "a" } else { false } })
        #expect(try talk.local("a") == #"{"m":5}"#)
        #expect(try talk.ghost("a") == (3, #"{"m":5}"#))
        #expect(try talk.machine.keys(talk.notes, after: nil, limit: 9).map(\.text) == ["a"])
        #expect(isAtRest(talk))
    }

    @Test("an edit that the recreated object already contains changes nothing, and the object stays")
    func sameEdit() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"ab"}"#)])
        let id = ccid(try talk.type("a", at: 2, "c").first)
        #expect(talk.hear(gone, creation("t", #""abc""#)).isEmpty)
        _ = talk.hear(refusal(404, id))
        #expect(try talk.ghost("a") == (3, #"{"t":"abc"}"#))
        #expect(try talk.local("a") == #"{"t":"abc"}"#)
    }

    @Test("a removal does not hit an object that was recreated after an index", arguments: [404, 412])
    func removal(code: Int) throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"ab"}"#)])
        let first = try talk.remove("a")
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        _ = talk.hear("0:auth:user@example.com", "0:cv:?")
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":3,"d":{"t":"old"}}]}"#)
        #expect(talk.hear("0:c:[]") == first)
        let later = #"0:c:[{"clientid":"x","cv":"c10","id":"a","o":"-","ev":4,"ccids":["q"]}]"#
        #expect(talk.hear(later, creation("m", "5", ev: 5), refusal(code, ccid(first.first))).isEmpty)
        #expect(try talk.local("a") == #"{"m":5}"#)
        #expect(try talk.ghost("a") == (5, #"{"m":5}"#))
        #expect(isAtRest(talk))
    }

    @Test("a removal is done when the object was not recreated", arguments: [404, 412])
    func removed(code: Int) throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"ab"}"#)])
        let first = try talk.remove("a")
        #expect(talk.hear(refusal(code, ccid(first.first)), gone).isEmpty)
        #expect(try talk.local("a") == nil)
        #expect(try talk.ghost("a") == (2, nil))
        #expect(isAtRest(talk))
    }

    @Test("a recreated object that could not be read is requested, and the edit continues in it")
    func asked() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"ab"}"#)])
        let id = ccid(try talk.type("a", at: 2, "c").first)
        let unreadable = creation("m", "5").replacing(#""o":"+""#, with: #""o":"?""#)
        #expect(talk.hear(gone, unreadable) == ["0:e:a.3"])
        #expect(talk.hear(refusal(404, id)).isEmpty)
        let next = talk.hear("0:e:a.3\n" + #"{"data":{"m":5}}"#)
        #expect(next.count == 1 && next.first?.contains(#""sv":3,"o":"M""#) == true)
        #expect(try talk.local("a") == #"{"m":5,"t":"abc"}"#)
    }

    /// Servers that answer 404 before they send the removal: one more answer, and nothing is lost.
    @Test("after a foreign edit a change refused with 404 is sent on its version; a second 404 recreates the object")
    func refusedAgain() throws {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"ab"}"#)])
        let id = ccid(try talk.type("a", at: 2, "c").first)
        let next = talk.hear(
            #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":{"n":{"o":"+","v":1}},"sv":1,"ev":2,"ccids":["q"]}]"#,
            refusal(404, id))
        #expect(next.count == 1 && next.first?.contains(#""sv":2,"o":"M","v":{"t":{"o":"d","v":"=2\t+c"}}"#) == true)
        let again = talk.hear(refusal(404, ccid(next.first)))
        #expect(again.count == 1 && again.first?.contains("\"sv\"") == false)
        #expect(again.first?.contains(#""v":{"t":{"o":"+","v":"abc"},"n":{"o":"+","v":1}}"#) == true)
    }
}
