import Testing

@testable import ThicketSimulation

@Suite("Changes that must not delete anything")
struct InsertionsTests {
    private static func sent(_ forms: [Bool]) -> Insertions {
        var insertions: Insertions = Insertions()
        for form: Bool in forms { insertions.sent("a", insertsOnly: form) }
        return insertions
    }

    @Test("a change that inserts in every form in which it was sent")
    func insertions() {
        #expect(Self.sent([true]).isInsertion("a"))
        #expect(Self.sent([true, true]).isInsertion("a"))
        #expect(!Self.sent([true]).isInsertion("b"), "of what was not sent nothing is known")
    }

    @Test("not one that deletes in one of its forms", arguments: [[false], [true, false], [false, true]])
    func others(forms: [Bool]) { #expect(!Self.sent(forms).isInsertion("a")) }
}
