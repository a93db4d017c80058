/// How much work a diff or a fuzzy patch may still do. Counted in steps, because this module has no clock.
///
/// One step is about 2 ns: half a move of the bisection along a diagonal, or the comparison of a few code units; what
/// costs more (equal units where none were expected, finding lines) counts for more. When the budget is
/// used up the outcome stays correct and becomes coarser: what is left is deleted and inserted whole, and a fuzzy
/// transform gives way to the exact one.
public struct StepBudget: Sendable, Equatable {
    /// Steps left; never below 0.
    public private(set) var remaining: Int

    /// - Parameter steps: steps, 0 or more.
    public init(steps: Int) { remaining = max(0, steps) }

    /// 40 ms for most texts on one core of a small server in a release build, 57 ms for the worst known, texts of
    /// megabytes (`thicket-bench diff`).
    public static let standard = StepBudget(steps: 18_000_000)
    /// No bound, for tests.
    public static let unlimited = StepBudget(steps: .max)

    /// Whether nothing is left.
    public var isUsedUp: Bool { remaining == 0 }

    /// Takes steps away; all that is left when fewer remain.
    @inline(__always)
    public mutating func spend(_ steps: Int) {
        remaining = steps < remaining ? remaining - steps : 0
    }
}
