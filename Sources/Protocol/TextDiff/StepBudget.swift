/// The work that a diff or a fuzzy patch may still do, counted in steps, because this module has no clock.
///
/// One step is about 2 ns: half a move of the bisection along a diagonal, or the comparison of a few code units;
/// costlier operations (equal units where none were expected, finding lines) count for more. When the budget is used
/// up, the result stays correct but becomes coarser: the rest is deleted and inserted as a whole, and a fuzzy transform
/// is replaced by the exact one.
public struct StepBudget: Sendable, Equatable {
    /// Steps left; never below 0.
    public private(set) var remaining: Int

    /// Makes a budget.
    ///
    /// - Parameter steps: the number of steps, 0 or more.
    public init(steps: Int) { remaining = max(0, steps) }

    /// 40 ms for most texts on one core of a small server in a release build; 57 ms for the worst known, texts of
    /// megabytes (`thicket-bench diff`).
    public static let standard = StepBudget(steps: 18_000_000)
    /// Without a bound, for tests.
    public static let unlimited = StepBudget(steps: .max)

    /// Whether no steps are left.
    public var isUsedUp: Bool { remaining == 0 }

    /// Subtracts steps; the remainder does not fall below 0.
    @inline(__always)
    public mutating func spend(_ steps: Int) {
        remaining = steps < remaining ? remaining - steps : 0
    }
}
