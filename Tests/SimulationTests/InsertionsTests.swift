import Testing

@testable import ThicketSimulation

@Suite("Changes that must not delete anything")
struct InsertionsTests {
    private static func sent(_ forms: [Bool]) -> Insertions {
        var insertions = Insertions()
        for form in forms { insertions.sent("a", insertsOnly: form) }
        return insertions
    }

    @Test("a change that inserts in every form in which it was sent is an insertion")
    func insertions() {
        #expect(Self.sent([true]).isInsertion("a"))
        #expect(Self.sent([true, true]).isInsertion("a"))
        #expect(!Self.sent([true]).isInsertion("b"), "a change that was not sent is unknown")
    }

    @Test(
        "a change that deletes in one of its forms is not an insertion",
        arguments: [[false], [true, false], [false, true]])
    func others(forms: [Bool]) { #expect(!Self.sent(forms).isInsertion("a")) }
}
