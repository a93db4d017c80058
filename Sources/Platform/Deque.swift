/// A first-in, first-out queue. It keeps no reference to elements that were taken: an element may be large, and from
/// then on its memory is counted for its receiver.
public struct Deque<Element> {
    /// nil before index `start`.
    @usableFromInline var places = [Element?]()
    @usableFromInline var start = 0

    /// Memory of taken places is released when this many, and at least half of all places, are empty.
    @usableFromInline static var emptyMax: Int { 1_024 }

    /// An empty queue.
    @inlinable public init() {}

    /// Number of elements.
    @inlinable public var count: Int { places.count - start }
    /// Whether there is no element.
    @inlinable public var isEmpty: Bool { count == 0 }

    /// - Parameter place: distance from the front, below `count`.
    @inlinable public subscript(place: Int) -> Element {
        guard let element = places[start + place] else { preconditionFailure("handed out already") }
        return element
    }

    /// Adds an element at the end.
    @inlinable public mutating func append(_ element: Element) { places.append(element) }

    /// Puts elements back to the front, in this order.
    @inlinable public mutating func putBack(_ elements: [Element]) {
        places.replaceSubrange(..<start, with: elements)
        start = 0
    }

    /// Removes and returns the first element; nil when the queue is empty.
    @inlinable public mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        defer {
            places[start] = nil
            start += 1
            trim()
        }
        return places[start]
    }

    /// Removes and returns elements from the front.
    /// - Parameter number: at most `count` elements are returned.
    @inlinable public mutating func takeFirst(_ number: Int) -> [Element] {
        var taken = [Element]()
        for _ in 0..<Swift.min(number, count) {
            taken.append(self[0])
            places[start] = nil
            start += 1
        }
        trim()
        return taken
    }

    @inlinable public mutating func trim() {
        if isEmpty {
            (places, start) = ([], 0)
        } else if start >= Self.emptyMax, start * 2 >= places.count {
            places.removeFirst(start)
            start = 0
        }
    }
}
