import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Edits that arrive after thousands of others are rebased in bounded time, with nothing lost.
@Suite("Late edits")
struct LateEditTests {
    private func change(_ operations: [(key: String, operation: Operation)]) -> LaterChange {
        LaterChange(action: .modify(ObjectDiff(operations)), before: nil)
    }

    /// One character put at `place` of a text of `length` units.
    private func typing(_ unit: Unicode.Scalar, at place: Int, of length: Int) -> Operation {
        var delta = TextDelta()
        delta.retain(place)
        delta.insert(Array(String(unit).utf16))
        delta.retain(length - place)
        return .text(delta)
    }

    private func applied(_ changes: [LaterChange], to base: JSONObject) throws -> JSONObject {
        try changes.reduce(base) { try $1.applied(to: $0) }
    }

    @Test(
        "an edit that is late by 4,000 changes of a long text is rebased in fewer than 300 steps",
        arguments: [TransformRule.reference, .exact(tie: .after)])
    func bounded(_ rule: TransformRule) throws {
        let length = 50_000
        let text = String(repeating: "lorem ipsum ", count: length / 12 + 1)
        let start: Int = text.utf16.count
        let base = JSONObject([(key: "t", value: .string(text)), (key: "n", value: 0)])
        let changes: [LaterChange] = (0..<4_000).map { index in
            change([
                (key: "t", operation: typing("x", at: 100 + index, of: start + index)),
                (key: "n", operation: .replace(.number(JSONNumber(Int64(index))))),
            ])
        }
        var late = LateEdit(
            ObjectDiff([
                (key: "t", operation: typing("!", at: start, of: start)), (key: "n", operation: .replace(-1)),
            ]), on: base)
        try late.rebase(over: changes, rule: rule)
        #expect(late.steps < 300)
        #expect(late.work < 2 * LateEdit.singleWorkMax)
        let together: [LaterChange] = LateEdit.compose(changes[...], sparing: EditedKeys(ObjectDiff()))
        #expect(together.count == 1)
        let result: JSONObject = try JSONDiff.apply(late.edit, to: applied(together, to: base))
        let expected: String = "\(text.prefix(100))\(String(repeating: "x", count: 4_000))\(text.dropFirst(100))!"
        #expect(result == JSONObject([(key: "t", value: .string(expected)), (key: "n", value: -1)]))
    }

    @Test("changes that do not compose end in error 405, not in a long wait")
    func tooLate() throws {
        let base = JSONObject([(key: "t", value: .string(String(repeating: "a", count: 100_000)))])
        let edit = ObjectDiff([(key: "t", operation: typing("!", at: 0, of: 100_000))])
        // Removed and created again, over and over: each time the edit brings the whole text back.
        let changes: [LaterChange] = (0..<4_000).map { index in
            change([(key: "t", operation: index.isMultiple(of: 2) ? .remove : .insert("b"))])
        }
        var late = LateEdit(edit, on: base)
        #expect(throws: LateEdit.Failure.self) { try late.rebase(over: changes, rule: .reference) }
        #expect(late.work < LateEdit.workMax + 200_000)
    }

    @Test("rebasing over composed changes and one by one gives the same object, texts with the same letters")
    func sameEitherWay() throws {
        let seed: UInt64 = .random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        for run: Int in 0..<300 {
            let base: JSONObject = [
                "t": "the quick 🦊 jumps", "n": 7, "s": "set", "o": .object(["t": "inner text", "n": 1]),
            ]
            var changes: [LaterChange] = []
            var now: JSONObject = base
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                let next: LaterChange = change(random.operations(on: now))
                now = try next.applied(to: now)
                changes.append(next)
            }
            let edit = ObjectDiff(random.operations(on: base))
            var single = LateEdit(edit, on: base)
            try single.rebase(over: changes, rule: .exact(tie: .after), singleWorkMax: .max)
            var composed = LateEdit(edit, on: base)
            try composed.rebase(over: changes, rule: .exact(tie: .after), singleWorkMax: 0)
            let one: JSONObject = try JSONDiff.apply(single.edit, to: now)
            let two: JSONObject = try JSONDiff.apply(composed.edit, to: now)
            let comment: Comment = "run \(run) of seed \(seed)"
            let (rest, restToo): (JSONObject, JSONObject) = (unset(one, by: edit), unset(two, by: edit))
            #expect(letters(.object(rest)) == letters(.object(restToo)), comment)
            #expect(single.steps == changes.count && composed.steps <= single.steps, comment)
        }
    }

    /// How a client follows it (decision 0002). Each unit is a different letter, so that none is mistaken for another.
    @Test("text that a device typed and deleted again stays deleted, wherever the server puts the first change")
    func deletedStaysDeleted() throws {
        let seed: UInt64 = .random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        var elsewhere = 0
        for run: Int in 0..<1_000 {
            let comment: Comment = "run \(run) of seed \(seed)"
            var fresh: ClosedRange<UInt16>.Iterator = (0x4E00...0x9FFF).makeIterator()
            var now: [UInt16] = (0..<Int.random(in: 0..<6, using: &random)).compactMap { _ in fresh.next() }
            let base: JSONObject = object(now)
            let mine: TextDelta = random.delta(now, &fresh)
            // Computed one by one, as a device does that receives each change.
            var reckoned: ObjectDiff = ObjectDiff([(key: "t", operation: .text(mine))])
            var changes: [LaterChange] = []
            for _ in 0..<Int.random(in: 0..<7, using: &random) {
                let theirs: TextDelta = random.delta(now, &fresh)
                let diff: ObjectDiff = ObjectDiff([(key: "t", operation: .text(theirs))])
                reckoned = try JSONDiff.transform(reckoned, over: diff, base: object(now), rule: .exact(tie: .after))
                changes.append(change([(key: "t", operation: .text(theirs))]))
                now = try theirs.apply(to: now)
            }
            guard case .text(let made)? = reckoned["t"] else { continue }
            let shown: [UInt16] = try made.apply(to: now)
            let later: TextDelta = random.delta(shown, &fresh)
            var late: LateEdit = LateEdit(ObjectDiff([(key: "t", operation: .text(mine))]), on: base)
            try late.rebase(over: changes, rule: .exact(tie: .after), singleWorkMax: 0)
            guard case .text(let applied)? = late.edit["t"], applied != made else { continue }
            elsewhere += 1
            let target: [UInt16] = try applied.apply(to: now)
            let parts: (moved: ObjectDiff, rest: ObjectDiff) = JSONDiff.follow(
                ObjectDiff([(key: "t", operation: .text(later))]), from: reckoned, to: late.edit, base: object(now))
            guard case .text(let followed)? = parts.moved["t"] else {
                Issue.record("nothing to follow in \(comment)")
                continue
            }
            let wanted: Set<UInt16> = Set(try later.apply(to: shown))
            let result: [UInt16] = try followed.apply(to: target)
            #expect(Set(result) == wanted, comment)
            #expect(result.count == wanted.count, comment)
            #expect(result.filter { Set(target).contains($0) } == target.filter { wanted.contains($0) }, comment)
        }
        #expect(elsewhere > 50)
    }

    private func object(_ units: [UInt16]) -> JSONObject { ["t": .string(String(decoding: units, as: UTF16.self))] }

    @Test("text typed by another client may return in an edit that sets the text whole, though it was replaced since")
    func setWhole() throws {
        let base: JSONObject = ["t": "the quick jumps"]
        var typed = TextDelta()
        typed.retain(1)
        typed.insert(Array("h".utf16))
        typed.retain(3)
        typed.insert(Array("d".utf16))
        typed.retain(7)
        let operations: [ThicketProtocol.Operation] = [
            .remove, .insert("t3707721591"), .text(typed), .replace("t1809422693"),
        ]
        let changes: [LaterChange] = operations.map { change([(key: "t", operation: $0)]) }
        let edit = ObjectDiff([(key: "t", operation: .replace("t3883520940"))])
        for (work, text): (Int, JSONValue) in [(.max, "th3d883520940"), (0, "t3883520940")] {
            var late = LateEdit(edit, on: base)
            try late.rebase(over: changes, rule: .exact(tie: .after), singleWorkMax: work)
            #expect(try JSONDiff.apply(late.edit, to: ["t": "t1809422693"])["t"] == text)
        }
    }

    /// Without the texts that the edit sets whole: see `setWhole`.
    private func unset(_ object: JSONObject, by edit: ObjectDiff) -> JSONObject {
        var object: JSONObject = object
        for (key, operation) in edit.operations {
            switch (operation, object[key]) {
            case (.replace, .string?): object[key] = nil
            case (.object(let nested), .object(let inner)?): object[key] = .object(unset(inner, by: nested))
            default: break
            }
        }
        return object
    }

    /// The value with the units of each text in order of their numbers, and its keys in order.
    private func letters(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): "\(text.utf16.sorted())"
        case .object(let object):
            object.pairs.sorted { $0.key < $1.key }.map { "\($0.key): \(letters($0.value))" }.joined(separator: ", ")
        default: value.serializedText
        }
    }
}

extension SeededRandom {
    /// A diff that fits `object`, of a kind that suits each key.
    fileprivate mutating func operations(on object: JSONObject) -> [(key: String, operation: Operation)] {
        var result: [(key: String, operation: Operation)] = []
        for key: String in ["t", "n", "s", "o", "u"] where Int.random(in: 0..<3, using: &self) == 0 {
            guard let operation: Operation = operation(on: object[key], key) else { continue }
            result.append((key: key, operation: operation))
        }
        return result
    }

    private mutating func operation(on value: JSONValue?, _ key: String) -> Operation? {
        let dice: Int = .random(in: 0..<10, using: &self)
        // Unique values, so that no two sides set the same one by chance.
        let fresh: JSONValue = .string("\(key)\(UInt32.random(in: 0 ... .max, using: &self))")
        switch value {
        case nil: return .insert(fresh)
        case .string? where dice == 0: return .remove
        case .string? where dice == 1 || key == "s": return .replace(fresh)
        case .string(let text)?: return .text(delta(of: text))
        case .number?: return .increment(JSONNumber(Int64(dice + 1)))
        case .object(let object)?:
            if dice == 0 { return .remove }
            let nested: [(key: String, operation: Operation)] = operations(on: object)
            return nested.isEmpty ? nil : .object(ObjectDiff(nested))
        default: return nil
        }
    }

    /// Some deletions, and insertions of units that occur nowhere yet.
    fileprivate mutating func delta(_ text: [UInt16], _ fresh: inout ClosedRange<UInt16>.Iterator) -> TextDelta {
        var delta = TextDelta()
        for place: Int in 0...text.count {
            if Int.random(in: 0..<10, using: &self) < 3, let unit: UInt16 = fresh.next() { delta.insert([unit]) }
            guard place < text.count else { break }
            if Int.random(in: 0..<10, using: &self) < 3 { delta.delete(1) } else { delta.retain(1) }
        }
        return delta
    }

    /// Some deletions and insertions, between whole characters.
    private mutating func delta(of text: String) -> TextDelta {
        var delta = TextDelta()
        for scalar in text.unicodeScalars {
            let width: Int = String(scalar).utf16.count
            switch Int.random(in: 0..<8, using: &self) {
            case 0: delta.delete(width)
            case 1:
                delta.insert([UInt16.random(in: 97...122, using: &self)])
                delta.retain(width)
            default: delta.retain(width)
            }
        }
        return delta
    }
}
