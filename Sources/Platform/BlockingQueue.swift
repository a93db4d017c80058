/// A bounded queue from any thread to one reading thread.
public final class BlockingQueue<Element: Sendable>: @unchecked Sendable {
    // `waiting` and `isClosed` are accessed only inside `monitor`.
    @usableFromInline let monitor = Monitor()
    @usableFromInline let bound: Int
    @usableFromInline var waiting = [Element]()
    @usableFromInline var isClosed = false

    /// - Parameter bound: most values kept; further ones are refused.
    @inlinable public init(bound: Int) { self.bound = bound }

    /// Adds one value. Never waits.
    /// - Returns: false when the queue is full or closed.
    @discardableResult
    @inlinable public func add(_ element: Element) -> Bool {
        monitor.locked {
            guard !isClosed, waiting.count < bound else { return false }
            waiting.append(element)
            monitor.wakeOne()
            return true
        }
    }

    /// Ends the queue: a reader gets the values already in it, then none.
    @inlinable public func close() {
        monitor.locked { isClosed = true }
        monitor.wakeAll()
    }

    /// Whether the queue is closed and empty.
    @inlinable public var isOver: Bool { monitor.locked { isClosed && waiting.isEmpty } }

    /// Removes all values, waiting for the first until `deadline` on the monotonic clock (nil: without end). Empty
    /// when the time is over or the queue is closed and empty.
    @inlinable public func takeAll(until deadline: Duration? = nil) -> [Element] {
        let end = deadline?.nanoseconds ?? .max
        return monitor.locked {
            while waiting.isEmpty, !isClosed, end == .max || SystemClock.monotonic() < end {
                monitor.wait(until: end)
            }
            defer { waiting = [] }
            return waiting
        }
    }
}
