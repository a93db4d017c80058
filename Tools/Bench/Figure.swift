import ThicketProtocol

/// One line of a result: a figure with its unit, its spread over rounds, and its goal.
struct Figure {
    /// The bound that a figure should meet.
    enum Goal {
        case atMost(Double)
        case atLeast(Double)

        /// False without a figure or without a bound.
        func isMet(by value: Double) -> Bool {
            switch self {
            case .atMost(let bound): value <= bound
            case .atLeast(let bound): value >= bound
            }
        }

        var text: String {
            switch self {
            case .atMost(let bound): "≤ \(Bench.rounded(bound))"
            case .atLeast(let bound): "≥ \(Bench.rounded(bound))"
            }
        }
    }

    let name: String
    /// The median of several rounds; not a number without any round.
    let value: Double
    let unit: String
    /// The number of measurements in the median.
    let rounds: Int
    /// Lowest and highest of the rounds.
    let spread: ClosedRange<Double>
    var goal: Goal?
    /// Why the figure is missing, if something must be installed for it.
    let missing: String?

    /// A goal that cannot be measured here.
    ///
    /// - Parameter missing: what to install.
    init(name: String, unit: String, goal: Goal?, missing: String) {
        (self.name, self.unit, self.goal, self.missing) = (name, unit, goal, missing)
        (rounds, value, spread) = (0, .nan, 0...0)
    }

    /// A figure of one measurement.
    init(name: String, value: Double, unit: String, goal: Goal? = nil) {
        self.init(name: name, samples: [value], unit: unit, goal: goal)
    }

    /// A figure as the median of several rounds.
    init(name: String, samples: [Double], unit: String, goal: Goal? = nil) {
        let sorted: [Double] = samples.filter(\.isFinite).sorted()
        // A round without a figure would make the median a guess, so the figure has no value then.
        let isWhole: Bool = sorted.count == samples.count && !sorted.isEmpty
        (self.name, self.unit, self.goal, missing) = (name, unit, goal, nil)
        rounds = samples.count
        value = isWhole ? median(sorted) : .nan
        spread = isWhole ? sorted[0]...sorted[sorted.count - 1] : 0...0
    }

    /// All members of the figure; missing ones are null.
    var json: JSONValue {
        func number(_ value: Double) -> JSONValue {
            guard self.value.isFinite else { return .null }
            return JSONNumber(value).map { .number($0) } ?? .null
        }
        let isMet: Bool? = missing == nil ? goal?.isMet(by: value) : nil
        return .object(
            JSONObject(
                [
                    (key: "name", value: .string(name.trimmingSpaces)), (key: "unit", value: .string(unit)),
                    (key: "median", value: number(value)), (key: "lowest", value: number(spread.lowerBound)),
                    (key: "highest", value: number(spread.upperBound)),
                    (key: "rounds", value: .number(JSONNumber(Int64(rounds)))),
                    (key: "goal", value: goal.map { .string($0.text) } ?? .null),
                    (key: "met", value: isMet.map { .bool($0) } ?? .null),
                ] + (missing.map { [(key: "missing", value: .string($0))] } ?? [])))
    }

    /// A line for people to read.
    var line: String {
        if let missing {
            return "  " + Bench.padded(name, 56) + (goal.map { "goal \($0.text): " } ?? "")
                + "not measured: \(missing)"
        }
        var line: String = "  " + Bench.padded(name, 56) + Bench.padded(Bench.rounded(value), 12, left: true)
        line += " " + Bench.padded(unit, 5)
        if rounds > 1, value.isFinite {
            line += Bench.padded("(\(Bench.rounded(spread.lowerBound))–\(Bench.rounded(spread.upperBound)))", 20)
        }
        if let goal { line += "goal \(goal.text): " + (goal.isMet(by: value) ? "met" : "NOT MET") }
        return line
    }
}

/// Runs a scenario several times: each figure is the median over the rounds, with their spread.
func repeated(_ rounds: Int, _ scenario: () async throws -> [Figure]) async throws -> [Figure] {
    var runs: [[Figure]] = []
    for _ in 0..<rounds { runs.append(try await scenario()) }
    return (runs.first ?? []).enumerated().map { place, figure in
        Figure(
            name: figure.name, samples: runs.map { place < $0.count ? $0[place].value : .nan }, unit: figure.unit,
            goal: figure.goal)
    }
}

extension String {
    /// Names are indented under the figure to which they belong.
    fileprivate var trimmingSpaces: String { String(drop { $0 == " " }) }
}

/// The middle value; not a number without values, so that an empty list meets no goal.
func median(_ values: [Double]) -> Double {
    let sorted: [Double] = values.sorted()
    guard !sorted.isEmpty else { return .nan }
    let middle: Int = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
