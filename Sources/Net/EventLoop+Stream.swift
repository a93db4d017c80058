import ThicketProtocol

// Responses without a known length: the head first, then chunks. Their queue has the bounds of every connection.
extension EventLoop {
    /// Adds to the response that the delegate began with `.stream`; it leaves at the end of the turn. Without such a
    /// response, or with an empty chunk, it has no effect.
    public func write(_ id: ConnectionID, chunk: [UInt8]) {
        checkThread()
        guard let connection = lookup(id), let stream = connection.exchange?.stream else {
            return
        }
        sort(connection)
        write(chunk, stream, connection)
    }

    /// Ends the response that the delegate began with `.stream`. The connection accepts the next request if its peer
    /// wants that.
    ///
    /// - Parameter closes: ends the connection after the response too.
    public func finish(_ id: ConnectionID, closes: Bool = false) {
        checkThread()
        guard let connection = lookup(id), let exchange = connection.exchange,
            let stream = exchange.stream, let request = exchange.awaited
        else { return }
        if stream.isChunked { enqueue(connection, HTTPResponse.lastChunk) }
        guard connection.phase == .http else { return }
        metrics.httpStreams.subtract()
        (exchange.awaited, exchange.stream, exchange.isWatched) = (nil, nil, false)
        if closes || !stream.isChunked || !request.keepsAlive || connection.sawEnd || isStopping {
            drain(connection)
        } else {
            expire(connection, after: settings.keepAliveTimeout)
            resume(connection)
        }
    }

    func begin(
        _ response: HTTPResponse, for request: HTTPRequest, _ connection: Connection, _ exchange: HTTPExchange
    ) {
        let stream = HTTPStream(isChunked: request.minorVersion >= 1)
        (exchange.awaited, exchange.stream, exchange.isWatched) = (request, stream, true)
        metrics.httpStreams.add()
        var response = response
        secure(&response, connection)
        enqueue(connection, response.streamHead(for: request, date: date.text(now)))
        write(response.body, stream, connection)
        touch(connection)
    }

    private func write(_ chunk: [UInt8], _ stream: HTTPStream, _ connection: Connection) {
        // An empty chunk would end the body.
        guard !chunk.isEmpty else { return }
        enqueue(connection, stream.isChunked ? HTTPResponse.chunk(chunk) : chunk)
    }

    /// The connection is over, and with it a response without an end.
    func forgetStream(_ connection: Connection) {
        guard let exchange = connection.exchange, exchange.stream != nil else { return }
        exchange.stream = nil
        metrics.httpStreams.subtract()
    }
}
