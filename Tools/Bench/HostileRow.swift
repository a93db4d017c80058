/// The result of one attack.
struct HostileRow {
    static let head: String =
        Bench.padded("attack", 20) + "  quiet p50       p99 | attacked p50       p99 ms  ratio of p99         "
        + "| elsewhere p99  ratio of p99         | memory MiB"
    /// Issue: p99 at most twice the quiet one, and additional memory up to this bound.
    private static let ratioMax: Double = 2
    private static let memoryMax: Double = 64

    let attack: HostileAttack
    /// Sorted milliseconds of each window.
    let quiet: [[Double]]
    let attacked: [[Double]]
    /// Times while another server was attacked.
    let elsewhere: [[Double]]
    /// The most bytes that the server held beyond those before the first attack.
    let memory: Int
    /// How often each limit was hit, and the other metrics that the attack must move, by the name in `/metrics`.
    let hits: [String: Int]

    /// The control attacks nothing: it is a floor, and has no goals.
    private var hasGoals: Bool { attack != .control }

    /// The median of the windows' quantiles.
    private func middle(_ windows: [[Double]], _ share: Double) -> Double {
        median(windows.map { quantile($0, share) })
    }
    /// The ratio of the p99 of each of these windows to that of the quiet window before it.
    private func ratios(_ windows: [[Double]]) -> [Double] {
        zip(quiet, windows).map { quantile($1, 0.99) / max(quantile($0, 0.99), 1e-9) }.sorted()
    }
    private var ratio: Double { median(ratios(attacked)) }
    private var mebibytes: Double { Double(memory) / 1_048_576 }
    private var isMet: Bool {
        ratio <= Self.ratioMax && mebibytes <= Self.memoryMax && attack.metrics.allSatisfy { hits[$0, default: 0] > 0 }
    }

    var text: String {
        func number(_ value: Double, _ width: Int) -> String {
            Bench.padded(Bench.rounded(value), width, left: true)
        }
        return Bench.padded(attack.rawValue, 20) + number(middle(quiet, 0.5), 11) + number(middle(quiet, 0.99), 10)
            + number(middle(attacked, 0.5), 15) + number(middle(attacked, 0.99), 10) + spread(attacked)
            + number(middle(elsewhere, 0.99), 14) + spread(elsewhere)
            + number(mebibytes, 10) + (hasGoals ? (isMet ? "  met" : "  NOT MET") : "")
            + " (\(attacked.count) windows, \(attacked.reduce(0) { $0 + $1.count }) changes)"
            + (hasGoals ? "; limits: \(limits)" : "")
    }

    /// The metrics that moved or should have moved, the largest first.
    private var limits: String {
        let moved: [(name: String, count: Int)] = hits.filter { $0.value > 0 || attack.metrics.contains($0.key) }
            .map { (Self.short($0.key), $0.value) }.sorted { ($0.count, $1.name) > ($1.count, $0.name) }
        return moved.map { "\($0.name) \($0.count)" }.joined(separator: ", ")
    }

    /// `change_rate` for `thicket_limit_hits_total{limit="change_rate"}`; another metric's whole name.
    private static func short(_ name: String) -> String {
        let parts: [Substring] = name.split(separator: "\"")
        return name.hasPrefix(HostileAttack.limitMetric) && parts.count > 1 ? String(parts[1]) : name
    }

    /// The ratio's median, lowest and highest.
    private func spread(_ windows: [[Double]]) -> String {
        let all: [Double] = ratios(windows)
        return Bench.padded(Bench.rounded(median(all)), 11, left: true)
            + Bench.padded(" (\(Bench.rounded(all.first ?? 0))–\(Bench.rounded(all.last ?? 0)))", 18)
    }

    var figures: [Figure] {
        let name: String = attack.rawValue
        let figures: [Figure] = [
            Figure(name: "\(name): quiet p99", samples: quiet.map { quantile($0, 0.99) }, unit: "ms"),
            Figure(name: "\(name): p99 under attack", samples: attacked.map { quantile($0, 0.99) }, unit: "ms"),
            Figure(
                name: "\(name): ratio of p99", samples: ratios(attacked), unit: "",
                goal: hasGoals ? .atMost(Self.ratioMax) : nil),
            Figure(
                name: "\(name): ratio of p99 while another server is attacked", samples: ratios(elsewhere), unit: ""),
            Figure(
                name: "\(name): memory growth", value: mebibytes, unit: "MiB",
                goal: hasGoals ? .atMost(Self.memoryMax) : nil),
        ]
        guard hasGoals else { return figures }
        return figures
            + attack.metrics.map { metric in
                Figure(
                    name: "\(name): hits of \(Self.short(metric))", value: Double(hits[metric, default: 0]), unit: "",
                    goal: .atLeast(1))
            }
    }
}
