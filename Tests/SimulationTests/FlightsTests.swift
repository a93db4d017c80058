import Testing
import ThicketSimulation

@Suite("Changes in flight, as the simulation watches them")
struct FlightsTests {
    private static let operation = #""o":"M","v":{"d":{"o":"L","v":{"0":{"o":"+","v":"AQI"}}}}"#
    private static let compaction =
        #""o":"M","v":{"s":{"o":"O","v":{"4":{"o":"+","v":"AQE"},"0":{"o":"-"}}},"d":{"o":"L","v":{"0":{"o":"-"}}}}"#

    private static func sent(_ flights: inout InFlightChanges, _ ccid: String, _ change: String) -> String? {
        flights.sent(Array(#"0:c:{"id":"k","ccid":"\#(ccid)","sv":5,\#(change)}"#.utf8))
    }

    @Test("a compaction may be in flight beside an operation of the same object")
    func compactionBesideOperation() {
        var flights = InFlightChanges()
        #expect(Self.sent(&flights, "a", Self.operation) == nil)
        #expect(Self.sent(&flights, "b", Self.compaction) == nil)
        #expect(Self.sent(&flights, "a", Self.operation) == nil, "sent again")
    }

    @Test("two operations of one object are never in flight, nor two compactions")
    func neverTwo() {
        for change in [Self.operation, Self.compaction] {
            var flights = InFlightChanges()
            #expect(Self.sent(&flights, "a", change) == nil)
            #expect(Self.sent(&flights, "b", change) != nil)
        }
    }

    @Test("the removal of an object decides its changes in flight; another change does not")
    func goneObject() {
        let other = #"0:c:[{"clientid":"x","cv":"\#(String(repeating: "0", count: 32))","id":"k","#
        var flights = InFlightChanges()
        #expect(Self.sent(&flights, "a", Self.operation) == nil)
        flights.received(Array((other + #""o":"M","v":{"t":{"o":"+","v":1}},"sv":5,"ev":6,"ccids":["y"]}]"#).utf8))
        #expect(Self.sent(&flights, "b", Self.operation) != nil)
        flights = InFlightChanges()
        #expect(Self.sent(&flights, "a", Self.operation) == nil)
        flights.received(Array((other + #""o":"-","ev":6,"ccids":["y"]}]"#).utf8))
        #expect(Self.sent(&flights, "b", Self.operation) == nil)
    }

    /// One page, the last.
    private static func page(_ ids: String...) -> [UInt8] {
        let entries = ids.map { #"{"id":"\#($0)","v":5,"d":{}}"# }.joined(separator: ",")
        return Array(#"0:i:{"current":"\#(String(repeating: "0", count: 32))","index":[\#(entries)]}"#.utf8)
    }

    @Test("an index that was requested later and lacks the object decides like a removal")
    func goneFromIndex() {
        var flights = InFlightChanges()
        #expect(Self.sent(&flights, "a", #""o":"-""#) == nil)
        #expect(flights.sent(Array("0:i:1:::2".utf8)) == nil)
        flights.received(Self.page("other"))
        #expect(Self.sent(&flights, "b", Self.operation) == nil)
        #expect(Self.sent(&flights, "c", Self.operation) != nil, "only what was in flight before")
    }

    @Test("an index decides nothing about listed objects, creations, edits of open objects, or later changes")
    func indexDecidesNothingElse() {
        var listed = InFlightChanges()
        #expect(Self.sent(&listed, "a", #""o":"-""#) == nil)
        #expect(listed.sent(Array("0:i:1:::2".utf8)) == nil)
        listed.received(Self.page("k"))
        #expect(Self.sent(&listed, "b", Self.operation) != nil)
        var made = InFlightChanges()
        #expect(made.sent(Array(#"0:c:{"id":"k","ccid":"a","o":"M","v":{}}"#.utf8)) == nil)
        #expect(made.sent(Array("0:i:1:::2".utf8)) == nil)
        made.received(Self.page("other"))
        #expect(Self.sent(&made, "b", Self.operation) != nil)
        var edit = InFlightChanges()
        #expect(Self.sent(&edit, "a", #""o":"M","v":{"t":{"o":"r","v":1}}"#) == nil)
        #expect(edit.sent(Array("0:i:1:::2".utf8)) == nil)
        edit.received(Self.page("other"))
        #expect(Self.sent(&edit, "b", #""o":"M","v":{"t":{"o":"r","v":2}}"#) != nil, "it keeps its ccid")
        var since = InFlightChanges()
        #expect(since.sent(Array("0:i:1:::2".utf8)) == nil)
        #expect(Self.sent(&since, "a", #""o":"-""#) == nil)
        since.received(Self.page("other"))
        #expect(Self.sent(&since, "b", Self.operation) != nil)
        var unasked = InFlightChanges()
        #expect(Self.sent(&unasked, "a", #""o":"-""#) == nil)
        unasked.received(Self.page("other"))
        #expect(Self.sent(&unasked, "b", Self.operation) != nil)
    }
}
