/// Connections that wait until their group has time for them, those first that came first.
///
/// Holds at most twice as many as lived when it was last looked through, and 64: connections that end while they wait are
/// taken out then, and not before their turn otherwise.
struct ConnectionRow {
    private static let leastRoom: Int = 64

    private var waiting: [Connection] = []
    /// Those before it have been taken.
    private var head: Int = 0
    /// So many before it is looked through.
    private var room: Int = leastRoom

    /// Whether nobody waits; those that have ended count until they are met.
    var isEmpty: Bool { head == waiting.count }
    /// Those that wait, and those that have ended and were not met yet.
    var count: Int { waiting.count - head }

    mutating func append(_ connection: Connection) {
        if waiting.count >= room { lookThrough() }
        waiting.append(connection)
    }

    /// Takes the first that lives.
    mutating func popFirst() -> Connection? {
        while head < waiting.count {
            let connection: Connection = waiting[head]
            head += 1
            if head == waiting.count { (waiting, head, room) = ([], 0, Self.leastRoom) }
            if connection.phase != .dead { return connection }
        }
        return nil
    }

    private mutating func lookThrough() {
        waiting = waiting[head...].filter { $0.phase != .dead }
        head = 0
        room = max(Self.leastRoom, 2 * waiting.count)
    }
}
