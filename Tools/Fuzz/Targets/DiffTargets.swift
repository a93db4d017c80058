import ThicketProtocol

/// Three lines: a text and two deltas. A readable delta survives a round trip; deltas that fit the text give one result
/// in either order.
public func fuzzDelta(_ bytes: [UInt8]) {
    let lines = lines(of: bytes, count: 3)
    guard lines.count == 3, let a = checkedDelta(lines[1]) else { return }
    let text: [UInt16] = Array(lines[0].utf16)
    check(a, on: lines[0], text)
    guard let b = checkedDelta(lines[2]) else { return }
    if let both = try? TextDelta.compose(a, b), let between = try? a.apply(to: text) {
        precondition((try? both.apply(to: text)) == (try? b.apply(to: between)), "composed does what both do")
    }
    guard let afterA = try? a.apply(to: text), let afterB = try? b.apply(to: text) else { return }
    for tie in TieBreak.allCases {
        guard let mine: TextDelta = try? .transform(a, over: b, tie: tie),
            let theirs: TextDelta = try? .transform(b, over: a, tie: tie.opposite)
        else { preconditionFailure("edits of one text can be transformed") }
        let one = try? mine.apply(to: afterB)
        precondition(one != nil && one == (try? theirs.apply(to: afterA)), "both orders meet")
    }
}

private func checkedDelta(_ wire: String) -> TextDelta? {
    guard let delta: TextDelta = try? .init(parsing: wire) else { return nil }
    precondition((try? TextDelta(parsing: delta.encoded)) == delta, "what was written reads back equal")
    return delta
}

private func check(_ delta: TextDelta, on text: String, _ units: [UInt16]) {
    let target = try? delta.apply(to: units)
    precondition((target != nil) == (delta.sourceLength == units.count), "a delta fits by its length")
    precondition(target == nil || target?.count == delta.targetLength, "the new length is foretold")
    if let after = try? delta.apply(to: text) {
        precondition(Array(after.utf16) == target, "strings and units agree")
    } else if let target {
        precondition(!Array(String(decoding: target, as: UTF16.self).utf16).elementsEqual(target), "whole text is text")
    }
    if let target, let whole = try? delta.keepingPairsWhole(in: units) {
        precondition((try? whole.apply(to: units)) == target, "whole pairs, same edit")
    }
}

/// Two texts, separated by a zero byte: the difference leads from the one to the other, whatever the budget.
public func fuzzTextDiff(_ bytes: [UInt8]) {
    let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return }
    let (source, target) = (
        String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self)
    )
    let (before, after): ([UInt16], [UInt16]) = (Array(source.utf16), Array(target.utf16))
    for steps in [0, 200, 1_000_000] {
        var budget = StepBudget(steps: steps)
        let delta = TextDelta.diff(from: source, to: target, budget: &budget)
        precondition((try? delta.apply(to: before)) == after, "the difference leads to the target")
        precondition((try? delta.keepingPairsWhole(in: before)) == delta, "no pair is cut")
    }
    var budget = StepBudget(steps: 1_000_000)
    var segments = TextDiff.diff(before, after, budget: &budget)
    TextDiff.cleanupSemantic(&segments)
    precondition(TextDiff.source(of: segments) == before && TextDiff.target(of: segments) == after, "same texts")
    let patches = TextDiff.patchMake(before, segments, budget: &budget)
    let patched = TextDiff.patchApply(patches, to: before, budget: &budget)
    precondition(budget.isUsedUp || patched.text == after || !isPlain(before + after), "hunks fit their own text")
    _ = TextDiff.patchApply(patches, to: after, budget: &budget)
}

/// Hunks are padded with the units 1 to 4, which are ambiguous in texts that contain them.
private func isPlain(_ units: [UInt16]) -> Bool { !units.contains { (1...4).contains($0) } }

/// Two lines of JSON: an object and a diff. The diff survives a round trip; if it fits, the difference of before and
/// after has the same effect.
public func fuzzJSONDiffApply(_ bytes: [UInt8]) {
    let lines = lines(of: bytes, count: 2)
    guard lines.count == 2, let source = object(lines[0]), let diff = diff(lines[1]) else {
        return
    }
    guard let after = try? JSONDiff.apply(diff, to: source) else { return }
    let found = JSONDiff.diff(from: source, to: after, budget: StepBudget(steps: 100_000))
    precondition((try? JSONDiff.apply(found, to: source)) == after, "the difference leads to the outcome")
    precondition(source != after || found.isEmpty, "equal objects have no difference")
}

/// Three lines of JSON: an object and two diffs of it. Both orders give one result, and the reference's rule gives a
/// diff that fits.
public func fuzzJSONDiffTransform(_ bytes: [UInt8]) {
    let lines = lines(of: bytes, count: 3)
    guard lines.count == 3, let base = object(lines[0]), let a = diff(lines[1]),
        let b = diff(lines[2])
    else { return }
    guard let afterA = try? JSONDiff.apply(a, to: base),
        let afterB = try? JSONDiff.apply(b, to: base)
    else {
        _ = try? JSONDiff.transform(a, over: b, base: base, rule: .reference)
        return
    }
    let mine = result(a, over: b, base, .exact(tie: .after), on: afterB)
    let theirs = result(b, over: a, base, .exact(tie: .before), on: afterA)
    precondition(mine == theirs, "both orders meet")
    let loose = result(a, over: b, base, .reference, on: afterB)
    if let loose, let mine { checkTexts(loose, exact: mine, base, a, b) }
    if let moved = try? JSONDiff.transform(b, over: a, base: base, rule: .exact(tie: .before)),
        let both = try? JSONDiff.compose(a, moved),
        let after = try? JSONDiff.apply(both, to: base)
    {
        precondition(after == theirs, "composed does what both do")
    }
}

/// Texts that both sides edit: a merge by the reference's rule has all that the exact one has, and the typing of each
/// side in its order (docs/decisions/0002).
private func checkTexts(
    _ loose: JSONObject, exact: JSONObject, _ base: JSONObject, _ a: ObjectDiff, _ b: ObjectDiff
) {
    for (key, operation) in a.operations {
        guard case .text(let mine) = operation,
            case .text(let theirs)? = b.operations.first(where: { $0.key == key })?.operation,
            let merged = loose[key]?.stringValue, let wanted = exact[key]?.stringValue
        else { continue }
        var surplus = [UInt16: Int]()
        for unit in merged.utf16 { surplus[unit, default: 0] += 1 }
        for unit in wanted.utf16 { surplus[unit, default: 0] -= 1 }
        precondition(surplus.values.allSatisfy { $0 >= 0 }, "a merge has lost a character")
        for delta in [mine, theirs] {
            var typed = [UInt16]()
            for step in delta.operations { if case .insert(let units) = step { typed += units } }
            var rest = typed[...]
            for unit in merged.utf16 where unit == rest.first { rest = rest.dropFirst() }
            precondition(rest.isEmpty, "what was typed stands in its order")
        }
    }
}

/// The outcome of a transformed edit; nil only if it exceeds a bound.
private func result(
    _ a: ObjectDiff, over b: ObjectDiff, _ base: JSONObject, _ rule: TransformRule, on state: JSONObject
) -> JSONObject? {
    do throws(DiffError) {
        let moved = try JSONDiff.transform(
            a, over: b, base: base, rule: rule, budget: StepBudget(steps: 100_000))
        return try JSONDiff.apply(moved, to: state)
    } catch {
        precondition([.tooDeep, .numberTooLong].contains(error.kind), "edits that fit one object can be transformed")
        return nil
    }
}

private func lines(of bytes: [UInt8], count: Int) -> [String] {
    bytes.split(separator: 0x0A, maxSplits: count - 1, omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
}

private func object(_ text: String) -> JSONObject? { (try? JSONValue(parsing: text))?.objectValue }

private func diff(_ text: String) -> ObjectDiff? {
    guard let value: JSONValue = try? .init(parsing: text), let diff: ObjectDiff = try? .init(value) else { return nil }
    precondition((try? ObjectDiff(diff.json)) == diff, "what was written reads back equal")
    var writer = JSONWriter()
    diff.write(to: &writer)
    precondition(writer.bytes == diff.json.serialized(), "both ways of writing agree")
    return diff
}
