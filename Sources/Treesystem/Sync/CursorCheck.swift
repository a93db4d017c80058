/// Notices a server whose pages lead in a circle. Each page names the next one by a cursor; none may come twice.
///
/// A cursor is compared with one earlier cursor, which is replaced after 1, 2, 4, 8 … pages (Brent's method): a circle
/// is found within three of its rounds, in constant memory.
struct CursorCheck: Sendable, Equatable {
    private var earlier: String?
    private var steps = 0
    private var span = 1

    /// Whether the cursor came before, as far as that is known yet.
    mutating func isRepeated(_ cursor: String) -> Bool {
        if cursor == earlier { return true }
        steps += 1
        if steps == span { (earlier, steps, span) = (cursor, 0, span * 2) }
        return false
    }
}
