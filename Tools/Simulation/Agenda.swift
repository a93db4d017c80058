/// The planned events in order of time; events of one moment in the order in which they were planned.
final class Agenda {
    private struct Entry {
        let time: Int64
        let serial: UInt64
        let body: () -> Void

        func isBefore(_ other: Entry) -> Bool { (time, serial) < (other.time, other.serial) }
    }

    /// Microseconds of virtual time.
    private(set) var now: Int64 = 0
    private var serial: UInt64 = 0
    /// A binary heap, the next entry first.
    private var heap = [Entry]()

    /// Plans `body`; a time in the past means now, after what is already planned for now.
    func at(_ time: Int64, _ body: @escaping () -> Void) {
        serial += 1
        heap.append(Entry(time: max(time, now), serial: serial, body: body))
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Executes the next event, if it is due by `limit`.
    /// - Returns: whether an event was executed; if not, the clock is at `limit`.
    func step(until limit: Int64) -> Bool {
        guard let first = heap.first, first.time <= limit else {
            now = max(now, limit)
            return false
        }
        removeFirst()
        now = first.time
        first.body()
        return true
    }

    /// Drops all planned events, which breaks the reference cycles of their closures.
    func clear() { heap = [] }

    private func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { return }
            let right = left + 1
            let least = right < heap.count && heap[right].isBefore(heap[left]) ? right : left
            guard heap[least].isBefore(heap[parent]) else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
