import ThicketTestSupport

@testable import ThicketProtocol

/// Random objects with few keys, and edits that fit them with all eight operations.
extension SeededRandom {
    private mutating func key() -> String { ["a", "b", "c", "é", "e\u{301}", "constructor"][below(6)] }

    mutating func string(_ count: Int) -> String { String(decoding: text(below(count + 1)), as: UTF16.self) }

    mutating func value(depth: Int) -> JSONValue {
        switch below(depth > 0 ? 9 : 6) {
        case 0: .null
        case 1: .bool(chance(50))
        case 2, 3: .number(JSONNumber(Int64(below(5)) - 2))
        case 4, 5: .string(string(8))
        case 6, 7: .object(object(depth: depth - 1))
        default: .array(list(depth: depth - 1))
        }
    }

    mutating func list(depth: Int) -> [JSONValue] { (0..<below(5)).map { _ in value(depth: depth) } }

    mutating func object(depth: Int) -> JSONObject {
        JSONObject((0..<below(5)).map { _ in (key: key(), value: value(depth: depth)) })
    }

    /// An edit that fits `object`; texts are edited by whole characters.
    mutating func diff(of object: JSONObject, depth: Int = 2) -> ObjectDiff {
        var result = ObjectDiff()
        for (key, value) in object.pairs where chance(60) {
            result.operations.append((key: key, operation: chance(20) ? .remove : operation(on: value, depth: depth)))
        }
        for key in ["a", "d", "é"] where !object.contains(key) && chance(40) {
            result.operations.append((key: key, operation: .insert(value(depth: depth))))
        }
        return result
    }

    /// An operation other than `+` and `-`.
    mutating func operation(on value: JSONValue, depth: Int) -> Operation {
        if chance(15) { return .replace(self.value(depth: depth)) }
        switch value {
        case .number: return .increment(JSONNumber(Int64(below(7)) - 3))
        case .string(let text): return .text(delta(of: Array(text.utf16)))
        case .object(let object): return .object(diff(of: object, depth: depth - 1))
        case .array(let list):
            return chance(70) ? .list(listDiff(of: list, depth: depth)) : .listText(listText(of: list))
        case .null, .bool: return .replace(self.value(depth: depth))
        }
    }

    mutating func listDiff(of list: [JSONValue], depth: Int) -> ListDiff {
        var steps = ListDelta()
        for element in list {
            while chance(20) { steps.append(.insert(value(depth: depth - 1))) }
            switch below(4) {
            case 0: steps.append(.delete)
            case 1: steps.append(.edit(operation(on: element, depth: depth - 1)))
            default: steps.retain(1)
            }
        }
        if chance(30) { steps.append(.insert(value(depth: depth - 1))) }
        return steps.diff
    }

    /// Gives a list that differs in whole elements, but may cut anywhere in the text.
    private mutating func listText(of list: [JSONValue]) -> TextDelta {
        var target = list
        for _ in 0..<below(3) { target.insert(value(depth: 0), at: below(target.count + 1)) }
        for _ in 0..<below(3) where !target.isEmpty { target.remove(at: below(target.count)) }
        var budget = StepBudget.unlimited
        return TextDelta.diff(
            from: Array(ListText.lines(of: list).joined()), to: Array(ListText.lines(of: target).joined()),
            budget: &budget)
    }
}
