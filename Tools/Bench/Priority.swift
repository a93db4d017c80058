import Glibc

/// What attackers and floods have of the processor.
enum Priority {
    /// `SCHED_IDLE` of Linux, which the C library's headers hide from Swift.
    private static let idlePolicy: Int32 = 5

    /// Leaves the calling thread what all others leave of the processor. One of low priority would keep a core for its whole slice,
    /// 1.5 ms and more, while the server's thread waits behind it: that is this machine's doing and not the attack's.
    static func yieldToAll() {
        if !lower(0) { _ = nice(19) }
    }

    /// The same for the first thread of another process, or for the calling thread (0).
    @discardableResult static func lower(_ process: pid_t) -> Bool {
        var none: sched_param = .init()
        return sched_setscheduler(process, idlePolicy, &none) == 0
    }

    /// Gives all threads of a process that is about to be ended their usual share again; without CAP_SYS_NICE the kernel does not.
    ///
    /// Where something else keeps the core busy, too, a thread that has what others leave stops for minutes amid giving up its
    /// entry of `/proc`; whoever waits for its process turns round in the kernel for as long, and no signal ends that.
    static func raise(_ process: pid_t) {
        var none: sched_param = .init()
        for thread: pid_t in Watchdog.numbers(in: "/proc/\(process)/task") {
            sched_setscheduler(thread, SCHED_OTHER, &none)
        }
    }
}
