internal import CThicketNet

// Peers that are gone. Input that reached our kernel earlier can still be read, whether the peer closed or reset the
// connection, and also after a write to it failed (0019 records what was tried): the input is handled in its turn, then
// the connection ends.
extension EventLoop {
    /// Handles a broken connection that is not being read.
    func broke(_ connection: Connection) {
        if connection.phase == .open, hasInput(connection) {
            onlyRead(connection)
        } else if !isHandledInTurn(connection) {
            drop(connection, .vanished)
        }
    }

    /// Handles a failed write: the peer takes no answer. The kernel may still hold input of this connection.
    func refusesBytes(_ connection: Connection) {
        guard connection.phase == .open else { return drop(connection, .vanished) }
        onlyRead(connection)
    }

    /// The peer of a WebSocket is gone: nothing more is written, and its earlier messages are handled as usual. While
    /// the delegate has paused the connection, it stays for the idle timeout at most.
    private func onlyRead(_ connection: Connection) {
        guard !connection.isGone else { return }
        (connection.isGone, connection.isBlocked) = (true, false)
        countPending(connection, -connection.outbox.count)
        connection.outbox = .init()
        // This gives the input an end in every case.
        _ = thicket_shut(connection.id.slot)
        touch(connection)
        if connection.isThrottled {
            connection.isThrottled = false
            resume(connection)
        }
        watch(connection)
    }

    /// Whether a request is handled although its peer is gone. Requests of unauthenticated connections are not: their
    /// answers would be wasted work.
    private func isHandledInTurn(_ connection: Connection) -> Bool {
        guard connection.phase == .http, connection.tenant !== unauthenticated, connection.mayConsume else {
            return false
        }
        return (connection.isQueued || !connection.backlog.isEmpty) && hasInput(connection)
    }

    /// Whether received input was not handled yet. The kernel reports an error only after that input.
    private func hasInput(_ connection: Connection) -> Bool {
        connection.hasUnread || thicket_has_input(connection.id.slot) != 0
    }

    /// Whether received input waits for the server, not for its peer or the delegate.
    func waitsUnread(_ connection: Connection) -> Bool {
        guard !connection.isQueued else { return true }
        // TLS reads no further until the peer has taken pending TLS output.
        guard connection.mayConsume, connection.tls?.readsWhenWritable != true else { return false }
        return connection.hasUnread || connection.watchesReads && hasInput(connection)
    }
}
