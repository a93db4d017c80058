internal import Synchronization

/// Keeps a file of the store while it exists or until `release`: the file is not evicted, and does not expire.
public final class RetainToken: Sendable {
    private let retainers: Retainers
    private let key: DiskKey
    private let isReleased = Atomic(false)

    init(_ retainers: Retainers, _ key: DiskKey) {
        (self.retainers, self.key) = (retainers, key)
        retainers.retain(key)
    }

    deinit { release() }

    /// Ends the retention. The store removes what its pools have no space for at its next operation;
    /// `DiskStore.release` removes it at once.
    public func release() {
        guard isReleased.exchange(true, ordering: .acquiringAndReleasing) == false else { return }
        retainers.release(key)
    }
}

/// A file of the store, and what keeps it there.
public struct RetainedFile: Sendable {
    /// The file, with at least the sections that were asked for.
    public let file: SealedFile
    /// Keeps the file.
    public let token: RetainToken
}

/// Counts the tokens of each file. Tokens are released in any thread.
final class Retainers: Sendable {
    private let counts = Mutex([DiskKey: Int]())

    func retain(_ key: DiskKey) { counts.withLock { $0[key, default: 0] += 1 } }

    func release(_ key: DiskKey) {
        counts.withLock { counts in
            let left = (counts[key] ?? 1) - 1
            counts[key] = left > 0 ? left : nil
        }
    }

    func isRetained(_ key: DiskKey) -> Bool { counts.withLock { $0[key] != nil } }
}
