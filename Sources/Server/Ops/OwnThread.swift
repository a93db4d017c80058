import Glibc

/// A thread that belongs to one part of the server, with its name in `ps` and debuggers.
///
/// Work that may block (SQLite, a slow socket) runs on such threads and never on the shared pool, which has only as
/// many threads as the machine has cores.
public struct OwnThread: Sendable {
    private let handle: pthread_t

    /// Starts a thread. It ends when `body` returns.
    /// - Parameters:
    ///   - name: up to 15 bytes, the most the kernel keeps.
    ///   - stackBytes: the thread's stack, touched pages only.
    public init(_ name: String, stackBytes: Int = 4 << 20, _ body: @escaping @Sendable () -> Void) {
        var attributes: pthread_attr_t = .init()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, stackBytes)
        let box: Unmanaged<Body> = .passRetained(Body(name, body))
        var handle: pthread_t = .init()
        let result: Int32 = pthread_create(&handle, &attributes, runThread, box.toOpaque())
        pthread_attr_destroy(&attributes)
        precondition(result == 0, "the kernel gave no thread for '\(name)' (error \(result))")
        self.handle = handle
    }

    /// Waits until the thread has ended. To be called once at most.
    public func join() { pthread_join(handle, nil) }

    /// Has the calling thread, and no other, wait where there is work for more threads than there are cores.
    /// - Parameter niceness: 0...19, the kernel's measure.
    public static func yieldToOthers(by niceness: Int32) {
        // On Linux 0 names the calling thread.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
    }

    /// Time since some fixed moment, never going back.
    public static func steadyTime() -> Duration {
        var time: timespec = .init()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    fileprivate final class Body: Sendable {
        let name: String
        let work: @Sendable () -> Void
        init(_ name: String, _ work: @escaping @Sendable () -> Void) {
            self.name = name
            self.work = work
        }
    }
}

private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context: UnsafeMutableRawPointer else { return nil }
    let body: OwnThread.Body = Unmanaged<OwnThread.Body>.fromOpaque(context).takeRetainedValue()
    // pthread_setname_np is a GNU extension that Glibc's module does not show.
    let comm: Int32 = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    if comm >= 0 {
        let name: [UInt8] = Array(body.name.utf8.prefix(15))
        _ = write(comm, name, name.count)
        close(comm)
    }
    body.work()
    return nil
}

/// A bounded row of values from any thread to one that waits for them.
public final class WaitingRow<Element: Sendable>: @unchecked Sendable {
    // `waiting` and `isClosed` are touched only with `mutex` held.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t> = .allocate(capacity: 1)
    private let filled: UnsafeMutablePointer<pthread_cond_t> = .allocate(capacity: 1)
    private let bound: Int
    private var waiting: [Element] = []
    private var isClosed: Bool = false

    /// - Parameter bound: values kept at most; what comes on top is refused.
    public init(bound: Int) {
        self.bound = bound
        pthread_mutex_init(mutex, nil)
        var attributes: pthread_condattr_t = .init()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(filled, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(filled)
        pthread_mutex_destroy(mutex)
        filled.deallocate()
        mutex.deallocate()
    }

    /// Adds one value. Never waits.
    /// - Returns: false when the row is full or closed.
    @discardableResult
    public func add(_ element: Element) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isClosed, waiting.count < bound else { return false }
        waiting.append(element)
        pthread_cond_signal(filled)
        return true
    }

    /// Nothing more will come; who waits gets what is there and then nothing.
    public func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_broadcast(filled)
        pthread_mutex_unlock(mutex)
    }

    /// All that is there, waiting for the first until `deadline` on the clock that only goes forward (nil: without
    /// end). Empty when the time is over or the row is closed and empty.
    public func takeAll(until deadline: Duration? = nil) -> [Element] {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while waiting.isEmpty, !isClosed {
            if let deadline: Duration {
                var time: timespec = .init(
                    tv_sec: Int(deadline.components.seconds),
                    tv_nsec: Int(deadline.components.attoseconds / 1_000_000_000))
                if pthread_cond_timedwait(filled, mutex, &time) == ETIMEDOUT { break }
            } else {
                pthread_cond_wait(filled, mutex)
            }
        }
        let taken: [Element] = waiting
        waiting = []
        return taken
    }
}
