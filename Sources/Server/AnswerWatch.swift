/// How long the loop looks again and again for what the shard is about to commit, before it sleeps: to be woken takes
/// as long as a fast disk's sync.
///
/// Once for each time that it hands changes over, or that a group has been committed and the next is begun, and no
/// longer however often others wake it meanwhile. Never where it has one core only: whoever works on the answer waits
/// for that, be it the shard, a reader, or the kernel's thread that tells the disk to sync. Pure: time is passed in
/// (nanoseconds of a clock that never goes back).
struct AnswerWatch {
    /// Longest watch for one group, nanoseconds.
    static let longest: Int64 = 200_000
    /// Changes under way for which it watches: many take longer than that anyway.
    static let changesMax = 4

    private let hasOtherCores: Bool
    private var until = Int64.min

    /// - Parameter cores: those that the loop's thread may use; 0 when that is not known.
    init(cores: Int) { hasOtherCores = cores != 1 }

    /// Changes have been handed over, or the next of them are being written.
    mutating func begin(now: Int64) { until = now + Self.longest }

    /// Until when to watch; nil: not at all.
    /// - Parameter changes: those under way.
    func end(changes: Int) -> Int64? {
        hasOtherCores && (1...Self.changesMax).contains(changes) ? until : nil
    }
}
