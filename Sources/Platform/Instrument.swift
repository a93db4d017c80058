import Synchronization

/// One Prometheus metric of the metrics page, with its help text.
///
/// Conforming types are lock-free, so any thread may count without waiting for another.
public protocol Instrument: Sendable {
    /// `thicket_<noun>_<unit>[_total]`.
    var name: String { get }
    /// One sentence for the reader of a dashboard.
    var help: String { get }
    /// The word after `# TYPE <name>`: `counter`, `gauge` or `histogram`.
    var kind: String { get }
    /// Name of the label that distinguishes its samples, if it has one.
    var labelName: String? { get }
    /// Appends the sample lines, without the `# HELP` and `# TYPE` head.
    func renderSamples(to text: inout String)
}

extension Instrument {
    /// nil: no label.
    public var labelName: String? { nil }
}

/// One of a closed set of label values. Labels never come from input, so a client cannot grow the page.
public protocol MetricLabel: Hashable, CaseIterable, Sendable {
    /// The text between the quotes.
    var labelText: String { get }
}

extension MetricLabel where Self: RawRepresentable, RawValue == String {
    /// The raw value.
    public var labelText: String { rawValue }
}

/// A number that only grows, from 0 at the start of the process.
public final class Counter: Instrument {
    /// Name on the metrics page.
    public let name: String
    /// One sentence about the metric.
    public let help: String
    /// `counter`.
    public var kind: String { "counter" }
    @usableFromInline let cell = Atomic<Int>(0)

    /// Starts at 0.
    public init(_ name: String, _ help: String) {
        self.name = name
        self.help = help
    }

    /// The current count.
    public var value: Int { cell.load(ordering: .relaxed) }

    /// Adds to the count; the amount must not be negative.
    @inlinable @inline(__always)
    public func add(_ amount: Int = 1) { cell.wrappingAdd(amount, ordering: .relaxed) }

    /// Appends one sample line.
    public func renderSamples(to text: inout String) { text += "\(name) \(value)\n" }
}

/// A number that goes up and down.
public final class Gauge: Instrument {
    /// Name on the metrics page.
    public let name: String
    /// One sentence about the metric.
    public let help: String
    /// `gauge`.
    public var kind: String { "gauge" }
    @usableFromInline let cell = Atomic<Int>(0)

    /// Starts at 0.
    public init(_ name: String, _ help: String) {
        self.name = name
        self.help = help
    }

    /// The current value.
    public var value: Int { cell.load(ordering: .relaxed) }

    /// Replaces the value.
    @inlinable @inline(__always)
    public func set(_ value: Int) { cell.store(value, ordering: .relaxed) }

    /// Adds to the value.
    @inlinable @inline(__always)
    public func add(_ amount: Int = 1) { cell.wrappingAdd(amount, ordering: .relaxed) }

    /// Subtracts from the value.
    @inlinable @inline(__always)
    public func subtract(_ amount: Int = 1) { cell.wrappingSubtract(amount, ordering: .relaxed) }

    /// Appends one sample line.
    public func renderSamples(to text: inout String) { text += "\(name) \(value)\n" }
}

/// One counter for each value of a label.
public final class CounterFamily<Label: MetricLabel>: Instrument {
    /// Name on the metrics page.
    public let name: String
    /// One sentence about the metric.
    public let help: String
    /// `counter`.
    public var kind: String { "counter" }
    /// The label's name.
    public var labelName: String? { label }
    private let label: String
    @usableFromInline let counters: [Label: Counter]

    /// - Parameter label: the label's name on the page, such as `reason`.
    public init(_ name: String, by label: String, _ help: String) {
        self.name = name
        self.help = help
        self.label = label
        var counters = [Label: Counter]()
        for value in Label.allCases {
            counters[value] = Counter("\(name){\(label)=\"\(value.labelText)\"}", help)
        }
        self.counters = counters
    }

    /// Adds to the counter of one label.
    @inlinable public func add(_ amount: Int = 1, _ label: Label) { counters[label]?.add(amount) }

    /// The count of one label.
    public func value(_ label: Label) -> Int { counters[label]?.value ?? 0 }

    /// Appends one line for each label.
    public func renderSamples(to text: inout String) {
        for label in Label.allCases { counters[label]?.renderSamples(to: &text) }
    }
}

/// One gauge for each value of a label.
public final class GaugeFamily<Label: MetricLabel>: Instrument {
    /// Name on the metrics page.
    public let name: String
    /// One sentence about the metric.
    public let help: String
    /// `gauge`.
    public var kind: String { "gauge" }
    /// The label's name.
    public var labelName: String? { label }
    private let label: String
    private let gauges: [Label: Gauge]

    /// - Parameter label: the label's name on the page, such as `cache`.
    public init(_ name: String, by label: String, _ help: String) {
        (self.name, self.help, self.label) = (name, help, label)
        gauges = Dictionary(
            uniqueKeysWithValues: Label.allCases.map { ($0, Gauge("\(name){\(label)=\"\($0.labelText)\"}", help)) })
    }

    /// The gauge of one label, for frequent use.
    public func gauge(_ label: Label) -> Gauge { gauges[label] ?? Gauge(name, help) }

    /// The value of one label.
    public func value(_ label: Label) -> Int { gauges[label]?.value ?? 0 }

    /// Appends one line for each label.
    public func renderSamples(to text: inout String) {
        for label in Label.allCases { gauges[label]?.renderSamples(to: &text) }
    }
}

/// Counts of values in a fixed series of ranges.
///
/// Observed values are whole numbers in a small unit (microseconds, bytes, changes); the page shows them times
/// `scale`.
public final class Histogram: Instrument {
    /// Name on the metrics page.
    public let name: String
    /// One sentence about the metric.
    public let help: String
    /// `histogram`.
    public var kind: String { "histogram" }
    /// Upper ends (inclusive) of the ranges, in the unit that `observe` takes; larger values count in `+Inf`.
    public let bounds: [Int]
    private let scale: Double
    private let counts: [Counter]
    private let sum = Atomic<Int>(0)

    /// - Parameters:
    ///   - bounds: ascending upper ends.
    ///   - scale: the size of one observed unit on the page: 0.000001 when microseconds are observed and seconds
    ///     shown.
    public init(_ name: String, bounds: [Int], scale: Double = 1, _ help: String) {
        self.name = name
        self.help = help
        self.bounds = bounds
        self.scale = scale
        self.counts = (0...bounds.count).map { (_: Int) in Counter(name, help) }
    }

    /// Durations from 100 µs to 10 s, shown in seconds.
    public static func seconds(_ name: String, _ help: String) -> Histogram {
        Histogram(
            name,
            bounds: [
                100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
                2_500_000, 10_000_000,
            ], scale: 0.000_001, help)
    }

    /// Counts from 1 to 1,024 by powers of two.
    public static func counts(_ name: String, _ help: String) -> Histogram {
        Histogram(name, bounds: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024], help)
    }

    /// Adds one value.
    public func observe(_ value: Int) {
        var low = 0
        var high = bounds.count
        while low < high {
            let middle = (low + high) / 2
            if value <= bounds[middle] { high = middle } else { low = middle + 1 }
        }
        counts[low].add()
        sum.wrappingAdd(value, ordering: .relaxed)
    }

    /// Adds one duration, in microseconds.
    public func observe(_ duration: Duration) {
        let parts = duration.components
        observe(Int(parts.seconds &* 1_000_000 &+ parts.attoseconds / 1_000_000_000_000))
    }

    /// How many values have been observed.
    public var count: Int { counts.reduce(0) { (sum: Int, counter: Counter) in sum + counter.value } }

    /// Their sum, in the unit that `observe` takes.
    public var total: Int { sum.load(ordering: .relaxed) }

    /// Appends the bucket lines, cumulative as Prometheus expects, then sum and count.
    public func renderSamples(to text: inout String) {
        var running = 0
        for (index, bound) in bounds.enumerated() {
            running += counts[index].value
            text += "\(name)_bucket{le=\"\(shown(bound))\"} \(running)\n"
        }
        running += counts[bounds.count].value
        text += "\(name)_bucket{le=\"+Inf\"} \(running)\n"
        text += "\(name)_sum \(shown(total))\n\(name)_count \(running)\n"
    }

    private func shown(_ value: Int) -> String {
        // Dividing keeps 0.0025 as it is; multiplying by 0.000001 would print 0.0024999999999999996.
        scale == 1 ? String(value) : "\(Double(value) / (1 / scale).rounded())"
    }
}
