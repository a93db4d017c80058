/// How often something was tried in the last minute, name by name: a window that slides, made of two fixed ones.
///
/// What it keeps is bounded: names beyond `namesMax` in a minute are counted together.
public struct AttemptMeter: Sendable {
    /// Names counted apart in one minute.
    public static let namesMax = 16_384
    private static let windowSeconds: Double = 60

    /// Tries a minute that one name has.
    public var perMinute: Int
    private var window = Int.min
    private var current = [String: Int]()
    private var previous = [String: Int]()

    /// All names beyond `namesMax`. No key of ours is empty.
    private static let others = ""

    public init(perMinute: Int) { self.perMinute = perMinute }

    /// - Parameter now: seconds, from any clock that does not go back.
    /// - Returns: nil when the name may try; else the whole seconds to wait.
    public mutating func wait(_ name: String, now: Double) -> Int? {
        turn(now)
        let spent = now / Self.windowSeconds - Double(window)
        let (new, old) = (count(name, in: current), count(name, in: previous))
        guard Double(new) + Double(old) * (1 - spent) >= Double(perMinute) else { return nil }
        // With the present window full, its share must have slid out of the next one, too.
        let share =
            new >= perMinute ? 1 - spent + Self.slide(new, perMinute) : Self.slide(old, perMinute - new) - spent
        // A clock that has gone back far must not make anybody wait for longer than two windows.
        // What is a whole second but for rounding is one: at its end a try still weighs as much as the room there is.
        return max(1, Int(max(0, min(2, share)) * Self.windowSeconds + 1e-6) + 1)
    }

    /// Counts a try.
    public mutating func add(_ name: String, now: Double) {
        turn(now)
        current[current[name] != nil || current.count < Self.namesMax ? name : Self.others, default: 0] += 1
    }

    /// The part of a window after which `count` tries weigh less than `room`.
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
