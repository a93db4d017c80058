/// A first-in, first-out queue of connections that wait until their tenant has time to read them.
///
/// A connection that leaves is released at once: thousands may leave, and to release them only when their places are
/// reached would take as long as many turns. Empty places are removed when the queue has twice as many places as
/// connections, and at least 64.
final class ReadyQueue {
    private static let leastRoom = 64

    /// nil: left or taken.
    private var places = [Connection?]()
    /// Index of the first place that may hold a connection.
    private var head = 0
    /// Number of places at which empty ones are removed.
    private var room = leastRoom
    /// Number of connections in the queue.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// Number of places, including empty ones.
    var placeCount: Int { places.count - head }

    /// Appends a connection and removes it from any other queue.
    func append(_ connection: Connection) {
        if places.count >= room { closeUp() }
        connection.row?.remove(connection)
        (connection.row, connection.place) = (self, places.count)
        places.append(connection)
        count += 1
    }

    /// Removes a connection if it is in this queue.
    func remove(_ connection: Connection) {
        guard connection.row === self else { return }
        connection.row = nil
        places[connection.place] = nil
        count -= 1
        if isEmpty { (places, head, room) = ([], 0, Self.leastRoom) }
    }

    /// Removes and returns the first connection.
    func popFirst() -> Connection? {
        while head < places.count {
            let first = places[head]
            head += 1
            if let first {
                remove(first)
                return first
            }
        }
        return nil
    }

    private func closeUp() {
        places = places[head...].filter { $0 != nil }
        for (place, connection) in places.enumerated() { connection?.place = place }
        head = 0
        room = max(Self.leastRoom, 2 * places.count)
    }
}
