import CThicketCores
import Glibc
import Testing
@testable import ThicketPlatform
@testable import ThicketScheduling
import ThicketTestSupport

@testable import ThicketServer

/// Threads that compute for long, and others on the same core.
struct PreemptionTimerTests {
    private final class Seen: @unchecked Sendable {
        // Each is written by one thread and read after that was joined.
        var switches = 0
        var read = 0
        var isKept = true
        /// Before, while and after it works.
        var isPacing: [Bool] = []
    }

    @Test("a working thread yields its core again and again, and its timer stops when the work is done")
    func givesWay() throws {
        let mask: UInt64 = thicket_cores()
        try #require(mask != 0, "the kernel does not say which cores there are")
        let core: UInt64 = mask & (0 &- mask)
        let (seen, ended): (Seen, BlockingQueue<Bool>) = (.init(), .init(bound: 1))
        // Another thread always wants the core.
        let other = OwnThread("other") {
            guard thicket_use_cores(core) == 0 else { return }
            while ended.takeAll(until: .zero).isEmpty {}
        }
        let worker = OwnThread("worker") {
            seen.isKept = thicket_use_cores(core) == 0
            let pacer = PreemptionTimer()
            seen.isPacing.append(pacer.isPacing)
            seen.switches = pacer.working {
                seen.isPacing.append(pacer.isPacing)
                return Self.timesOtherCame()
            }
            seen.isPacing.append(pacer.isPacing)
        }
        worker.join()
        ended.add(true)
        other.join()
        try #require(seen.isKept)
        #expect(seen.isPacing == [false, true, false])
        // Of 200; the kernel's own time slices are some milliseconds.
        #expect(seen.switches > 40)
    }

    /// Computes for 40 ms of processor time.
    /// - Returns: how often another thread had the core meanwhile.
    private static func timesOtherCame() -> Int {
        let before: Int = switches()
        let end: Int64 = SystemClock.threadTime() + 40_000_000
        while SystemClock.threadTime() < end {}
        return switches() - before
    }

    private static func switches() -> Int {
        var usage = rusage()
        // 1 is RUSAGE_THREAD, which the C library hides.
        getrusage(1, &usage)
        return usage.ru_nivcsw
    }

    @Test("every timer of a process works, including the first")
    func first() {
        // One of them may have the process' timer number 0.
        for _ in 0..<3 {
            let pacer = PreemptionTimer()
            #expect(pacer.working { pacer.isPacing } && !pacer.isPacing)
        }
    }

    @Test("many short pieces of work set the timer no more often than it can expire")
    func short() {
        let pacer = PreemptionTimer()
        let begin: Int64 = SystemClock.monotonic()
        var sum = 0
        for number: Int in 0..<20_000 { sum += pacer.working { number & 1 } }
        let passed = Int(SystemClock.monotonic() - begin)
        #expect(sum == 10_000)
        // An expiry between two pieces makes the next one set the timer again; an expiry within a piece sets it.
        #expect(pacer.sets <= 2 + 2 * passed / 200_000)
    }

    @Test("a timer that expires after the end of the work does not yield")
    func over() {
        let pacer = PreemptionTimer()
        pacer.working {}
        let turns: Int = pacer.turns
        let end: Int64 = SystemClock.threadTime() + 2_000_000
        while SystemClock.threadTime() < end {}
        #expect(pacer.turns == turns)
    }

    @Test("the timer does not interrupt a blocking read")
    func waits() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        let (reading, writing): (Int32, Int32) = (ends[0], ends[1])
        defer { for end: Int32 in [reading, writing] { close(end) } }
        let seen = Seen()
        let (began, reader): (BlockingQueue<Bool>, OwnThread) = Self.reader(of: reading, seen)
        _ = began.takeAll()
        // Many expiries of the timer.
        let end: Int64 = SystemClock.monotonic() + 10_000_000
        while SystemClock.monotonic() < end { OwnThread.yield() }
        #expect(write(writing, [7], 1) == 1)
        reader.join()
        #expect(seen.read == 1)
    }

    private static func reader(of descriptor: Int32, _ seen: Seen) -> (BlockingQueue<Bool>, OwnThread) {
        let began = BlockingQueue<Bool>(bound: 1)
        let thread = OwnThread("reader") {
            let pacer = PreemptionTimer()
            began.add(true)
            var byte: UInt8 = 0
            seen.read = pacer.working { read(descriptor, &byte, 1) }
        }
        return (began, thread)
    }
}
