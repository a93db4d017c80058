import Synchronization
import ThicketPlatform

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Signals that something in a folder may have changed.
protocol FolderSignal: Sendable {
    /// Blocks until something may have changed, or until the next regular scan is due.
    /// - Returns: false after `stop`.
    func wait() -> Bool
    /// Whether it is certain that the writer of this file has finished. From any thread.
    func isWritten(_ name: String) -> Bool
    /// Ends the waiting, from any thread.
    func stop()
}

/// Wakes at regular intervals: for file systems and machines without change notifications.
final class PollingSignal: FolderSignal {
    private let pipeEnds: (read: Int32, write: Int32)
    private let milliseconds: Int32
    private let isStopped = Atomic(false)

    /// nil when the system cannot create a pipe.
    init?(everyMilliseconds milliseconds: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        pipeEnds = (ends[0], ends[1])
        self.milliseconds = milliseconds
    }

    deinit {
        close(pipeEnds.read)
        close(pipeEnds.write)
    }

    func wait() -> Bool { wait(besides: -1) { true } }

    /// Returns also when `descriptor` is readable and `look` finds that something happened.
    func wait(besides descriptor: Int32, _ look: () -> Bool) -> Bool {
        var watched = [
            pollfd(fd: pipeEnds.read, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        let end = (SystemClock.monotonic() / 1_000_000) + Int64(milliseconds)
        while !isStopped.load(ordering: .sequentiallyConsistent) {
            let left = end - (SystemClock.monotonic() / 1_000_000)
            guard left > 0, poll(&watched, 2, Int32(clamping: left)) != 0 else { return true }
            if watched[1].revents != 0, look() { return true }
        }
        return false
    }

    /// Polling cannot know this.
    func isWritten(_ name: String) -> Bool { false }

    func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        var byte: UInt8 = 0
        _ = write(pipeEnds.write, &byte, 1)
    }
}

enum FolderSignals {
    /// Milliseconds between scans of a folder with kernel notifications (slow), and without them (fast).
    private static let (slow, fast): (Int32, Int32) = (5_000, 500)

    /// The best signal that the machine supports; nil when it supports none.
    static func best(folder: String) -> (any FolderSignal)? {
        #if os(Linux)
            if let signal = InotifySignal(folder: folder, everyMilliseconds: slow) { return signal }
        #endif
        return PollingSignal(everyMilliseconds: fast)
    }

    /// Yields an element whenever the folder may have changed; several changes at once are merged into one.
    static func changes(_ signal: any FolderSignal) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        OwnThread.detachedOrHere("folder") {
            while signal.wait() { continuation.yield(()) }
            continuation.finish()
        }
        return stream
    }
}
