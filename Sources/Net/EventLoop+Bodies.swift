internal import CThicketNet
import Glibc
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

// Bodies that are not held in memory as a whole: requests whose body goes to the delegate in pieces, and answers whose
// body the delegate supplies in pieces. Both are bounded by back-pressure: a held body is not read from its socket, and
// the next piece of an answer is asked for when the previous one has left.
extension EventLoop {
    // MARK: Requests

    /// The head of a request has arrived whose body the delegate wants in pieces. The body is not read before
    /// `acceptBody`.
    func begin(_ request: HTTPRequest, length: Int, _ connection: Connection, _ exchange: HTTPExchange) {
        (exchange.incoming, exchange.isHeld) = (request, true)
        expire(connection, after: nil)
        delegate?.begins(request, length: length, on: connection.id)
    }

    /// Passes a piece on. The peer must keep the minimum data rate, as for every body.
    func deliver(
        _ piece: UnsafeRawBufferPointer, isLast: Bool, _ connection: Connection, _ exchange: HTTPExchange
    ) {
        holdToDataRate(connection, piece.count, patience: settings.requestTimeout)
        if isLast {
            (exchange.awaited, exchange.incoming) = (exchange.incoming, nil)
            expire(connection, after: nil)
        }
        delegate?.received(connection.id, body: piece, isLast: isLast)
    }

    /// Reads the body of the request that was reported by `LoopDelegate.begins`, or goes on after `holdBody`. The time
    /// until now does not count for the minimum data rate.
    public func acceptBody(_ id: ConnectionID) {
        checkThread()
        guard let connection = lookup(id), let exchange = connection.exchange, exchange.incoming != nil,
            exchange.isHeld
        else { return }
        exchange.isHeld = false
        expire(connection, after: settings.requestTimeout)
        if connection.backlog.isEmpty, exchange.requests.takeContinue() {
            enqueue(connection, HTTPResponse(status: 100).encoded(for: nil))
        }
        resume(connection)
    }

    /// Stops reading a body until `acceptBody`: what was passed on is not processed yet.
    public func holdBody(_ id: ConnectionID) {
        checkThread()
        guard let connection = lookup(id), let exchange = connection.exchange, exchange.incoming != nil else { return }
        exchange.isHeld = true
        expire(connection, after: nil)
        watch(connection)
    }

    // MARK: Answers

    /// Whether pieces of files can be sent to the connection (`BodyPiece.file`).
    public func sendsFiles(_ id: ConnectionID) -> Bool { lookup(id)?.tls == nil }

    /// Begins the answer to a request for which the delegate returned `.later`. Its body has `bodyLength` bytes and
    /// follows by `send(_:_:)`, one piece each time that the delegate is asked for one (`LoopDelegate.wantsBody`).
    ///
    /// If the peer ends first, its connection is dropped, and the delegate receives `closed`.
    public func begin(_ id: ConnectionID, _ response: HTTPResponse) {
        checkThread()
        guard let connection = lookup(id), let exchange = connection.exchange, let request = exchange.awaited,
            exchange.stream == nil, exchange.download == nil
        else { return }
        (exchange.download, exchange.isWatched) = (HTTPDownload(length: response.bodyLength ?? 0), true)
        var response = response
        secure(&response, connection)
        enqueue(connection, response.encoded(for: request, date: date.text(now)))
        expire(connection, after: settings.keepAliveTimeout)
        watch(connection)
    }

    /// Supplies the next piece of an answer; without a question for one it has no effect.
    public func send(_ id: ConnectionID, _ piece: BodyPiece) {
        checkThread()
        guard let connection = lookup(id), let download = connection.exchange?.download, download.isAsking,
            piece.count > 0, piece.count <= download.missing
        else { return }
        download.isAsking = false
        download.missing -= piece.count
        expire(connection, after: settings.keepAliveTimeout)
        switch piece {
        case .bytes(let bytes): enqueue(connection, bytes)
        case .file(let slice):
            download.file = slice
            markDirty(connection)
        }
    }

    /// Asks the delegate for the pieces that can be sent now. Never called from inside a delegate call.
    func askForBodies() {
        let batch = hungry
        hungry = []
        for id in batch where lookup(id) != nil { delegate?.wantsBody(id) }
    }

    /// Continues an answer whose earlier bytes have left: from the file, with a question to the delegate, or to its
    /// end.
    /// - Parameter most: bytes that may still be written in this turn.
    func continueDownload(_ connection: Connection, _ exchange: HTTPExchange, most: Int) {
        guard let download = exchange.download, !download.isAsking else { return }
        var room = most
        while let slice = download.file, !connection.isBlocked {
            guard room > 0 else { return markDirty(connection) }
            guard let sent = sendFile(connection, slice, most: room) else { return }
            download.sent(sent)
            room -= sent
        }
        guard download.file == nil, !connection.isBlocked else { return }
        if download.missing == 0 { return endAnswer(connection, exchange) }
        download.isAsking = true
        expire(connection, after: nil)
        hungry.append(connection.id)
    }

    /// - Returns: bytes that the socket accepted; nil when it accepts none now or the connection has ended.
    private func sendFile(_ connection: Connection, _ slice: FileSlice, most: Int) -> Int? {
        let asked = min(slice.count, most)
        let sent = thicket_sendfile(connection.id.slot, slice.file.descriptor, slice.offset, asked)
        guard sent > 0 else {
            if sent < 0, errno == EINTR { return 0 }
            if sent < 0, errno == EAGAIN {
                connection.isBlocked = true
            } else {
                // The peer is gone, or the file is shorter than it was: the answer cannot be completed.
                drop(connection, .vanished)
            }
            return nil
        }
        if sent < asked { connection.isBlocked = true }
        metrics.sentBytes.add(sent)
        metrics.socketWrites.add()
        holdToDataRate(connection, sent, patience: settings.keepAliveTimeout)
        return sent
    }

    private func endAnswer(_ connection: Connection, _ exchange: HTTPExchange) {
        guard let request = exchange.awaited else { return }
        (exchange.awaited, exchange.download, exchange.isWatched) = (nil, nil, false)
        if !request.keepsAlive || connection.sawEnd || isStopping { return drain(connection) }
        expire(connection, after: settings.keepAliveTimeout)
        resume(connection)
    }
}
