internal import CThicketNet
import Glibc
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

extension EventLoop {
    /// Stops passing this connection's messages to the delegate, including those already read, until `resumeReading`.
    public func pauseReading(_ id: ConnectionID) {
        checkThread()
        guard let connection = lookup(id), connection.phase == .open else { return }
        connection.isPaused = true
        watch(connection)
    }

    /// Continues after `pauseReading`, in this turn or the next.
    public func resumeReading(_ id: ConnectionID) {
        checkThread()
        guard let connection = lookup(id), connection.isPaused else { return }
        connection.isPaused = false
        touch(connection)
        resume(connection)
    }

    /// Reads once from the socket; epoll reports whether more is available.
    func readable(_ connection: Connection) {
        // Otherwise an event of another connection paused this one after epoll reported it; its input waits.
        guard connection.watchesReads else { return }
        if let greeting = connection.greeting, !greet(connection, greeting) { return }
        if let stream = connection.tls { return receive(connection, stream) }
        let count = thicket_receive(connection.id.slot, scratch.baseAddress, scratch.count)
        if count > 0 {
            metrics.receivedBytes.add(count)
            var input = UnsafeMutableRawBufferPointer(rebasing: scratch[..<count])
            received(connection, count)
            consume(connection, &input)
        } else if count == 0 {
            inputEnded(connection)
        } else if errno != EAGAIN && errno != EINTR {
            drop(connection, .vanished)
        }
    }

    /// Bytes arrived from a WebSocket's peer. They extend the deadline; within a message only as far as the minimum
    /// data rate allows.
    func received(_ connection: Connection, _ count: Int) {
        guard connection.phase == .open else { return }
        guard connection.gathered > 0 else { return touch(connection) }
        holdToDataRate(connection, count, patience: settings.idleTimeout)
    }

    /// Handles input as far as it may be handled now; the rest waits in the backlog.
    func consume(_ connection: Connection, _ input: inout UnsafeMutableRawBufferPointer) {
        messagesLeft = Self.messagesPerTurn
        while !input.isEmpty {
            guard connection.mayConsume, messagesLeft > 0 else {
                if connection.phase != .dead { connection.backlog = [UInt8](input) }
                if connection.mayConsume { resume(connection) }
                break
            }
            switch connection.phase {
            case .http: consumeHTTP(connection, &input)
            case .open, .closing: consumeFrames(connection, &input)
            case .draining, .dead: input = .init(rebasing: input[input.endIndex...])
            }
        }
        countGathered(connection)
        watch(connection)
    }

    /// Keeps the sum of unfinished requests and messages, and enforces its bounds.
    private func countGathered(_ connection: Connection) {
        let gathered: Int
        switch connection.phase {
        case .http: gathered = connection.exchange?.requests.gatheredBytes ?? 0
        case .open, .closing: gathered = connection.reader.gatheredBytes
        case .draining, .dead: return connection.reader.finish()
        }
        gatheredTotal += gathered - connection.gathered
        connection.tenant.gathered += gathered - connection.gathered
        connection.gathered = gathered
        let isCrowded =
            gatheredTotal > settings.gatheredBytesTotalMax
            || connection.tenant.gathered > settings.gatheredBytesPerTenantMax
        if isCrowded && gathered > settings.gatheredBytesFree { refuseCrowd(connection) }
    }

    private func refuseCrowd(_ connection: Connection) {
        metrics.limitHit(.gatheredBytes)
        if connection.phase == .http {
            let response = HTTPResponse(status: 503, fields: [.init("retry-after", "5")], closes: true)
            metrics.httpErrors.add(1, .unavailable)
            enqueue(connection, response.encoded(for: nil, date: date.text(now)))
        } else if connection.phase == .open {
            enqueue(connection, WebSocketWriter.close(.tryAgainLater, reason: "crowded"))
            metrics.webSocketErrors.add(1, .tryAgainLater)
            end(connection, .crowded)
        }
        drain(connection)
        connection.reader.finish()
    }

    func inputEnded(_ connection: Connection) {
        connection.sawEnd = true
        let isAwaited = connection.exchange?.awaited != nil
        if connection.isWatched { return drop(connection, .vanished) }
        let mayStillWrite = connection.phase == .http || connection.phase == .draining
        guard mayStillWrite && (isAwaited || !connection.outbox.isEmpty) else { return drop(connection, .vanished) }
        // A client that has shut only its own direction still gets its answer.
        if !isAwaited { drain(connection) }
        watch(connection)
    }

    // MARK: WebSocket

    private func consumeFrames(_ connection: Connection, _ input: inout UnsafeMutableRawBufferPointer) {
        do throws(WebSocketFailure) {
            while let event = try connection.reader.next(&input) {
                if connection.phase == .open { deliver(event, connection) } else { onlyClose(event, connection) }
                messagesLeft -= 1
                if !connection.mayConsume || connection.phase == .draining { return throttleIfFull(connection) }
                throttleIfFull(connection)
                if connection.isThrottled || messagesLeft <= 0 { return }
            }
        } catch {
            fail(connection, error)
        }
    }

    private func deliver(_ event: WebSocketEvent, _ connection: Connection) {
        switch event {
        case .text(let bytes): delegate?.received(connection.id, text: bytes)
        case .binary(let bytes): delegate?.received(connection.id, binary: bytes)
        case .gatheredText(let bytes): delegate?.received(connection.id, gathered: bytes)
        case .gatheredBinary(let bytes): bytes.withUnsafeBytes { delegate?.received(connection.id, binary: $0) }
        case .ping(let bytes): enqueue(connection, WebSocketWriter.frame(.pong, bytes))
        case .pong: break
        case .close(let code, _):
            enqueue(connection, WebSocketWriter.close(code))
            end(connection, .peer(code))
            drain(connection)
        }
    }

    /// After our close frame only the peer's close frame matters. It answers ours, so the peer has read all our output.
    private func onlyClose(_ event: WebSocketEvent, _ connection: Connection) {
        if case .close = event { drop(connection, .vanished) }
    }

    private func fail(_ connection: Connection, _ failure: WebSocketFailure) {
        if connection.phase == .open {
            enqueue(connection, WebSocketWriter.close(failure.code, reason: failure.problem.rawValue))
            metrics.webSocketErrors.add(1, .init(failure.code))
            end(connection, .refused(failure))
        }
        drain(connection)
    }

    /// Input waits while much output is queued: a peer that does not read its answers cannot ask for more.
    private func throttleIfFull(_ connection: Connection) {
        guard connection.outbox.count > settings.pendingBytesPause, connection.phase != .dead else { return }
        flush(connection)
        if connection.outbox.count > settings.pendingBytesPause { connection.isThrottled = true }
    }

    // MARK: HTTP

    private func consumeHTTP(_ connection: Connection, _ input: inout UnsafeMutableRawBufferPointer) {
        guard let exchange = connection.exchange else { return }
        let (wasInside, wasInBody) = (exchange.requests.isInsideRequest, exchange.requests.isInsideBody)
        var unread = UnsafeRawBufferPointer(input)
        do throws(HTTPFailure) {
            let event = try exchange.requests.next(&unread) { delegate?.streamedBodyMax(of: $0) }
            let count = input.count - unread.count
            input.removeFirst(count)
            switch event {
            case .request(let request):
                name(request, connection)
                messagesLeft -= Self.requestMessages
                serve(request, connection, exchange)
            case .head(let request, let length):
                name(request, connection)
                messagesLeft -= Self.requestMessages
                begin(request, length: length, connection, exchange)
            case .piece(let bytes, let isLast): deliver(bytes, isLast: isLast, connection, exchange)
            case nil: awaitRest(connection, exchange, wasInside: wasInside, wasInBody ? count : nil)
            }
        } catch {
            input = .init(rebasing: input[input.endIndex...])
            refuse(connection, error)
        }
        throttleIfFull(connection)
    }

    /// The timeout of a head starts with its first byte and is not extended. That of a body starts at the end of the
    /// head and is extended while the minimum data rate is kept.
    /// - Parameter count: bytes of a body whose head arrived earlier; nil: none.
    private func awaitRest(_ connection: Connection, _ exchange: HTTPExchange, wasInside: Bool, _ count: Int?) {
        if let count {
            holdToDataRate(connection, count, patience: settings.requestTimeout)
        } else if !wasInside || exchange.requests.isInsideBody {
            if exchange.requests.isInsideRequest { expire(connection, after: settings.requestTimeout) }
        }
        if exchange.requests.takeContinue() { enqueue(connection, HTTPResponse(status: 100).encoded(for: nil)) }
    }

    private func serve(_ request: HTTPRequest, _ connection: Connection, _ exchange: HTTPExchange) {
        let disposition =
            delegate?.answer(request, on: connection.id, via: connection.listener)
            ?? .respond(HTTPResponse(status: 503, closes: true))
        guard connection.phase == .http else { return }
        switch disposition {
        case .respond(let response): write(response, for: request, connection)
        case .later:
            exchange.awaited = request
            expire(connection, after: nil)
        case .waits:
            exchange.awaited = request
            exchange.isWatched = true
            expire(connection, after: nil)
        case .stream(let response): begin(response, for: request, connection, exchange)
        case .upgrade: upgrade(request, connection)
        }
    }

    private func upgrade(_ request: HTTPRequest, _ connection: Connection) {
        let key: String
        do throws(HTTPFailure) {
            key = try WebSocketHandshake.key(of: request)
        } catch {
            return refuse(connection, error)
        }
        enqueue(connection, WebSocketHandshake.accepted(key: key, sha1: Hash.sha1))
        connection.exchange = nil
        connection.phase = .open
        metrics.webSockets.add()
        touch(connection)
        delegate?.opened(connection.id, request)
    }

    /// Answers a request for which the delegate returned `.later` or `.waits`, or whose body it gets in pieces; before
    /// the last piece, the connection is closed after the answer. Without such a request it has no effect.
    /// - Parameter tenant: the tenant of the request; the answer's bytes are counted for it from now on.
    public func respond(_ id: ConnectionID, _ response: HTTPResponse, tenant: TenantID = 0) {
        checkThread()
        guard let connection = lookup(id), let exchange = connection.exchange,
            let request = exchange.awaited ?? exchange.incoming, exchange.stream == nil, exchange.download == nil
        else { return }
        var response = response
        // The bytes that follow belong to a body that is not wanted any more.
        if exchange.incoming != nil { response.closes = true }
        (exchange.awaited, exchange.isWatched, exchange.incoming, exchange.isHeld) = (nil, false, nil, false)
        if tenant != 0 { sort(connection, into: tenant) }
        write(response, for: request, connection)
        if connection.phase == .http { resume(connection) }
    }

    private func write(_ response: HTTPResponse, for request: HTTPRequest, _ connection: Connection) {
        var response = response
        if isStopping || connection.sawEnd { response.closes = true }
        secure(&response, connection)
        enqueue(connection, response.encoded(for: request, date: date.text(now)))
        if response.closes || !request.keepsAlive {
            drain(connection)
        } else {
            expire(connection, after: settings.keepAliveTimeout)
        }
    }

    /// Answers a request that broke a rule; the bytes that follow it are discarded.
    func refuse(_ connection: Connection, _ failure: HTTPFailure) {
        let response = HTTPResponse.refusal(failure)
        metrics.httpErrors.add(1, .init(status: failure.status))
        if failure.status == 431 { metrics.limitHit(.headBytes) }
        enqueue(connection, response.encoded(for: nil, date: date.text(now)))
        drain(connection)
    }
}
