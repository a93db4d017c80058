import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

/// A store can keep steps in place of the whole only if the machine names them.
@Suite("Steps that a turn gives to the store", .nonceWatch)
struct StepsTests {
    private func typing(_ kind: BucketKind) throws -> Transcript {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 3, #"{"t":"A text","n":1}"#)])
        return talk
    }

    private func newest(_ talk: Transcript) throws -> EntityWrite {
        #expect(talk.store.newest.count == 1)
        return try #require(talk.store.newest.first)
    }

    @Test(
        "an acknowledged keystroke is one step of the ghost, and nothing else about it is written",
        arguments: BucketKind.allCases)
    func acknowledgement(kind: BucketKind) throws {
        var talk = try typing(kind)
        let id = ccid(try talk.type("a", at: 6, "s").last)
        #expect(try newest(talk).parts == .edits)
        let diff = #""v":{"t":{"o":"d","v":"=6\t+s"}}"#
        _ = talk.hear(#"0:c:[{"id":"a","o":"M","sv":3,"ev":4,"cv":"c9",\#(diff),"ccids":["\#(id)"],"clientid":"x"}]"#)
        let write = try newest(talk)
        #expect(write.parts == [.ghost, .edits])
        #expect(write.ghostSteps?.map(\.version) == [4])
        #expect(write.record.edits == EditState())
        #expect(try talk.ghost("a").json == #"{"t":"A texts","n":1}"#)
        #expect(try talk.local("a") == #"{"t":"A texts","n":1}"#)
    }

    /// Open only: the server of a sealed bucket does not transform what it cannot read.
    @Test("the server's form of our keystroke is applied, not what we typed")
    func rebasedAcknowledgement() throws {
        var talk = try typing(.open)
        let id = ccid(try talk.type("a", at: 6, "s").last)
        let diff = #""v":{"t":{"o":"d","v":"+Not \t=6\t+s"},"n":{"o":"r","v":2}}"#
        _ = talk.hear(#"0:c:[{"id":"a","o":"M","sv":3,"ev":4,"cv":"c9",\#(diff),"ccids":["\#(id)"],"clientid":"x"}]"#)
        #expect(try newest(talk).ghostSteps?.count == 1)
        #expect(try talk.ghost("a").json == #"{"t":"Not A texts","n":2}"#)
        #expect(try talk.local("a") == #"{"t":"Not A texts","n":2}"#)
    }

    @Test("foreign changes are steps, also several in one turn", arguments: BucketKind.allCases)
    func foreign(kind: BucketKind) throws {
        var talk = try typing(kind)
        func change(_ version: Int, _ text: String) -> String {
            let diff = #""v":{"t":{"o":"d","v":"\#(text)"}}"#
            let names = #""ccids":["f\#(version)"],"clientid":"y""#
            return #"{"id":"a","o":"M","sv":\#(version - 1),"ev":\#(version),"cv":"c\#(version)",\#(diff),\#(names)}"#
        }
        _ = talk.hear("0:c:[\(change(4, #"=6\t+s"#)),\(change(5, #"=7\t+!"#))]")
        let write = try newest(talk)
        #expect(write.parts == .ghost)
        #expect(write.ghostSteps?.map(\.version) == [4, 5])
        #expect(try talk.local("a") == #"{"t":"A texts!","n":1}"#)
    }

    @Test("each offline keystroke is one step, from the second on", arguments: BucketKind.allCases)
    func offline(kind: BucketKind) throws {
        var talk = try typing(kind)
        _ = talk.machine.goOffline(.requested, now: talk.now)
        _ = try talk.type("a", at: 6, "s")
        #expect(try newest(talk).laterSteps == nil, "the first is the whole")
        for place in 7..<10 {
            _ = try talk.type("a", at: place, "!")
            let write = try newest(talk)
            #expect(write.parts == .edits)
            #expect(write.laterSteps?.count == 1)
        }
        #expect(try talk.local("a") == #"{"t":"A texts!!!","n":1}"#)
    }

    @Test("a recreated or removed object is written as a whole", arguments: BucketKind.allCases)
    func whole(kind: BucketKind) throws {
        var talk = try typing(kind)
        _ = talk.hear(#"0:c:[{"id":"a","o":"-","ev":4,"cv":"c4","ccids":["f"],"clientid":"y"}]"#)
        #expect(try newest(talk).ghostSteps == nil)
        _ = talk.hear(
            #"0:c:[{"id":"a","o":"M","ev":5,"cv":"c5","v":{"t":{"o":"+","v":"B"}},"ccids":["g"],"clientid":"y"}]"#)
        #expect(try newest(talk).ghostSteps == nil)
        #expect(try talk.local("a") == #"{"t":"B"}"#)
    }
}
