internal import CThicketNet
import Glibc
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// Serves sockets on one thread: HTTP/1.1 until a connection becomes a WebSocket, then messages in both directions.
///
/// The loop, its delegate and all methods belong to the thread that calls `run`; other threads use `handle` and
/// mailboxes. One turn handles everything that is ready, calls the delegate, and only then writes: everything sent to a
/// connection during the turn leaves in one system call.
public final class EventLoop {
    /// Bounds and timeouts in force.
    public private(set) var settings: NetSettings
    /// For other threads.
    public let handle: LoopHandle
    /// Receives all events; released when `run` returns.
    public var delegate: (any LoopDelegate)?
    /// Nanoseconds of the monotonic clock at the start of this turn.
    public internal(set) var now: Int64
    /// Processor time of the loop's thread when it was last read: at the start of this turn or later.
    var processorTime: Int64 = 0

    package let metrics: NetMetrics
    var poller: Poller
    let wakeup: Wakeup
    var drains = [() -> Void]()
    var timers = TimerQueue()
    var signalDescriptor: Int32 = -1
    var spareDescriptor: Int32
    /// Descriptors below this number may become connections.
    let descriptorsMax: Int

    /// Indexed by descriptor, as is `deadlines`: nanoseconds of the monotonic clock, `.max` for never.
    var connections = [Connection?]()
    var deadlines = [Int64]()
    var connectionCount = 0
    var lastSerial: UInt32 = 0
    var listeners = [Int32: Listener]()
    var listenerCount = 0

    /// By tenant ID, without the unauthenticated connections.
    var tenants = [TenantID: LoopTenant]()
    let unauthenticated = LoopTenant(id: 0)
    /// Tenants whose last connection ended since the last sweep, or that were throttled at that sweep.
    var emptied = [TenantID]()
    var turnNumber: UInt64 = 1
    /// Users that wanted the loop recently.
    var recentTenants = RecentUsers()
    /// When an unauthenticated connection last wanted the loop.
    var unauthenticatedWantedAt = Int64.min / 2
    /// Messages of the current connection that may still be handled in this turn.
    var messagesLeft = 0

    /// Sums over all connections.
    var pendingTotal = 0
    var gatheredTotal = 0

    /// Connections with something to write at the end of the turn.
    var dirty = [Connection]()
    /// Connections whose answers need the next piece of their body.
    var hungry = [ConnectionID]()
    /// Connections whose waiting input can be handled.
    var resuming = [Connection]()
    /// Tenants with waiting connections that may be served in the next turn.
    var due = [LoopTenant]()
    /// The tenant whose `row` is being served.
    var served: LoopTenant?
    /// WebSockets that ended, with ends that were not reported to the delegate yet.
    var ended = [(ConnectionID, ConnectionEnd)]()

    /// Broken connections that were not ended yet, each once.
    var broken = Deque<Connection>()
    var nextSweep: Int64 = 0
    /// The slot whose deadline is checked next; nil between two sweeps.
    var sweepNext: Int?
    private(set) var sweepInterval: Int64
    var isStopping = false
    var isQuiet = false
    /// The TLS context of secure listeners.
    var tls: TLSContext?
    var isFinished = false
    var stopDeadline = Int64.max
    var date = HTTPDate()

    let scratch: UnsafeMutableRawBufferPointer
    let gather: UnsafeMutableRawBufferPointer
    private var thread: pthread_t

    /// Descriptors for which the kernel reserves memory at the start (8 bytes each); it adds more when needed.
    private static let descriptorsPrepared = 65_536
    /// Most bytes read from one connection in one turn.
    static let scratchBytes = 128 << 10
    /// Bytes of small frames joined for one write.
    static let gatherBytes = 64 << 10
    /// Longest and shortest interval between two sweeps over all deadlines, in nanoseconds.
    private static let sweepMax: Int64 = 1_000_000_000
    private static let sweepMin: Int64 = 10_000_000

    /// Raises the soft limit on open files to the hard one.
    ///
    /// - Throws: when the kernel gives no descriptor for epoll or the wake-up.
    public init(settings: NetSettings = .init(), metrics: NetMetrics = .init()) throws(NetError) {
        self.settings = settings
        self.metrics = metrics
        poller = try Poller()
        wakeup = try Wakeup()
        let work: Mailbox<@Sendable (EventLoop) -> Void> = .init(wakeup: wakeup)
        handle = LoopHandle(work: work)
        spareDescriptor = thicket_spare_descriptor()
        descriptorsMax = max(64, Int(thicket_raise_file_limit()) - settings.descriptorsReserved)
        thicket_reserve_descriptors(
            spareDescriptor, Int32(min(descriptorsMax, settings.connectionsMax, Self.descriptorsPrepared)))
        now = thicket_monotonic_ns()
        thread = pthread_self()
        scratch = .allocate(byteCount: Self.scratchBytes, alignment: 64)
        gather = .allocate(byteCount: Self.gatherBytes, alignment: 64)
        sweepInterval = Self.sweepInterval(settings)
        signal(SIGPIPE, SIG_IGN)
        // A write to a file that may not grow further must fail; it must not end the process.
        signal(SIGXFSZ, SIG_IGN)
        guard poller.add(wakeup.descriptor, reads: true, writes: false, token: UInt64(UInt32(wakeup.descriptor))) else {
            throw NetError.setup(call: "epoll_ctl", reason: SystemError.reason(errno))
        }
        drains.append { [unowned self] in for work in work.takeAll() { work(self) } }
    }

    /// Sets bounds and timeouts for the future. Open connections keep the message size bound they were opened with.
    public func use(_ settings: NetSettings) {
        self.settings = settings
        sweepInterval = Self.sweepInterval(settings)
        nextSweep = min(nextSweep, now + sweepInterval)
    }

    private static func sweepInterval(_ settings: NetSettings) -> Int64 {
        let shortest = min(
            settings.requestTimeout, settings.keepAliveTimeout, settings.idleTimeout, settings.closeTimeout,
            settings.lingerTimeout)
        return min(sweepMax, max(sweepMin, shortest.nanoseconds / 4))
    }

    deinit {
        for case let connection? in connections { _ = Glibc.close(connection.id.slot) }
        for descriptor in listeners.keys { _ = Glibc.close(descriptor) }
        if signalDescriptor >= 0 { _ = Glibc.close(signalDescriptor) }
        if spareDescriptor >= 0 { _ = Glibc.close(spareDescriptor) }
        scratch.deallocate()
        gather.deallocate()
    }

    // MARK: For the delegate

    /// Number of connections of all kinds.
    public var openConnections: Int { connectionCount }

    /// Creates a mailbox through which any thread sends values to the loop's thread.
    ///
    /// - Parameter deliver: receives each batch, on the loop's thread, before `turnEnded`.
    public func mailbox<Message: Sendable>(
        of type: Message.Type = Message.self, deliver: @escaping ([Message]) -> Void
    ) -> Mailbox<Message> {
        let mailbox = Mailbox<Message>(wakeup: wakeup)
        drains.append {
            let batch = mailbox.takeAll()
            if !batch.isEmpty { deliver(batch) }
        }
        return mailbox
    }

    /// Runs `action` once, on the loop's thread, not before `delay` has passed.
    @discardableResult
    public func schedule(after delay: Duration, _ action: @escaping () -> Void) -> TimerID {
        timers.schedule(at: now + max(0, delay.nanoseconds), action)
    }

    /// Cancels a timer; a timer that has run is ignored.
    public func cancel(_ timer: TimerID) { timers.cancel(timer) }

    // MARK: Running

    /// Blocks SIGTERM, SIGINT and SIGHUP for this thread and every thread it starts. Call it first in a synchronous
    /// main, before any thread or task starts: a thread that does not block them would receive them with their default
    /// effect.
    public static func blockSignals() { _ = thicket_block_signals() }

    /// Sets how the C library divides memory among threads; call it once, before the first thread is started.
    public static func tuneHeap() { thicket_tune_heap() }

    /// Reserves 500 KiB at the end of the calling thread's heap. The thread must not be the main thread.
    package static func padHeap() { thicket_pad_heap() }

    /// Asks the kernel for a short time slice, so that the calling thread (the loop's) runs ahead of computing threads
    /// when it wakes up. No effect on kernels without this feature.
    public static func requestShortTimeSlice() { _ = thicket_short_slices(sliceNanoseconds) }

    /// Number of cores that the calling thread may use; 0 when the kernel does not report it.
    package static var cores: Int { Int(thicket_core_count()) }

    /// The shortest time slice that the kernel grants, in nanoseconds.
    private static let sliceNanoseconds: UInt64 = 100_000

    /// Turns the three signals into delegate calls; `blockSignals` must have been called.
    public func watchSignals() throws(NetError) {
        signalDescriptor = thicket_signalfd()
        let token = UInt64(UInt32(bitPattern: signalDescriptor))
        guard signalDescriptor >= 0, poller.add(signalDescriptor, reads: true, writes: false, token: token) else {
            throw NetError.setup(call: "signalfd", reason: SystemError.reason(errno))
        }
    }

    /// Serves until `stop` or `abort` has taken effect.
    public func run() {
        thread = pthread_self()
        while !isFinished { turn() }
        for case let connection? in connections { drop(connection, .stopping) }
        reportEnds()
        delegate = nil
    }

    /// Stops in order: accepts no new connections, closes every WebSocket with code 1001, and makes `run` return when
    /// all connections have drained or `grace` is over.
    public func stop(within grace: Duration) {
        checkThread()
        guard !isStopping else { return }
        isStopping = true
        stopDeadline = now + grace.nanoseconds
        stopListening()
        for case let connection? in connections { stop(connection) }
    }

    /// Accepts no connection and reads nothing more, so that work in progress can be answered before `stop`.
    public func quiesce() {
        checkThread()
        guard !isQuiet else { return }
        isQuiet = true
        stopListening()
        for case let connection? in connections { watch(connection) }
    }

    /// Makes `run` return without waiting for any connection.
    public func abort() { isFinished = true }

    /// Handles everything that is ready; waits for the first event.
    func turn() {
        let count = waitForEvents()
        now = thicket_monotonic_ns()
        processorTime = SystemClock.threadTime()
        turnNumber += 1
        serveRows()
        for index in 0..<count { handle(poller[index]) }
        while let action = timers.takeDue(now) { action() }
        endSome()
        resumeAll()
        reportEnds()
        askForBodies()
        delegate?.turnEnded()
        flushDirty()
        if isStopping && (connectionCount == 0 || now >= stopDeadline) { isFinished = true }
        metrics.loopSeconds.observe(Int((thicket_monotonic_ns() - now) / 1_000))
    }

    private func handle(_ event: Poller.Event) {
        let slot = Int32(truncatingIfNeeded: event.token & 0xFFFF_FFFF)
        let serial = UInt32(truncatingIfNeeded: event.token >> 32)
        if serial != 0 {
            guard let connection = lookup(ConnectionID(slot: slot, serial: serial)) else { return }
            return handle(event, connection)
        }
        if slot == wakeup.descriptor {
            wakeup.answer()
            for drain in drains { drain() }
        } else if slot == signalDescriptor {
            handleSignals()
        } else if let listener = listeners[slot] {
            accept(slot, listener)
        }
    }

    private func handle(_ event: Poller.Event, _ connection: Connection) {
        if event.isWritable {
            let wasThrottled = connection.isTenantThrottled
            if !wasThrottled { connection.isBlocked = false }
            let hasWritten =
                !wasThrottled && writes(connection) { flush(connection, most: Self.writtenPerTurn) }
            if !hasWritten && connection.phase != .dead {
                // A throttled tenant's connections are resumed by a timer; epoll must not report them.
                if !connection.isTenantThrottled { markDirty(connection) }
                watch(connection)
            }
        }
        if event.isWritable, !event.isReadable, connection.tls?.readsWhenWritable == true {
            _ = reads(connection) { readable(connection) }
        }
        if event.isBroken && !connection.watchesReads { return reportsBroken(connection) }
        let mustLook = event.isBroken && !event.isWritable
        if (event.isReadable || mustLook) && connection.phase != .dead {
            // Otherwise the connection waits in its tenant's `row`.
            _ = reads(connection) { readable(connection) }
        }
    }

    private func handleSignals() {
        while true {
            let number = thicket_read_signal(signalDescriptor)
            guard number != 0 else { return }
            if number == SIGHUP {
                delegate?.signaled(.reload)
            } else if isStopping || isQuiet {
                abort()
            } else {
                delegate?.signaled(.terminate)
            }
        }
    }

    /// Waits for events. While another thread's answer is due, it polls without sleeping: a wake-up takes as long as
    /// the sync of a fast disk.
    private func waitForEvents() -> Int {
        let patience = waitMilliseconds()
        if patience != 0, let end = delegate?.expectsAnswerUntil {
            while thicket_monotonic_ns() < end {
                let count = poller.wait(milliseconds: 0)
                if count > 0 { return count }
            }
        }
        return poller.wait(milliseconds: patience)
    }

    func waitMilliseconds() -> Int32 {
        if !ended.isEmpty || !resuming.isEmpty || !dirty.isEmpty || !due.isEmpty || isFinished { return 0 }
        if !broken.isEmpty || !hungry.isEmpty || sweepNext != nil { return 0 }
        var deadline = isStopping ? stopDeadline : .max
        if connectionCount > 0 { deadline = min(deadline, nextSweep) }
        if let timer = timers.nextDeadline() { deadline = min(deadline, timer) }
        guard deadline != .max else { return -1 }
        let nanoseconds = max(0, deadline - thicket_monotonic_ns())
        return Int32(min(60_000, (nanoseconds + 999_999) / 1_000_000))
    }

    /// Reports WebSockets that ended to the delegate. Never called from inside a delegate call.
    func reportEnds() {
        while !ended.isEmpty {
            let batch = ended
            ended = []
            for (id, end) in batch { delegate?.closed(id, end) }
        }
    }

    func lookup(_ id: ConnectionID) -> Connection? {
        let slot = Int(id.slot)
        guard slot >= 0 && slot < connections.count, let connection = connections[slot] else { return nil }
        return connection.id.serial == id.serial ? connection : nil
    }

    func checkThread() {
        assert(pthread_equal(thread, pthread_self()) != 0, "a loop is used on the thread that runs it")
    }
}
