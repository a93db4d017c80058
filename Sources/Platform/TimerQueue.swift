/// Identifies a timer for `EventLoop.cancel`.
public struct TimerID: Hashable, Sendable {
    package let number: UInt64
}

/// Actions scheduled for times: a binary heap by deadline, then by order of scheduling. It reads no clock.
package struct TimerQueue {
    private struct Entry {
        let deadline: Int64
        let number: UInt64
        func isBefore(_ other: Entry) -> Bool { (deadline, number) < (other.deadline, other.number) }
    }

    private var heap = [Entry]()
    /// Action by timer. Cancelled timers are missing here and leave the heap when they reach its top.
    private var work = [UInt64: () -> Void]()
    private var lastNumber: UInt64 = 0

    package init() {}

    package var count: Int { work.count }

    package mutating func schedule(at deadline: Int64, _ action: @escaping () -> Void) -> TimerID {
        lastNumber += 1
        work[lastNumber] = action
        heap.append(Entry(deadline: deadline, number: lastNumber))
        siftUp(heap.count - 1)
        return TimerID(number: lastNumber)
    }

    package mutating func cancel(_ timer: TimerID) {
        guard work.removeValue(forKey: timer.number) != nil else { return }
        if heap.count > 64 + 2 * work.count { rebuild() }
    }

    /// When the next timer is due.
    package mutating func nextDeadline() -> Int64? {
        dropCancelled()
        return heap.first?.deadline
    }

    /// Takes the earliest timer that is due by `now`.
    package mutating func takeDue(_ now: Int64) -> (() -> Void)? {
        dropCancelled()
        guard let first = heap.first, first.deadline <= now else { return nil }
        removeFirst()
        return work.removeValue(forKey: first.number)
    }

    private mutating func dropCancelled() {
        while let first = heap.first, work[first.number] == nil { removeFirst() }
    }

    /// Removes cancelled timers from the heap once they outnumber the active ones.
    private mutating func rebuild() {
        let living = heap.filter { work[$0.number] != nil }
        heap = []
        for entry in living {
            heap.append(entry)
            siftUp(heap.count - 1)
        }
    }

    private mutating func removeFirst() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].isBefore(heap[least]) { least = child }
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }
}
