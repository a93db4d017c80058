import Testing

@testable import ThicketSimulation

/// The cases that the check passes are as much a rule as its findings: decisions 0005 and 0011.
@Suite("Texts after restores of an open bucket")
struct TypedTextTests {
    private static let a: Unicode.Scalar = "a"
    private static let b: Unicode.Scalar = "b"

    /// `a` was applied, its author was not notified, and the server was restored to a state before it.
    private static func goneBack() -> TypedText {
        var text = TypedText()
        text.type([a, b])
        text.restored(to: [b.value])
        return text
    }

    @Test(
        "a letter that the backup lacks may be in the text once or not at all",
        arguments: [("b", true), ("ab", true), ("aab", false), ("a", false), ("bb", false), ("bc", false)])
    func once(shown: String, isRight: Bool) {
        #expect((Self.goneBack().flaw(in: shown, forgivesReturns: false) == nil) == isRight)
    }

    @Test("a letter that the backup has must be in the text exactly once")
    func certain() {
        var text = TypedText()
        text.type([Self.a, Self.b])
        text.restored(to: [Self.a.value, Self.b.value])
        #expect(text.flaw(in: "ab", forgivesReturns: false) == nil)
        #expect(text.flaw(in: "b", forgivesReturns: false) == "'a' was typed and is there 0 times")
        #expect(text.flaw(in: "aab", forgivesReturns: false) == "'a' was typed and is there 2 times")
    }

    @Test(
        "a second restore that brings a letter back while its author sends it does not double it",
        arguments: [("b", true), ("ab", true), ("aab", false)])
    func twice(shown: String, isRight: Bool) {
        var text: TypedText = Self.goneBack()
        text.restored(to: [Self.a.value, Self.b.value])
        #expect((text.flaw(in: shown, forgivesReturns: false) == nil) == isRight)
    }
}
