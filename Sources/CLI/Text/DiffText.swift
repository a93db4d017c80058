import ThicketCommandLine
import ThicketProtocol

/// A difference between two objects as lines for a person.
///
/// ```
/// + done: true
/// - draft
/// ~ title: "Oak" → "Elm"
/// ~ text: Plant [-it-]{+the tree+} in spring.
/// ```
enum DiffText {
    /// Characters of an unchanged text shown on each side of a change.
    private static let contextMax = 24

    /// - Parameters:
    ///   - source: the object before the change.
    ///   - columns: longest line, in characters.
    static func lines(_ diff: ObjectDiff, from source: JSONObject, columns: Int) -> [String] {
        lines(diff, from: source, path: "", columns: columns)
    }

    private static func lines(
        _ diff: ObjectDiff, from source: JSONObject, path: String, columns: Int
    ) -> [String] {
        diff.operations.flatMap { (key, operation) -> [String] in
            let name = Screen.safe(path + key)
            let before = source[key]
            func line(_ text: String) -> [String] { [Screen.line(text, columns: columns)] }
            switch operation {
            case .insert(let value): return line("+ \(name): \(value.serializedText)")
            case .remove: return line("- \(name)")
            case .replace(let value):
                return line("~ \(name): \(short(before, columns)) → \(value.serializedText)")
            case .increment(let number): return line("~ \(name): \(short(before, columns)) + \(number.lexeme)")
            case .object(let inner):
                return lines(inner, from: before?.objectValue ?? JSONObject(), path: path + key + ".", columns: columns)
            case .text(let delta):
                return line("~ \(name): \(words(delta, on: before?.stringValue ?? ""))")
            case .list, .listText: return line("~ \(name): the list changed")
            }
        }
    }

    private static func short(_ value: JSONValue?, _ columns: Int) -> String {
        Screen.line(value?.serializedText ?? "nothing", columns: max(8, columns / 3))
    }

    /// The changed parts of a text with some context, compared by words instead of by letters.
    private static func words(_ delta: TextDelta, on text: String) -> String {
        guard let after = try? delta.apply(to: text) else { return "it changed" }
        var budget = StepBudget.standard
        var segments = TextDiff.diff(Array(text.utf16), Array(after.utf16), budget: &budget)
        TextDiff.cleanupSemantic(&segments)
        var result = ""
        for (number, segment) in segments.enumerated() {
            switch segment.kind {
            case .equal:
                result += context(segment.units[...], isFirst: number == 0, isLast: number == segments.count - 1)
            case .delete: result += "[-" + String(decoding: segment.units, as: UTF16.self) + "-]"
            case .insert: result += "{+" + String(decoding: segment.units, as: UTF16.self) + "+}"
            }
        }
        return result
    }

    private static func context(_ units: ArraySlice<UInt16>, isFirst: Bool, isLast: Bool) -> String {
        let most = contextMax
        func text(_ part: ArraySlice<UInt16>) -> String { String(decoding: part, as: UTF16.self) }
        if isFirst { return units.count <= most ? text(units) : "…" + text(units.suffix(most)) }
        if isLast { return units.count <= most ? text(units) : text(units.prefix(most)) + "…" }
        return units.count <= 2 * most ? text(units) : text(units.prefix(most)) + "…" + text(units.suffix(most))
    }
}
