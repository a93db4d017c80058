import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

/// Values of others that an edit of this device replaces, in an open bucket.
@Suite("Reports of values that gave way in open buckets", .nonceWatch)
struct GaveWayTests {
    private func foreign(_ diff: String, op: String = "M") -> String {
        let value = op == "M" ? #","v":\#(diff),"sv":1"# : ""
        return #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"\#(op)"\#(value),"ev":2,"ccids":["q2"]}]"#
    }

    /// The conflicts that are reported when `mine` waits here and `theirs` arrives.
    private func reported(_ base: String, mine: String, theirs: String, op: String = "M") throws -> [ConflictReport] {
        var talk = try Transcript(.open)
        _ = talk.live([("a", 1, base)])
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = try talk.set("a", mine)
        _ = talk.connect()
        let actions = talk.actions(["0:auth:user@example.com", foreign(theirs, op: op), "0:c:[]"])
        return actions.compactMap { action in
            if case .event(_, .conflict(let report)) = action { report } else { nil }
        }
    }

    @Test("the losing one of two tags added at once is reported")
    func added() throws {
        let reports = try reported("{}", mine: #"{"tag":"mine"}"#, theirs: #"{"tag":{"o":"+","v":"theirs"}}"#)
        #expect(reports.count == 1)
        #expect(reports.first?.path == ["tag"])
        #expect(reports.first?.losing == "theirs" && reports.first?.winning == "mine")
    }

    @Test("a value replaced by both, also inside an object, and a removed member that others changed are reported")
    func replaced() throws {
        let number = try reported(
            #"{"o":{"n":1}}"#, mine: #"{"o":{"n":2}}"#, theirs: #"{"o":{"o":"O","v":{"n":{"o":"r","v":3}}}}"#)
        #expect(number.map(\.path) == [["o", "n"]] && number.first?.losing == 3 && number.first?.winning == 2)
        let removed = try reported(#"{"n":1}"#, mine: "{}", theirs: #"{"n":{"o":"r","v":3}}"#)
        #expect(removed.map(\.path) == [["n"]] && removed.first?.losing == 3 && removed.first?.winning == nil)
    }

    @Test("a list set as a whole over one that others have added to is reported")
    func list() throws {
        let reports = try reported(
            #"{"tags":["x"]}"#, mine: #"{"tags":["x","a"]}"#, theirs: #"{"tags":{"o":"r","v":["x","b"]}}"#)
        #expect(reports.map(\.path) == [["tags"]])
        #expect(reports.first?.losing == ["x", "b"] && reports.first?.winning == ["x", "a"])
    }

    @Test("a removal by others that gives way to an edit is reported")
    func removal() throws {
        let reports = try reported(#"{"n":1}"#, mine: #"{"n":2}"#, theirs: "", op: "-")
        #expect(reports.map(\.path) == [[]] && reports.first?.losing == nil)
        #expect(reports.first?.winning == ["n": 2])
    }

    @Test(
        "a merge, equal values and other members are not reported",
        arguments: [
            (#"{"t":"a"}"#, #"{"t":"ab"}"#, #"{"t":{"o":"d","v":"+c\t=1"}}"#),
            (#"{"n":1}"#, #"{"n":2}"#, #"{"n":{"o":"r","v":2}}"#),
            (#"{"n":1}"#, #"{"n":2}"#, #"{"m":{"o":"+","v":2}}"#),
            (#"{"n":1}"#, #"{"n":1,"m":1}"#, #"{"n":{"o":"r","v":2}}"#),
        ])
    func silent(base: String, mine: String, theirs: String) throws {
        #expect(try reported(base, mine: mine, theirs: theirs).isEmpty)
    }

    @Test("an undelivered conflict is kept for the next reader")
    func kept() throws {
        var talk = try Transcript(.open)
        _ = talk.live([("a", 1, "{}")])
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = try talk.set("a", #"{"tag":"mine"}"#)
        _ = talk.connect()
        _ = talk.hear("0:auth:user@example.com", foreign(#"{"tag":{"o":"+","v":"theirs"}}"#), "0:c:[]")
        talk = try talk.restarted()
        let events = try talk.machine.takeUndelivered(talk.notes, now: talk.now).0
        guard case .conflict(let report)? = events.first else {
            Issue.record("nothing was kept: \(events)")
            return
        }
        #expect(events.count == 1 && report.losing == "theirs")
    }
}
