import Testing
import ThicketProtocol

@Suite struct ClientMessageTests {
    @Test("a change keeps its diff as it came")
    func change() throws {
        let message: String = #"0:c:{"id":"a.b","o":"M","ccid":"c-1","sv":3,"v":{"n":{"o":"I","v":1.00}}}"#
        guard case .channel(0, .change(let change)) = try client(message) else {
            Issue.record("not a change")
            return
        }
        #expect(change.key == "a.b")
        #expect(change.ccid == "c-1")
        #expect(change.sv == 3)
        #expect(change.operation == .modify)
        #expect(change.problems.isEmpty)
        #expect(change.diff?.bytes == Array(#"{"n":{"o":"I","v":1.00}}"#.utf8))
        #expect(try client(message).text == message)
    }
}
