import Glibc
import Synchronization
import Testing

@testable import ThicketOnions

@Suite("Threads that stretch keys", .timeLimit(.minutes(15)))
struct NoteWorkersTests {
    /// A barrier: threads continue once `count` of them wait at it.
    ///
    /// `@unchecked`: the kernel's barrier is made for many threads; its memory never moves.
    private final class Gate: @unchecked Sendable {
        private let barrier: UnsafeMutablePointer<pthread_barrier_t> = .allocate(capacity: 1)
        init(_ count: Int) { pthread_barrier_init(barrier, nil, UInt32(count)) }
        deinit {
            pthread_barrier_destroy(barrier)
            barrier.deallocate()
        }

        func wait() { pthread_barrier_wait(barrier) }
    }

    private final class Tally: Sendable {
        private let state: Mutex<(now: Int, most: Int, all: Int)> = Mutex((0, 0, 0))
        var most: Int { state.withLock { $0.most } }
        var all: Int { state.withLock { $0.all } }

        func begin() {
            state.withLock { state in
                state.now += 1
                state.all += 1
                state.most = max(state.most, state.now)
            }
        }
        func end() { state.withLock { $0.now -= 1 } }
    }

    @Test("as many jobs run at once as there are threads, more than the pool of all tasks has, and never more")
    func atOnce() async {
        // Far more than the machine has cores: on the shared pool they would wait for each other for ever.
        let count = 64
        let (workers, gate, tally): (NoteWorkers, Gate, Tally) = (.init(count: count), .init(count), .init())
        await withTaskGroup { group in
            for _ in 0..<count * 2 {
                group.addTask {
                    await workers.run {
                        tally.begin()
                        gate.wait()
                        tally.end()
                    }
                }
            }
        }
        #expect(tally.most == count && tally.all == count * 2)
    }

    @Test("a single thread runs 20 jobs one after the other and returns each job's own answer")
    func inOrder() async {
        let (workers, tally): (NoteWorkers, Tally) = (.init(count: 1), .init())
        for number in 0..<20 {
            let answer = await workers.run {
                tally.begin()
                defer { tally.end() }
                return number * 2
            }
            #expect(answer == number * 2)
        }
        #expect(tally.most == 1 && tally.all == 20)
    }

    private final class Flag: Sendable {
        private let state = Atomic(false)
        var isSet: Bool { state.load(ordering: .acquiring) }
        func set() { state.store(true, ordering: .releasing) }
    }

    @Test("settle() waits for the running job")
    func settling() async {
        let (workers, gate): (NoteWorkers, Gate) = (.init(count: 2), .init(2))
        let (isDone, isSettled): (Flag, Flag) = (.init(), .init())
        let running: Task<Void, Never> = Task {
            await workers.run {
                gate.wait()
                gate.wait()
                isDone.set()
            }
        }
        // The job runs now and continues at the next barrier.
        await NoteWorkers(count: 1).run { gate.wait() }
        let settling = Task {
            await workers.settle()
            let wasDone = isDone.isSet
            isSettled.set()
            return wasDone
        }
        #expect(!isDone.isSet && !isSettled.isSet)
        await NoteWorkers(count: 1).run { gate.wait() }
        #expect(await settling.value, "not before it was done")
        await running.value
        await workers.settle()
    }
}
