/// Counts attempts of the last minute by name: a sliding window, computed from two fixed ones.
///
/// Memory is bounded: names beyond `namesMax` in a minute are counted together.
public struct AttemptMeter: Sendable {
    /// Names counted separately in one minute.
    public static let namesMax = 16_384
    private static let windowSeconds: Double = 60

    /// Attempts a minute for one name.
    public var perMinute: Int
    private var window = Int.min
    private var current = [String: Int]()
    private var previous = [String: Int]()

    /// All names beyond `namesMax`. Real names are never empty.
    private static let others = ""

    /// A meter with nothing counted.
    public init(perMinute: Int) { self.perMinute = perMinute }

    /// Whether a name may make an attempt.
    /// - Parameter now: seconds, from any monotonic clock.
    /// - Returns: nil when the name may try; otherwise the whole seconds to wait.
    public mutating func wait(_ name: String, now: Double) -> Int? {
        turn(now)
        let spent = now / Self.windowSeconds - Double(window)
        let (new, old) = (count(name, in: current), count(name, in: previous))
        guard Double(new) + Double(old) * (1 - spent) >= Double(perMinute) else { return nil }
        // When the current window is full, its share must have slid out of the next one, too.
        let share =
            new >= perMinute ? 1 - spent + Self.slide(new, perMinute) : Self.slide(old, perMinute - new) - spent
        // After a large step back of the clock no name waits longer than two windows. A wait of a whole second up to
        // rounding errors is rounded up, because at its end an attempt still weighs as much as the free capacity.
        return max(1, Int(max(0, min(2, share)) * Self.windowSeconds + 1e-6) + 1)
    }

    /// Counts an attempt.
    public mutating func add(_ name: String, now: Double) {
        turn(now)
        current[current[name] != nil || current.count < Self.namesMax ? name : Self.others, default: 0] += 1
    }

    /// The part of a window after which `count` attempts weigh less than `room`.
    private static func slide(_ count: Int, _ room: Int) -> Double {
        count == 0 ? 0 : min(1, max(0, 1 - Double(room) / Double(count)))
    }

    private func count(_ name: String, in counts: [String: Int]) -> Int {
        counts[name] ?? (counts.count >= Self.namesMax ? counts[Self.others] ?? 0 : 0)
    }

    private mutating func turn(_ now: Double) {
        let number = Int(max(-1e15, min(1e15, (now / Self.windowSeconds).rounded(.down))))
        guard number > window else { return }
        previous = number == window + 1 ? current : [:]
        current = [:]
        window = number
    }
}
