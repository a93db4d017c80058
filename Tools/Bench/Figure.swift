import ThicketProtocol

/// One line of a result: a figure with its unit, its spread over rounds, and the goal it is held against.
struct Figure {
    /// What a figure is to be.
    enum Goal {
        case atMost(Double)
        case atLeast(Double)

        /// False where there is no figure, or nothing to hold it against.
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
    /// The median where there were several rounds; not a number where there was none.
    let value: Double
    let unit: String
    /// How many measurements the median is of.
    let rounds: Int
    /// Lowest and highest of the rounds.
    let spread: ClosedRange<Double>
    var goal: Goal?
    /// Why there is no figure, where something must be installed for it.
    let missing: String?

    /// A goal that cannot be measured here.
    ///
    /// - Parameter missing: what to install.
    init(name: String, unit: String, goal: Goal?, missing: String) {
        (self.name, self.unit, self.goal, self.missing) = (name, unit, goal, missing)
        (rounds, value, spread) = (0, .nan, 0...0)
    }

    /// Of one measurement.
    init(name: String, value: Double, unit: String, goal: Goal? = nil) {
        self.init(name: name, samples: [value], unit: unit, goal: goal)
    }

    /// The median of several rounds.
    init(name: String, samples: [Double], unit: String, goal: Goal? = nil) {
        let sorted: [Double] = samples.filter(\.isFinite).sorted()
        // One round without a figure makes the median a guess: then there is none.
        let isWhole: Bool = sorted.count == samples.count && !sorted.isEmpty
        (self.name, self.unit, self.goal, missing) = (name, unit, goal, nil)
        rounds = samples.count
        value = isWhole ? median(sorted) : .nan
        spread = isWhole ? sorted[0]...sorted[sorted.count - 1] : 0...0
    }

    /// All that is known about it; what there is not is null.
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

    /// For people.
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
        if let goal: Figure.Goal { line += "goal \(goal.text): " + (goal.isMet(by: value) ? "met" : "NOT MET") }
        return line
    }
}

/// A scenario so many times: of each figure the median over the rounds, and their spread.
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
    /// Names are set in under the figure that they belong to.
    fileprivate var trimmingSpaces: String { String(drop { $0 == " " }) }
}

/// The middle value; not a number when there is none, so that no goal is met by nothing.
func median(_ values: [Double]) -> Double {
    let sorted: [Double] = values.sorted()
    guard !sorted.isEmpty else { return .nan }
    let middle: Int = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
