internal import CThicketCores
import Glibc

/// Has the thread that made it give way to others that are ready, again and again while it works.
///
/// Linux hands the core of a thread that computes to one that has just been woken only if that one has had less than
/// its part of late; if not, it waits for the next tick, up to 4 ms, whoever comes first. A thread that gives way waits
/// for nobody who does not want the core.
struct Pacer: ~Copyable {
    /// Its timer sends SIGURG to the thread, whose handler yields.
    private let pacer: UnsafeMutablePointer<thicket_pacer>
    /// False where the kernel gives no timer: others wait for its ticks.
    private let hasTimer: Bool

    /// For the calling thread, the only one that may use it.
    init() {
        pacer = .allocate(capacity: 1)
        pacer.initialize(to: thicket_pacer())
        pacer.pointee.first = Self.first
        pacer.pointee.next = Self.next
        hasTimer = thicket_make_pacer(pacer) == 0
    }

    deinit {
        if hasTimer { timer_delete(pacer.pointee.timer) }
        pacer.deallocate()
    }

    /// Nanoseconds from the begin of work to the first turn, and between two turns of the same work. A turn takes some
    /// 20 microseconds: a tenth of what is computed for long (0073).
    private static let first = 200_000
    private static let next = 200_000

    /// Whether a turn will come.
    var isPacing: Bool { hasTimer && pacer.pointee.works != 0 && pacer.pointee.is_set != 0 }

    /// Turns so far in which it gave way.
    var turns: Int { Int(pacer.pointee.turns) }

    /// How often the kernel was asked for the next turn.
    var sets: Int { Int(pacer.pointee.sets) }

    /// Does work that may last. What ends before its turn costs no call to the kernel but for the first of many: the
    /// timer is set when none is, and not taken back.
    func working<Result>(_ body: () -> Result) -> Result {
        guard hasTimer else { return body() }
        thicket_pacer_begin(pacer)
        defer { thicket_pacer_end(pacer) }
        return body()
    }
}
