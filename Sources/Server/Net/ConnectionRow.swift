/// Connections that wait until their group has time to read them, those first that came first.
///
/// Holds at most twice as many as stood in it when it was last looked through, and 64: those that leave it are taken out then,
/// and not before their turn otherwise.
final class ConnectionRow {
    private static let leastRoom: Int = 64
    /// Those that have left and are met, and freed, in one go.
    private static let metMax: Int = 64

    private struct Entry {
        let connection: Connection
        /// As the connection says it while it stands there: whoever left and came back stands at the end.
        let ticket: UInt64
    }

    /// nil: handed out.
    private var waiting: [Entry?] = []
    /// Those before it have been handed out.
    private var head: Int = 0
    /// So many before it is looked through.
    private var room: Int = leastRoom
    private var lastTicket: UInt64 = 0

    /// Whether nobody waits; those that have left count until they are met.
    var isEmpty: Bool { head == waiting.count }
    /// Those that wait, and those that have left and were not met yet.
    var count: Int { waiting.count - head }

    /// Puts a connection at the end. It stands in no other row from now on.
    func append(_ connection: Connection) {
        if waiting.count >= room { lookThrough() }
        lastTicket += 1
        (connection.row, connection.ticket) = (self, lastTicket)
        waiting.append(Entry(connection: connection, ticket: lastTicket))
    }

    /// Takes out the first; nil also where more have left before it than are met in one go.
    func popFirst() -> Connection? {
        for _: Int in 0..<min(Self.metMax, count) {
            let entry: Entry? = waiting[head]
            waiting[head] = nil
            head += 1
            if head == waiting.count { (waiting, head, room) = ([], 0, Self.leastRoom) }
            if let entry, stands(entry) {
                entry.connection.row = nil
                return entry.connection
            }
        }
        return nil
    }

    private func stands(_ entry: Entry) -> Bool {
        entry.connection.row === self && entry.connection.ticket == entry.ticket
    }

    private func lookThrough() {
        waiting = waiting[head...].filter { $0.map(stands) ?? false }
        head = 0
        room = max(Self.leastRoom, 2 * waiting.count)
    }
}
