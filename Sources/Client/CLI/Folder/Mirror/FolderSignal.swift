import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Tells that something in a folder may have changed.
protocol FolderSignal: Sendable {
    /// Blocks until something may have changed, or until it is time to look anyway.
    /// - Returns: false after `stop`.
    func wait() -> Bool
    /// Ends the waiting, from any thread.
    func stop()
}

/// Looks at regular times: for file systems and machines that tell nothing.
final class PollingSignal: FolderSignal {
    private let pipeEnds: (read: Int32, write: Int32)
    private let milliseconds: Int32
    private let isStopped: Atomic<Bool> = Atomic(false)

    /// nil when the system gives no pipe.
    init?(everyMilliseconds milliseconds: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end: Int32 in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        pipeEnds = (ends[0], ends[1])
        self.milliseconds = milliseconds
    }

    deinit {
        close(pipeEnds.read)
        close(pipeEnds.write)
    }

    func wait() -> Bool { wait(besides: -1) }

    /// Also until `descriptor` is readable.
    func wait(besides descriptor: Int32) -> Bool {
        var watched: [pollfd] = [
            pollfd(fd: pipeEnds.read, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&watched, 2, milliseconds)
        return !isStopped.load(ordering: .sequentiallyConsistent)
    }

    func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        var byte: UInt8 = 0
        _ = write(pipeEnds.write, &byte, 1)
    }
}

#if os(Linux)
    // Linux only: inotify; on Apple platforms: PollingSignal looks at regular times until FSEvents are behind the protocol.
    /// The kernel tells; a look now and then besides, because network file systems do not tell everything.
    final class InotifySignal: FolderSignal {
        private let watch: Int32
        private let timer: PollingSignal

        /// nil when the kernel has no more watches, or the folder cannot be watched.
        init?(folder: String, everyMilliseconds milliseconds: Int32) {
            guard let timer: PollingSignal = PollingSignal(everyMilliseconds: milliseconds) else { return nil }
            let opened: Int32 = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
            guard opened >= 0 else { return nil }
            let events: UInt32 =
                UInt32(IN_CLOSE_WRITE) | UInt32(IN_MOVED_FROM) | UInt32(IN_MOVED_TO) | UInt32(IN_DELETE)
                | UInt32(IN_CREATE) | UInt32(IN_DELETE_SELF) | UInt32(IN_MOVE_SELF)
            guard inotify_add_watch(opened, folder, events) >= 0 else {
                close(opened)
                return nil
            }
            watch = opened
            self.timer = timer
        }

        deinit { close(watch) }

        func wait() -> Bool {
            let goesOn: Bool = timer.wait(besides: watch)
            // What happened does not matter: the folder is looked at as a whole.
            var bytes: [UInt8] = .init(repeating: 0, count: 1 << 14)
            while read(watch, &bytes, bytes.count) > 0 {}
            return goesOn
        }

        func stop() { timer.stop() }
    }
#endif

enum FolderSignals {
    /// Milliseconds between looks at a folder of which the kernel tells, and of which it does not.
    private static let (slow, fast): (Int32, Int32) = (5_000, 500)

    /// The best that the machine has; nil when it has nothing.
    static func best(folder: String) -> (any FolderSignal)? {
        #if os(Linux)
            if let signal: InotifySignal = InotifySignal(folder: folder, everyMilliseconds: slow) { return signal }
        #endif
        return PollingSignal(everyMilliseconds: fast)
    }

    /// An element whenever the folder may have changed; several at once count as one.
    static func changes(_ signal: any FolderSignal) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        startThread {
            while signal.wait() { continuation.yield(()) }
            continuation.finish()
        }
        return stream
    }
}
