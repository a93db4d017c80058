import Testing
import ThicketProtocol

/// One author deletes a character and types in its place; the other has typed directly after that character.
@Suite("Typing on both sides of a gap")
struct GapTests {
    static func delta(_ text: String) throws -> TextDelta { try TextDelta(parsing: text) }

    static func meet(_ a: TextDelta, _ b: TextDelta, _ text: String, _ tie: TieBreak) throws -> (String, String) {
        let one = try TextDelta.transform(a, over: b, tie: tie).apply(to: b.apply(to: text))
        let two = try TextDelta.transform(b, over: a, tie: tie.opposite).apply(to: a.apply(to: text))
        return (one, two)
    }

    @Test(
        "in one change: a character's replacement stays before the text typed after that character",
        arguments: TieBreak.allCases)
    func together(tie: TieBreak) throws {
        let replaces = try Self.delta("=1\t-1\t+!")
        let appends = try Self.delta("=2\t+ The")
        #expect(try Self.meet(replaces, appends, "a.", tie) == ("a! The", "a! The"))
        #expect(try Self.meet(appends, replaces, "a.", tie) == ("a! The", "a! The"))
    }

    @Test("in two changes with the other's change between them the result is the same", arguments: TieBreak.allCases)
    func apart(tie: TieBreak) throws {
        let deletes = try Self.delta("=1\t-1")
        let appends = try TextDelta.transform(Self.delta("=2\t+ The"), over: deletes, tie: .after)
        #expect(appends.encoded == "=1\t-0\t+ The")
        let types = try Self.delta("=1\t+!")
        #expect(try Self.meet(types, appends, "a", tie) == ("a! The", "a! The"))
    }

    @Test(
        "deleting and then typing is a replacement: after text typed before it, before text typed after it",
        arguments: TieBreak.allCases)
    func replacing(tie: TieBreak) throws {
        let replaces = try TextDelta.compose(Self.delta("=1\t-1\t=1"), Self.delta("=1\t+!\t=1"))
        #expect(replaces.encoded == "=1\t+!\t-1\t=1")
        #expect(try Self.meet(replaces, Self.delta("=1\t+x\t=2"), "a.b", tie) == ("ax!b", "ax!b"))
        #expect(try Self.meet(Self.delta("=1\t+x\t=2"), replaces, "a.b", tie) == ("ax!b", "ax!b"))
        #expect(try Self.meet(replaces, Self.delta("=2\t+x\t=1"), "a.b", tie) == ("a!xb", "a!xb"))
    }

    @Test("when both delete the text between, text typed after it stays after", arguments: TieBreak.allCases)
    func bothDelete(tie: TieBreak) throws {
        let replaces = try TextDelta.compose(Self.delta("-1"), Self.delta("+D"))
        let types = try TextDelta.compose(Self.delta("=1\t+C"), Self.delta("-1\t=1"))
        #expect(try Self.meet(replaces, types, "x", tie) == ("DC", "DC"))
        #expect(try Self.meet(types, replaces, "x", tie) == ("DC", "DC"))
    }

    @Test(
        "of two insertions marked by different deletions, the nearer to the text comes first",
        arguments: TieBreak.allCases)
    func farther(tie: TieBreak) throws {
        // "b" after "a" is already gone; one author types after both, the other after "a", which the first deletes.
        let behindBoth = try Self.delta("+E\t-1\t-0\t+F")
        let behindFirst = try Self.delta("=1\t+C")
        #expect(try Self.meet(behindBoth, behindFirst, "a", tie) == ("ECF", "ECF"))
        #expect(try Self.meet(behindFirst, behindBoth, "a", tie) == ("ECF", "ECF"))
    }

    @Test("a mark survives its text form, a transform and a composition")
    func markSurvives() throws {
        let marked = try Self.delta("=1\t-0\t+ The\t=3")
        #expect(marked.operations == [.retain(1), .delete(0), .insert(Array(" The".utf16)), .retain(3)])
        #expect(marked.sourceLength == 4)
        #expect(marked.targetLength == 8)
        #expect(try TextDelta.transform(marked, over: Self.delta("+x\t=4"), tie: .after).encoded == "=2\t-0\t+ The\t=3")
        #expect(try TextDelta.compose(marked, Self.delta("=5\t+ end\t=3")).encoded == "=1\t-0\t+ The end\t=3")
        #expect(try TextDelta.compose(marked, Self.delta("=1\t+x\t=7")).encoded == "=1\t+x\t-0\t+ The\t=3")
        #expect(try TextDelta.compose(marked, Self.delta("=1\t-1\t=6")).encoded == "=1\t-0\t+The\t=3")
        #expect(try TextDelta.compose(marked, Self.delta("=1\t-4\t=3")).isIdentity)
        #expect(try TextDelta.compose(Self.delta("=4"), marked) == marked)
        let over = try TextDelta.transform(
            Self.delta("=2\t+ The\t=2"), over: Self.delta("=1\t-1\t=2"), tie: .after)
        #expect(over == (try Self.delta("=1\t-0\t+ The\t=2")))
    }

    @Test(
        "a mark before anything but an insertion means nothing and is dropped",
        arguments: ["=1\t-0\t=3", "=4\t-0", "-0\t=4"])
    func idle(text: String) throws {
        #expect(try Self.delta(text).encoded == "=4")
    }
}
