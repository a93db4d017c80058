import Glibc

/// A thread that belongs to one part of the server, with its name in `ps` and debuggers.
///
/// Work that may block (SQLite, a slow socket) runs on such threads and never on the shared pool, which has only as
/// many threads as the machine has cores.
public struct OwnThread: Sendable {
    private let handle: pthread_t

    /// Starts a thread. It ends when `body` returns.
    /// - Parameters:
    ///   - name: up to 15 bytes, the kernel's limit.
    ///   - stackBytes: the thread's stack; only touched pages use memory.
    public init(_ name: String, stackBytes: Int = 4 << 20, _ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, stackBytes)
        let box = Unmanaged<Body>.passRetained(Body(name, body))
        var handle = pthread_t()
        let result = pthread_create(&handle, &attributes, runThread, box.toOpaque())
        pthread_attr_destroy(&attributes)
        precondition(result == 0, "the kernel gave no thread for '\(name)' (error \(result))")
        self.handle = handle
    }

    /// Waits until the thread has ended. To be called at most once.
    public func join() { pthread_join(handle, nil) }

    /// Lowers the priority of the calling thread only, for machines with more work than cores.
    /// - Parameter niceness: 0...19, as in the kernel.
    public static func yieldToOthers(by niceness: Int32) {
        // On Linux 0 is the calling thread.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
    }

    /// Yields the calling thread's core to other threads that are ready.
    public static func yield() { _ = sched_yield() }

    /// Time on the monotonic clock.
    public static func steadyTime() -> Duration {
        var time = timespec()
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
    guard let context else { return nil }
    let body = Unmanaged<OwnThread.Body>.fromOpaque(context).takeRetainedValue()
    // pthread_setname_np is a GNU extension that Glibc's module does not show.
    let comm = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    if comm >= 0 {
        let name: [UInt8] = Array(body.name.utf8.prefix(15))
        _ = write(comm, name, name.count)
        close(comm)
    }
    body.work()
    return nil
}

/// A bounded queue from any thread to one reading thread.
public final class BlockingQueue<Element: Sendable>: @unchecked Sendable {
    // `waiting` and `isClosed` are accessed only inside `monitor`.
    private let monitor = Monitor()
    private let bound: Int
    private var waiting = [Element]()
    private var isClosed = false

    /// - Parameter bound: most values kept; further ones are refused.
    public init(bound: Int) { self.bound = bound }

    /// Adds one value. Never waits.
    /// - Returns: false when the queue is full or closed.
    @discardableResult
    public func add(_ element: Element) -> Bool {
        monitor.locked {
            guard !isClosed, waiting.count < bound else { return false }
            waiting.append(element)
            monitor.wakeOne()
            return true
        }
    }

    /// Ends the queue: a reader gets the values already in it, then none.
    public func close() {
        monitor.locked { isClosed = true }
        monitor.wakeAll()
    }

    /// Whether the queue is closed and empty.
    public var isOver: Bool { monitor.locked { isClosed && waiting.isEmpty } }

    /// Removes all values, waiting for the first until `deadline` on the monotonic clock (nil: without end). Empty
    /// when the time is over or the queue is closed and empty.
    public func takeAll(until deadline: Duration? = nil) -> [Element] {
        let end = deadline?.nanoseconds ?? .max
        return monitor.locked {
            while waiting.isEmpty, !isClosed, end == .max || SystemClock.monotonic() < end {
                monitor.wait(until: end)
            }
            defer { waiting = [] }
            return waiting
        }
    }
}
