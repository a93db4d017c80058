/// What waits, first in, first out. What was handed out is not held: a piece may be large, and its memory is somebody
/// else's account from then on.
struct WaitingLine<Element> {
    /// nil before `start`.
    private var places = [Element?]()
    private var start = 0

    /// Places that were handed out are given back when there are so many, and half of all.
    private static var emptyMax: Int { 1_024 }

    var count: Int { places.count - start }
    var isEmpty: Bool { count == 0 }

    /// - Parameter place: 0 is the next one; below `count`.
    subscript(place: Int) -> Element {
        guard let element = places[start + place] else { preconditionFailure("handed out already") }
        return element
    }

    mutating func append(_ element: Element) { places.append(element) }

    /// These are the next ones, in this order.
    mutating func putBack(_ elements: [Element]) {
        places.replaceSubrange(..<start, with: elements)
        start = 0
    }

    mutating func takeFirst() -> Element? { takeFirst(1).first }

    /// - Parameter number: at most `count` of them come.
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
