internal import CThicketNet

// Peers that have gone. What reached our kernel before can still be read, whether they closed or reset the connection
// and also when a write to them has failed (0068 tells what was tried): it is handled in its turn, and the connection
// ends behind it.
extension EventLoop {
    /// A connection is broken of which nothing is read now.
    func broke(_ connection: Connection) {
        if connection.phase == .open, hasInput(connection) {
            onlyHear(connection)
        } else if !isHeardInTurn(connection) {
            drop(connection, .vanished)
        }
    }

    /// A write failed: nobody is there for an answer. Input may be at hand that is in no buffer of the connection's.
    func refusesBytes(_ connection: Connection) {
        guard connection.phase == .open else { return drop(connection, .vanished) }
        onlyHear(connection)
    }

    /// A WebSocket's peer has gone: nothing more is written, and what it said is handled as if it were there. While the
    /// delegate has paused it, it stays for the idle timeout at most.
    private func onlyHear(_ connection: Connection) {
        guard !connection.isGone else { return }
        (connection.isGone, connection.isBlocked) = (true, false)
        countPending(connection, -connection.outbox.count)
        connection.outbox = .init()
        // Whatever was the matter with it, its input has an end now.
        _ = thicket_shut(connection.id.slot)
        touch(connection)
        if connection.isThrottled {
            connection.isThrottled = false
            resume(connection)
        }
        watch(connection)
    }

    /// Whether a request is handled though its peer has gone. Those of strangers are not: they would have their answers
    /// made for nothing.
    private func isHeardInTurn(_ connection: Connection) -> Bool {
        guard connection.phase == .http, connection.group !== strangers, connection.mayConsume else { return false }
        return (connection.isQueued || !connection.backlog.isEmpty) && hasInput(connection)
    }

    /// Whether it has said something that was not handled yet. An error waits behind that.
    private func hasInput(_ connection: Connection) -> Bool {
        connection.hasUnread || thicket_has_input(connection.id.slot) != 0
    }

    /// Whether something that it said waits for the server, and not for its peer or the delegate.
    func waitsUnread(_ connection: Connection) -> Bool {
        guard !connection.isQueued else { return true }
        // TLS reads no further before the peer has taken what it must be told.
        guard connection.mayConsume, connection.tls?.readsWhenWritable != true else { return false }
        return connection.hasUnread || connection.watchesReads && hasInput(connection)
    }
}
