/// A first-in, first-out queue. It keeps no reference to elements that were taken: an element may be large, and from
/// then on its memory is counted for its receiver.
struct Deque<Element> {
    /// nil before index `start`.
    private var places = [Element?]()
    private var start = 0

    /// Memory of taken places is released when this many, and at least half of all places, are empty.
    private static var emptyMax: Int { 1_024 }

    var count: Int { places.count - start }
    var isEmpty: Bool { count == 0 }

    /// - Parameter place: distance from the front, below `count`.
    subscript(place: Int) -> Element {
        guard let element = places[start + place] else { preconditionFailure("handed out already") }
        return element
    }

    mutating func append(_ element: Element) { places.append(element) }

    /// Puts elements back to the front, in this order.
    mutating func putBack(_ elements: [Element]) {
        places.replaceSubrange(..<start, with: elements)
        start = 0
    }

    mutating func takeFirst() -> Element? { takeFirst(1).first }

    /// - Parameter number: at most `count` elements are returned.
    mutating func takeFirst(_ number: Int) -> [Element] {
        var taken = [Element]()
        for _ in 0..<min(number, count) {
            taken.append(self[0])
            places[start] = nil
            start += 1
        }
        if isEmpty {
            (places, start) = ([], 0)
        } else if start >= Self.emptyMax, start * 2 >= places.count {
            places.removeFirst(start)
            start = 0
        }
        return taken
    }
}
