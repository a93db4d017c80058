internal import CThicketCores
import Glibc

/// Has the thread that made it give way to others that are ready, again and again while it works.
///
/// Linux hands the core of a thread that computes to one that has just been woken only if that one has had less than its
/// part of late; if not, it waits for the next tick, up to 4 ms, whoever comes first. A thread that gives way waits for
/// nobody who does not want the core.
struct Pacer: ~Copyable {
    /// Sends SIGURG to the thread, whose handler yields. A process' first timer is number 0, which is nil here.
    private let timer: timer_t?
    /// False where the kernel gives no timer: others wait for its ticks.
    private let hasTimer: Bool

    /// For the calling thread, the only one that may use it.
    init() {
        var timer: timer_t?
        hasTimer = thicket_make_pacer(&timer) == 0
        self.timer = timer
    }

    deinit { if hasTimer { timer_delete(timer) } }

    /// Nanoseconds between two turns. A turn takes some 20 microseconds: a tenth of what is computed for long (0073).
    private static let interval: Int = 200_000

    /// Whether the timer runs now.
    var isPacing: Bool { hasTimer && thicket_is_pacing(timer) != 0 }

    func working<Result>(_ body: () -> Result) -> Result {
        guard hasTimer else { return body() }
        thicket_pace(timer, Self.interval)
        defer { thicket_pace(timer, 0) }
        return body()
    }
}
