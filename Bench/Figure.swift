/// One line of a result: a figure with its unit, its spread over rounds, and the goal it is held against.
struct Figure {
    /// What a figure is to be.
    enum Goal {
        case atMost(Double)
        case atLeast(Double)

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
    /// The median where there were several rounds.
    let value: Double
    let unit: String
    /// Lowest and highest of several rounds.
    var spread: ClosedRange<Double>?
    var goal: Goal?

    init(name: String, value: Double, unit: String, goal: Goal? = nil) {
        (self.name, self.value, self.unit, self.goal) = (name, value, unit, goal)
    }

    /// The median of several rounds.
    init(name: String, samples: [Double], unit: String, goal: Goal? = nil) {
        let sorted: [Double] = samples.sorted()
        self.init(name: name, value: median(sorted), unit: unit, goal: goal)
        if let low: Double = sorted.first, let high: Double = sorted.last, sorted.count > 1 { spread = low...high }
    }
}

/// The middle value; 0 of none.
func median(_ values: [Double]) -> Double {
    let sorted: [Double] = values.sorted()
    guard !sorted.isEmpty else { return 0 }
    let middle: Int = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
