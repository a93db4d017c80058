import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport

@Suite("Edits of objects that may not exist")
struct EditsTests {
    /// The states of an object, few enough to try all triples.
    private static let states = [
        nil, "{}", #"{"t":"ab"}"#, #"{"t":"aXb"}"#, #"{"t":"b","n":1}"#, #"{"n":2}"#, #"{"o":{"a":1}}"#,
        #"{"o":{"a":1,"b":"x"},"t":"ab"}"#,
    ]

    private func parsed(_ text: String?) throws -> JSONObject? { try text.map(object) }

    @Test("the edit between two states leads from one to the other, and is nil only for equal states")
    func between() throws {
        for source in Self.states {
            for target in Self.states {
                let (from, to) = (try parsed(source), try parsed(target))
                let edit = Edits.between(from, to)
                #expect(try Edits.apply(edit, to: from) == to)
                #expect((edit == nil) == (from == to))
            }
        }
    }

    @Test("two composed edits have the effect of one after the other")
    func compose() throws {
        for first in Self.states {
            for second in Self.states {
                for third in Self.states {
                    let (a, b, c) = (
                        try parsed(first), try parsed(second), try parsed(third)
                    )
                    let both = try Edits.compose(Edits.between(a, b), Edits.between(b, c), base: a)
                    #expect(try Edits.apply(both, to: a) == c, "\(first ?? "-") \(second ?? "-") \(third ?? "-")")
                }
            }
        }
    }

    @Test("a local edit and a foreign one give the same object in either order")
    func meet() throws {
        for base in Self.states {
            for mine in Self.states {
                for theirs in Self.states {
                    let (g, m, r) = (
                        try parsed(base), try parsed(mine), try parsed(theirs)
                    )
                    let (edit, change) = (Edits.between(g, m), Edits.between(g, r))
                    let left = try Edits.apply(Edits.carry(edit, over: change, base: g), to: r)
                    let right = try Edits.apply(Edits.yield(change, to: edit, base: g), to: m)
                    #expect(left == right, "\(base ?? "-") \(mine ?? "-") \(theirs ?? "-")")
                }
            }
        }
    }

    @Test("an edit of an object that was removed restores the object as a whole")
    func restores() throws {
        let base = try object(#"{"t":"ab","n":1}"#)
        let edit = Edits.between(base, try object(#"{"t":"aXb","n":1}"#))
        let carried = try Edits.carry(edit, over: .remove, base: base)
        #expect(try Edits.apply(carried, to: nil) == object(#"{"t":"aXb","n":1}"#))
    }
}
