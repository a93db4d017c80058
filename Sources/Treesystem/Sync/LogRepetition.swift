import ThicketProtocol

/// Finds changes of the log that arrive again. Pure.
///
/// A device that catches up asks again from positions that it has reached (`CatchUp`), before it knows whether the
/// earlier answer was complete. So parts of the log arrive twice. A version tells whether the change of a known node
/// was applied before; of a node that was removed meanwhile, nothing is left to compare with, and its first change
/// would show it again.
///
/// Each answer is a part of the log in its order and ends no earlier than the one before. So a repetition begins with
/// the change that followed a question, and ends at the position of the device.
struct LogRepetition: Sendable, Equatable {
    /// The first changes after questions: each begins the answer. As many as `CatchUp` asks questions.
    private var beginnings = Set<ChangeVersion>()
    private var hasAsked = false
    private var isRepeating = false

    /// The log was requested again from the device's position.
    mutating func ask() { hasAsked = true }

    /// - Parameters:
    ///   - change: the position of a change that arrives.
    ///   - position: the device's; everything up to it is applied.
    /// - Returns: whether the change was applied before.
    mutating func contains(_ change: ChangeVersion, at position: ChangeVersion?) -> Bool {
        if isRepeating || beginnings.contains(change) {
            isRepeating = change != position
            return true
        }
        if hasAsked { beginnings.insert(change) }
        hasAsked = false
        return false
    }
}
