internal import CThicketNet
import Glibc
import ThicketProtocol

extension EventLoop {
    /// Queues a frame that many connections may share; it leaves at the end of the turn.
    public func send(_ id: ConnectionID, _ frame: SharedFrame) {
        checkThread()
        guard let connection = lookup(id), connection.phase == .open else { return }
        enqueue(connection, frame.bytes)
    }

    /// Queues a text message. The caller guarantees that it is UTF-8.
    public func send(_ id: ConnectionID, text: [UInt8]) { send(id, SharedFrame(text: text)) }

    /// Queues a text message. The caller guarantees that it is UTF-8.
    public func send(_ id: ConnectionID, text: UnsafeRawBufferPointer) { send(id, SharedFrame(text: text)) }

    /// Queues a binary message.
    public func send(_ id: ConnectionID, binary: UnsafeRawBufferPointer) {
        send(id, SharedFrame(encoded: WebSocketWriter.frame(.binary, binary)))
    }

    /// Bytes queued for a connection that its socket has not accepted yet.
    public func pendingBytes(_ id: ConnectionID) -> Int { lookup(id)?.outbox.count ?? 0 }

    /// Queues bytes, or closes the connection when its reader is too slow for what is already queued.
    func enqueue(_ connection: Connection, _ bytes: [UInt8]) {
        if connection.outbox.count > pendingMax { flush(connection) }
        guard connection.phase != .dead, !connection.isGone else { return }
        guard connection.outbox.count <= pendingMax else { return giveUp(connection) }
        if connection.tenant.pending > settings.pendingBytesPerTenantMax,
            connection.outbox.count > settings.pendingBytesFree
        {
            flush(connection)
            guard connection.phase != .dead, !connection.isGone else { return }
            if connection.outbox.count > settings.pendingBytesFree {
                metrics.limitHit(.userPendingBytes)
                return giveUp(connection)
            }
        }
        connection.outbox.append(bytes)
        countPending(connection, bytes.count)
        markDirty(connection)
    }

    /// Bytes that one connection may have queued; lower while all connections together have too much queued.
    private var pendingMax: Int {
        pendingTotal > settings.pendingBytesTotalMax ? settings.pendingBytesPause : settings.pendingBytesMax
    }

    func countPending(_ connection: Connection, _ change: Int) {
        pendingTotal += change
        connection.tenant.pending += change
        metrics.outboxBytes.add(change)
    }

    func markDirty(_ connection: Connection) {
        guard !connection.isDirty else { return }
        connection.isDirty = true
        dirty.append(connection)
    }

    /// Sends a slow reader only the rest of the frame in progress and the advice to reconnect.
    private func giveUp(_ connection: Connection) {
        metrics.outboxOverflows.add()
        guard connection.phase == .open else { return drop(connection, .slowReader) }
        let before = connection.outbox.count
        connection.outbox.dropUnstarted(keeping: connection.tls?.committed ?? 0)
        let farewell = WebSocketWriter.close(.tryAgainLater, reason: "too slow")
        connection.outbox.append(farewell)
        countPending(connection, connection.outbox.count - before)
        metrics.webSocketErrors.add(1, .tryAgainLater)
        markDirty(connection)
        end(connection, .slowReader)
        drain(connection)
    }

    /// Writes everything that the turn has queued.
    package func flushDirty() {
        let batch = dirty
        dirty = []
        for connection in batch {
            connection.isDirty = false
            if !writes(connection, { flush(connection, most: Self.writtenPerTurn) }), !connection.isTenantThrottled {
                markDirty(connection)
            }
        }
    }

    /// Writes until the queue is empty, the socket accepts no more, or `most` bytes are written; the next turn
    /// continues.
    func flush(_ connection: Connection, most: Int = .max) {
        guard connection.phase != .dead else { return }
        let before = connection.outbox.count
        while !connection.outbox.isEmpty && !connection.isBlocked {
            guard before - connection.outbox.count < most else {
                markDirty(connection)
                break
            }
            guard writeOnce(connection) else { break }
        }
        guard connection.phase != .dead else { return }
        if connection.outbox.isEmpty, let exchange = connection.exchange, exchange.download != nil {
            continueDownload(connection, exchange, most: most - before)
            guard connection.phase != .dead else { return }
        }
        if connection.outbox.isEmpty && connection.phase == .draining { finishWriting(connection) }
        if connection.isThrottled && connection.outbox.count <= settings.pendingBytesPause {
            connection.isThrottled = false
            resume(connection)
        }
        watch(connection)
    }

    /// - Returns: whether to continue.
    private func writeOnce(_ connection: Connection) -> Bool {
        if let stream = connection.tls { return writeOnce(connection, stream) }
        let slot = connection.id.slot
        let (written, asked) = connection.outbox.withNext(gather: gather) { bytes in
            // The kernel copies as much as it has room for in one call, which can be megabytes.
            let part = min(bytes.count, Self.writtenPerTurn)
            return (thicket_send(slot, bytes.baseAddress, part), part)
        }
        guard written > 0 else {
            if errno == EINTR { return true }
            if errno == EAGAIN {
                connection.isBlocked = true
            } else {
                refusesBytes(connection)
            }
            return false
        }
        wrote(connection, written)
        if written < asked { connection.isBlocked = true }
        return true
    }

    /// Accounts for bytes that the socket accepted.
    func wrote(_ connection: Connection, _ written: Int) {
        connection.outbox.consume(written)
        metrics.sentBytes.add(written)
        metrics.socketWrites.add()
        countPending(connection, -written)
        if connection.phase == .open || connection.exchange?.stream != nil { return touch(connection) }
        // A client must also read its response at the minimum data rate; after the last byte other timeouts apply.
        let isAwaited = connection.exchange?.awaited != nil && connection.exchange?.download == nil
        guard !connection.outbox.isEmpty, connection.phase != .closing, !isAwaited else { return }
        holdToDataRate(connection, written, patience: settings.keepAliveTimeout)
    }

    /// Updates epoll's interest in a connection if it has changed.
    func watch(_ connection: Connection) {
        guard connection.phase != .dead else { return }
        let isHeld = isQuiet && !isStopping && connection.phase != .draining && connection.phase != .closing
        let reads =
            (connection.mayConsume || connection.isWatched) && !connection.sawEnd && connection.backlog.isEmpty
            && !isHeld && !connection.isQueued
        let writes = connection.isBlocked && !connection.isTenantThrottled
        // Broken or not, the connection stays in the row, or waits until the delegate accepts input again.
        let once = (connection.isQueued || (connection.isGone || connection.isBroken) && !reads) && !writes
        let registered = (connection.watchesReads, connection.watchesWrites, connection.watchesOnce)
        guard registered != (reads, writes, once) else { return }
        (connection.watchesReads, connection.watchesWrites, connection.watchesOnce) = (reads, writes, once)
        poller.change(connection.id.slot, reads: reads, writes: writes, once: once, token: connection.id.token)
    }
}
