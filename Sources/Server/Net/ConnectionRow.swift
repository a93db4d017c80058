/// Connections that wait until their group has time to read them, those first that came first.
///
/// Who leaves is let go of at once: thousands may leave, and to free them all when their places are met would take as
/// long as many turns. Their places are given up when there are twice as many as those that stand there, and 64.
final class ConnectionRow {
    private static let leastRoom = 64

    /// nil: left, or handed out.
    private var places = [Connection?]()
    /// Before it nobody stands.
    private var head = 0
    /// So many places before the empty ones are given up.
    private var room = leastRoom
    /// Those that stand here.
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }
    /// With the empty ones.
    var placeCount: Int { places.count - head }

    /// Puts a connection at the end. It stands in no other row from now on.
    func append(_ connection: Connection) {
        if places.count >= room { closeUp() }
        connection.row?.remove(connection)
        (connection.row, connection.place) = (self, places.count)
        places.append(connection)
        count += 1
    }

    /// Lets a connection leave that stands here.
    func remove(_ connection: Connection) {
        guard connection.row === self else { return }
        connection.row = nil
        places[connection.place] = nil
        count -= 1
        if isEmpty { (places, head, room) = ([], 0, Self.leastRoom) }
    }

    /// Takes out the first.
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
