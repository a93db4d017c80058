import Glibc

/// The processor priority of attackers and floods.
enum Priority {
    /// `SCHED_IDLE` of Linux, which the C library's headers hide from Swift.
    private static let idlePolicy: Int32 = 5

    /// Gives the calling thread only idle processor time. A thread of merely low priority would keep a core for its
    /// whole slice, 1.5 ms and more, while the server's thread waits for it: an effect of this machine and not of the
    /// attack.
    static func yieldToAll() {
        if !lower(0) { _ = nice(19) }
    }

    /// The same for the first thread of another process, or for the calling thread (0).
    @discardableResult static func lower(_ process: pid_t) -> Bool {
        var none = sched_param()
        return sched_setscheduler(process, idlePolicy, &none) == 0
    }

    /// Restores the usual share of all threads of a process that is about to be ended; needs CAP_SYS_NICE.
    ///
    /// If another program keeps the core busy, too, a thread with only idle time can stop for minutes while it gives up
    /// its entry of `/proc`; a process that waits for it loops in the kernel for as long, and no signal ends that.
    static func raise(_ process: pid_t) {
        var none = sched_param()
        for thread in Watchdog.numbers(in: "/proc/\(process)/task") {
            sched_setscheduler(thread, SCHED_OTHER, &none)
        }
    }
}
