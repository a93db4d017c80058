import ThicketProtocol

/// The figures of one run, as `./dev bench --save` writes them.
///
/// A file is one JSON object with the machine, the build, the date and the scenarios. Each scenario is the line that
/// `./dev bench` prints for it. The output of a run without `--save` is read too: its lines of JSON.
public struct RecordedRun: Sendable {
    public struct Figure: Sendable {
        public let name: String
        public let unit: String
        /// nil if the figure was not measured.
        public let median: Double?
        /// Lowest and highest of the rounds; equal to the median if they are not known.
        public let spread: ClosedRange<Double>
        /// "≤ 1.500", as printed.
        public let goal: String?
        public let isMet: Bool?
    }

    public struct Scenario: Sendable {
        public let name: String
        public let figures: [Figure]
    }

    public struct Unreadable: Error, CustomStringConvertible {
        public let description: String
    }

    public let machine: String
    public let build: String
    public let date: String
    public let scenarios: [Scenario]

    /// - Throws: `Unreadable` if the text holds no scenario with figures.
    public init(parsing text: [UInt8]) throws(Unreadable) {
        let whole = try? JSONValue(parsing: text).objectValue
        let lines = text.split(separator: UInt8(ascii: "\n")).filter { $0.first == UInt8(ascii: "{") }
        let values =
            whole?["scenarios"]?.arrayValue ?? lines.compactMap { try? JSONValue(parsing: Array($0)) }
        scenarios = values.compactMap { Scenario($0) }
        guard !scenarios.isEmpty else { throw Unreadable(description: "it holds no scenario with figures") }
        machine = whole?["machine"]?.stringValue ?? "unknown"
        build = whole?["build"]?.stringValue ?? "unknown"
        date = whole?["date"]?.stringValue ?? "unknown"
    }

    /// The text of a file, from the lines that scenarios have printed.
    public static func text(machine: String, build: String, date: String, lines: [String]) -> String {
        func quoted(_ text: String) -> String { JSONValue.string(text).serializedText }
        return "{\"machine\":\(quoted(machine)),\n\"build\":\(quoted(build)),\n\"date\":\(quoted(date)),\n"
            + "\"scenarios\":[\n" + lines.joined(separator: ",\n") + "\n]}\n"
    }
}

extension RecordedRun.Scenario {
    /// nil for what is not a scenario, and for one without figures.
    fileprivate init?(_ value: JSONValue) {
        guard let object = value.objectValue, let name = object["scenario"]?.stringValue,
            let figures = object["figures"]?.arrayValue, !figures.isEmpty
        else { return nil }
        self.init(name: name, figures: figures.compactMap { RecordedRun.Figure($0) })
    }
}

extension RecordedRun.Figure {
    fileprivate init?(_ value: JSONValue) {
        guard let object = value.objectValue, let name = object["name"]?.stringValue else { return nil }
        let median = object["median"]?.doubleValue
        let lowest = object["lowest"]?.doubleValue ?? median ?? 0
        let highest = object["highest"]?.doubleValue ?? median ?? 0
        self.init(
            name: name, unit: object["unit"]?.stringValue ?? "", median: median,
            spread: min(lowest, highest)...max(lowest, highest), goal: object["goal"]?.stringValue,
            isMet: object["met"]?.boolValue)
    }
}
