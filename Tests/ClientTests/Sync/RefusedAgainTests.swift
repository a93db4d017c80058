import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

/// Changes that are refused again, or decided while they wait to be rebased (docs/decisions/0005).
@Suite("A refused change that is refused again, confirmed, or removed", .nonceWatch)
struct RefusedAgainTests {
    /// Cannot be applied to the known state: version 8 is requested.
    private static let misfit =
        #"0:c:[{"clientid":"x","cv":"cv8","id":"a","o":"M","v":{"t":{"o":"d","v":"=9\t+x"}},"sv":7,"ev":8,"ccids":["q"]}]"#

    /// `P` after "abc" is sent and has no answer.
    private func sent() throws -> (Transcript, String) {
        var talk = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let first = ccid(try talk.type("a", at: 3, "P").first)
        return (talk, first)
    }

    private func changes(_ texts: [String]) -> [String] { texts.filter { $0.hasPrefix("0:c:{") } }

    @Test(
        "a change confirmed while it waits for the newest state is contained in it, and is not sent again",
        arguments: [8, 9])
    func confirmedWaiting(applied: Int) throws {
        var (talk, first) = try sent()
        #expect(talk.hear(Self.misfit) == ["0:e:a.8"])
        #expect(changes(talk.hear(refusal(405, first))) == [])
        let done =
            #"0:c:[{"clientid":"me","cv":"cv9","id":"a","o":"M","v":{"t":{"o":"d","v":"=9\t+P"}},"sv":\#(applied - 1),"ev":\#(applied),"ccids":["\#(first)"]}]"#
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 0))
        _ = talk.hear(done)
        let next = talk.hear("0:e:a.\(applied)\n" + #"{"data":{"t":"RabcP"}}"#)
        #expect(changes(next) == [])
        #expect(try talk.local("a") == #"{"t":"RabcP"}"#, "once")
        #expect(talk.machine.unconfirmed(talk.notes) == (0, 0))
        #expect(changes(try talk.type("a", at: 5, "L")).count == 1, "nothing waits any more")
    }

    @Test("after 409 in the wait the requested state contains the change, and later edits are rebased onto it")
    func knownWaiting() throws {
        var (talk, first) = try sent()
        _ = try talk.type("a", at: 4, "L")
        #expect(talk.hear(Self.misfit) == ["0:e:a.8"])
        #expect(changes(talk.hear(refusal(405, first))) == [])
        #expect(changes(talk.hear(refusal(409, first))) == [])
        let next = changes(
            talk.hear(
                "0:e:a.8\n" + #"{"data":{"t":"RabcP"}}"#,
                #"0:i:{"current":"c9","index":[{"id":"a","v":8,"d":{"t":"RabcP"}}]}"#, "0:c:[]"))
        #expect(next.count == 1 && next[0].contains(#""sv":8,"o":"M","v":{"t":{"o":"d","v":"=5\t+L"}}"#))
        #expect(ccid(next.first) != first)
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
    }

    @Test("after five 404 the edit is kept and reported, and the next edit recreates the object as a whole")
    func fifthNotFound() throws {
        var (talk, first) = try sent()
        for round in 1...4 {
            let again = talk.hear(refusal(404, first))
            #expect(again.count == 1 && ccid(again.first) == first, "round \(round)")
            #expect(again.first?.contains("\"sv\"") == false, "the object is made, not edited")
        }
        let last = talk.events(refusal(404, first))
        let isReported = last.contains {
            if case .refused(let edit) = $0 { edit.key == "a" && edit.error.number == 404 } else { false }
        }
        #expect(isReported)
        #expect(try talk.ghost("a").json == nil, "the server does not have it")
        #expect(try talk.local("a") == #"{"t":"abcP"}"#, "the edit is kept")
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 1))
        let next = changes(try talk.type("a", at: 4, "L"))
        #expect(next.count == 1 && next[0].contains(#"{"t":{"o":"+","v":"abcPL"}}"#) && !next[0].contains("\"sv\""))
        let id = ccid(next.first)
        #expect(id != first)
        #expect(changes(talk.hear(refusal(404, id))).count == 1, "its own rounds start again")
    }

    @Test("404 after four other refusals gives up, too: the object counts as gone, and the edit is kept")
    func lastIsNotFound() throws {
        var (talk, first) = try sent()
        for _ in 1...4 { #expect(changes(talk.hear(refusal(440, first))).count == 1) }
        #expect(changes(talk.hear(refusal(404, first))) == [])
        #expect(try talk.ghost("a").json == nil, "the server does not have it")
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 1))
        let next = changes(try talk.type("a", at: 4, "L"))
        #expect(next.count == 1 && next[0].contains(#"{"t":{"o":"+","v":"abcPL"}}"#) && !next[0].contains("\"sv\""))
    }

    @Test("refusals of an older form are not counted against the one that is made from the requested state")
    func notCountedWaiting() throws {
        var (talk, first) = try sent()
        for _ in 1...4 { #expect(changes(talk.hear(refusal(440, first))).count == 1) }
        #expect(talk.hear(Self.misfit) == ["0:e:a.8"])
        #expect(changes(talk.hear(refusal(440, first))) == [], "not given up: something newer is asked for")
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 0))
        let fresh = changes(talk.hear("0:e:a.8\n" + #"{"data":{"t":"Rabc"}}"#))
        #expect(fresh.count == 1 && ccid(fresh.first) == first && fresh[0].contains("\"sv\":8"))
        #expect(fresh.first?.contains("\"d\":") == false, "as a whole it would overwrite what others did")
        for _ in 1...3 { #expect(changes(talk.hear(refusal(440, first))).count == 1) }
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 0))
        _ = talk.hear(refusal(440, first))
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 1), "and in the end it is given up")
    }

    @Test("refusals of a change that is accepted at last do not count against later edits")
    func takenAtLast() throws {
        var (talk, first) = try sent()
        _ = try talk.type("a", at: 4, "L")
        for _ in 1...3 { #expect(changes(talk.hear(refusal(440, first))).count == 1) }
        let next = changes(
            talk.hear(
                #"0:c:[{"clientid":"me","cv":"c2","id":"a","o":"M","v":{"t":{"o":"d","v":"=3\t+P"}},"sv":1,"ev":2,"ccids":["\#(first)"]}]"#
            ))
        #expect(next.count == 1 && !next[0].contains(#""d":{"t":"#), "in the common form again")
        for _ in 1...4 { #expect(changes(talk.hear(refusal(440, ccid(next.first)))).count == 1) }
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 0))
    }

    @Test("a removal after a change refused with 404 leaves nothing, and the refusal does not count for a new object")
    func removalLeavesNothing() throws {
        var (talk, first) = try sent()
        #expect(try talk.remove("a").isEmpty)
        #expect(changes(talk.hear(refusal(404, first))) == [])
        #expect(try talk.local("a") == nil)
        #expect(talk.machine.unconfirmed(talk.notes) == (0, 0))
        let made = changes(try talk.set("a", #"{"t":"new"}"#))
        #expect(made.count == 1)
        let id = ccid(made.first)
        for _ in 1...4 { #expect(changes(talk.hear(refusal(404, id))).count == 1) }
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 0), "not given up early")
    }

    @Test("a change applied by one server and refused with 404 by a restored one is sent again")
    func appliedElsewhere() throws {
        var (talk, first) = try sent()
        let applied =
            #"0:c:[{"clientid":"me","cv":"c6","id":"a","o":"M","v":{"t":{"o":"d","v":"=9\t+P"}},"sv":5,"ev":6,"ccids":["\#(first)"]}]"#
        #expect(talk.hear(applied) == ["0:e:a.6"])
        var sent = [String]()
        for index in ["", #"{"id":"a","v":7,"d":{"t":"xabc"}}"#] {
            _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
            _ = talk.connect()
            #expect(talk.hear("0:auth:user@example.com", "0:cv:?") == ["0:i:1:::1000"])
            _ = talk.hear(#"0:i:{"current":"c9","index":[\#(index)]}"#)
            sent = changes(talk.hear("0:c:[]"))
            #expect(sent.count == 1 && ccid(sent.first) == first)
            if index.isEmpty { sent = changes(talk.hear(refusal(404, first))) }
        }
        #expect(sent.count == 1, "this server has not applied it")
        #expect(try talk.local("a")?.contains("P") == true)
        #expect(talk.machine.unconfirmed(talk.notes).edited == 1)
    }
}
