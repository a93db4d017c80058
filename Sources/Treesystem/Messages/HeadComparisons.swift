internal import Synchronization
internal import ThicketKeyLog
import ThicketProtocol

/// Comparisons of heads of the key log that came with messages. Messages often name the same head, which is compared
/// once at a time.
final class HeadComparisons: Sendable {
    private let tasks = Mutex([KeyLogHead: Task<Void, Never>]())

    func start(_ head: KeyLogHead, from user: UserID, _ people: any PeopleLookUp) {
        tasks.withLock { tasks in
            guard tasks[head] == nil else { return }
            tasks[head] = Task {
                await people.heard(head, from: user)
                self.tasks.withLock { $0[head] = nil }
            }
        }
    }

    /// Returns when no comparison is under way.
    func finish() async {
        while let task = tasks.withLock({ $0.values.first }) { await task.value }
    }
}
