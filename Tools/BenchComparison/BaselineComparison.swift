/// The figures of a run beside those of an earlier one.
///
/// Only scenarios of both runs are compared. A figure fails when it has a goal, misses it now, and is worse than each
/// round of the baseline: a goal that the baseline missed by as much, and a figure that moved but meets its goal, are
/// results and not failures.
public struct BaselineComparison: Sendable {
    /// Where today's median is, compared with the lowest and highest round of the baseline.
    public enum Standing: String, Sendable {
        case within
        case better
        case worse
        /// Outside, and without a goal that says which direction is worse.
        case outside
        case notInBaseline = "not in the baseline"
        case notMeasuredNow = "not measured now"
    }

    public struct Row: Sendable {
        public let name: String
        public let unit: String
        public let baseline: Double?
        public let now: Double?
        public let standing: Standing
        /// Worse than the baseline's spread, and misses its goal.
        public let isFailure: Bool

        fileprivate var nameWithUnit: String { unit.isEmpty ? name : name + " " + unit }

        /// Ratio of the present value to the baseline.
        public var ratio: Double? {
            guard let baseline, let now, baseline != 0 else { return nil }
            return now / baseline
        }
    }

    public let rows: [Row]
    /// Scenarios of the baseline that this run did not measure.
    public let notRun: [String]

    public init(baseline: RecordedRun, now: RecordedRun) {
        var rows = [Row]()
        for scenario in now.scenarios {
            let before = baseline.scenarios.first { $0.name == scenario.name }?.figures ?? []
            let repeated = Self.repeatedNames(before).union(Self.repeatedNames(scenario.figures))
            let old = Self.named(before, repeated)
            let new = Self.named(scenario.figures, repeated)
            let oldFigures = Dictionary(old, uniquingKeysWith: { first, _ in first })
            rows += new.map { Row(scenario.name, $0.name, oldFigures[$0.name], $0.figure) }
            let names = Set(new.map(\.name))
            rows += old.filter { !names.contains($0.name) }.map { Row(scenario.name, $0.name, $0.figure, nil) }
        }
        self.rows = rows
        let names = Set(now.scenarios.map(\.name))
        notRun = baseline.scenarios.map(\.name).filter { !names.contains($0) }
    }

    public var failures: [Row] { rows.filter(\.isFailure) }

    /// A table for people: a head, one line for each figure, then the scenarios that were not run and the failures.
    public var table: String {
        let width = max(6, rows.map(\.nameWithUnit.count).max() ?? 0) + 1
        func line(_ cells: [String]) -> String {
            let figures = cells[1...3].map { Self.padded($0, 12, left: true) }.joined()
            return "  " + Self.padded(cells[0], width) + figures + "  " + cells[4]
        }
        var lines = [line(["figure", "baseline", "now", "ratio", "within spread?"])]
        lines += rows.map { row in
            let standing = row.standing == .within ? "yes" : row.standing.rawValue
            return line([
                row.nameWithUnit, Self.number(row.baseline), Self.number(row.now), Self.number(row.ratio),
                standing + (row.isFailure ? ", GOAL NOT MET" : ""),
            ])
        }
        if !notRun.isEmpty { lines.append("  not run: " + notRun.joined(separator: ", ")) }
        let count = failures.count
        lines.append(
            count == 0 ? "  no goal was lost" : "  worse than the baseline, and a goal not met: \(count)")
        return lines.joined(separator: "\n")
    }
}

extension BaselineComparison.Row {
    /// At least one of the two figures must exist.
    fileprivate init(
        _ scenario: String, _ name: String, _ before: RecordedRun.Figure?, _ now: RecordedRun.Figure?
    ) {
        self.name = scenario + ": " + name
        unit = now?.unit ?? before?.unit ?? ""
        (baseline, self.now) = (before?.median, now?.median)
        guard let value = now?.median else {
            (standing, isFailure) = (.notMeasuredNow, false)
            return
        }
        guard let before, before.median != nil else {
            (standing, isFailure) = (.notInBaseline, false)
            return
        }
        standing = Self.standing(of: value, in: before.spread, goal: now?.goal)
        isFailure = standing == .worse && now?.isMet == false
    }

    private static func standing(
        of value: Double, in spread: ClosedRange<Double>, goal: String?
    ) -> BaselineComparison.Standing {
        if spread.contains(value) { return .within }
        let isHigher = value > spread.upperBound
        switch goal?.first {
        case "≤": return isHigher ? .worse : .better
        case "≥": return isHigher ? .better : .worse
        default: return .outside
        }
    }
}

extension BaselineComparison {
    private static func repeatedNames(_ figures: [RecordedRun.Figure]) -> Set<String> {
        let counts = Dictionary(figures.map { ($0.name, 1) }, uniquingKeysWith: +)
        return Set(counts.filter { $0.value > 1 }.keys)
    }

    /// Names that occur once. "ratio", which occurs below several figures, gets the name of the one above it.
    private static func named(
        _ figures: [RecordedRun.Figure], _ repeated: Set<String>
    ) -> [(name: String, figure: RecordedRun.Figure)] {
        var owner = ""
        var counts = [String: Int]()
        return figures.map { figure in
            guard repeated.contains(figure.name) else {
                owner = figure.name
                return (figure.name, figure)
            }
            let name = owner.isEmpty ? figure.name : owner + ": " + figure.name
            counts[name, default: 0] += 1
            return (counts[name] == 1 ? name : "\(name) (\(counts[name] ?? 0))", figure)
        }
    }

    /// At least three significant digits, at most five decimals.
    private static func number(_ value: Double?) -> String {
        guard let value, value.isFinite, value.magnitude < 1e15 else { return "none" }
        if value.magnitude >= 100 { return "\(Int(value.rounded()))" }
        if value < 0 { return "-" + number(-value) }
        let (scale, digits) = value >= 0.1 || value == 0 ? (1_000.0, 3) : (100_000.0, 5)
        let scaled = Int((value * scale).rounded())
        let decimals = String(scaled % Int(scale))
        return "\(scaled / Int(scale))." + String(repeating: "0", count: digits - decimals.count) + decimals
    }

    private static func padded(_ text: String, _ width: Int, left: Bool = false) -> String {
        let space = String(repeating: " ", count: max(1, width - text.count))
        return left ? space + text : text + space
    }
}
