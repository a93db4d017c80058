internal import CThicketCores
import Glibc

/// Makes the thread that created it yield to other ready threads at intervals while it works.
///
/// Linux gives the core of a computing thread to a newly woken one at once only if that one has had less than its
/// share lately; otherwise the woken thread waits for the next tick, up to 4 ms. A thread that yields loses no time
/// when no other thread wants the core.
package struct PreemptionTimer: ~Copyable {
    /// Its timer sends SIGURG to the thread, and the signal handler yields.
    private let timer: UnsafeMutablePointer<thicket_preemption_timer>
    /// False when the kernel gives no timer: other threads then wait for its ticks.
    private let hasTimer: Bool

    /// For the calling thread; only that thread may use it.
    package init() {
        timer = .allocate(capacity: 1)
        timer.initialize(to: thicket_preemption_timer())
        timer.pointee.first = Self.first
        timer.pointee.next = Self.next
        hasTimer = thicket_make_preemption_timer(timer) == 0
    }

    deinit {
        if hasTimer { timer_delete(timer.pointee.timer) }
        timer.deallocate()
    }

    /// Nanoseconds from the start of work to the first yield, and between two yields of the same work. A yield
    /// takes some 20 microseconds: a tenth of a long computation (0019).
    private static let first = 200_000
    private static let next = 200_000

    /// Whether the timer is set, so that the thread will yield.
    package var isPacing: Bool { hasTimer && timer.pointee.works != 0 && timer.pointee.is_set != 0 }

    /// Number of yields so far.
    package var turns: Int { Int(timer.pointee.turns) }

    /// Number of times the timer was set.
    package var sets: Int { Int(timer.pointee.sets) }

    /// Runs work that may take long. Work that ends before its first yield usually costs no system call: the timer
    /// is set only when it is not running, and is not cancelled.
    package func working<Result>(_ body: () -> Result) -> Result {
        guard hasTimer else { return body() }
        thicket_preemption_timer_begin(timer)
        defer { thicket_preemption_timer_end(timer) }
        return body()
    }
}
