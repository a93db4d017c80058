internal import CCurl
internal import Glibc
internal import ThicketCrypto
internal import ThicketProtocol

/// A WebSocket over libcurl: libcurl does DNS, proxy, TCP and TLS with its certificates; this class does the upgrade
/// and the frames.
///
/// Linux only: Debian's libcurl is built without WebSockets, so it is used in its CONNECT_ONLY mode. On Apple platforms
/// a class over Network.framework implements `Transport`.
package final class CurlWebSocketTransport: Transport {
    private enum State {
        case idle
        /// libcurl resolves the name, connects and does the TLS handshake.
        case connecting
        /// The upgrade request has been sent.
        case upgrading(nonce: [UInt8], HTTPResponseHeadReader)
        case open
    }

    private let endpoint: Endpoint
    private let target: String
    private let options: TransportOptions
    private let multi: UnsafeMutableRawPointer?
    private var handle: CurlHandle?
    private var socket: Int32 = -1
    private var state = State.idle
    private var reader: WebSocketReader
    private var scratch = [UInt8](repeating: 0, count: CurlWebSocketTransport.scratchBytes)
    private var out = SendBuffer()
    /// Bytes in the socket's send buffer that the peer had not acknowledged at the last check.
    private var unarrived: Int32 = 0
    private var hasReceived = false
    /// More data may be readable although the socket does not report it, because TLS buffers bytes.
    private var hasMore = false

    private static let scratchBytes = 128 << 10

    /// - Parameter target: the path of the WebSocket, beginning with `/`.
    package init(endpoint: Endpoint, target: String, options: TransportOptions) {
        self.endpoint = endpoint
        self.target = target
        self.options = options
        // Initialises libcurl, which the first handle does.
        _ = CurlHandle(options)
        multi = curl_multi_init()
        reader = WebSocketReader(role: .client, messageBytesMax: options.messageBytesMax)
    }

    deinit {
        dropHandle()
        if let multi { curl_multi_cleanup(multi) }
    }

    package func connect() {
        close()
        guard let multi, let made = CurlHandle(options) else { return }
        made.set(CURLOPT_URL, endpoint.httpAddress + "/")
        made.allow(isSecure: endpoint.isSecure)
        made.set(CURLOPT_CONNECT_ONLY, 1)
        // Requests a tunnel from a proxy even without TLS, because a proxy would not forward an upgrade.
        made.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        guard curl_multi_add_handle(multi, made.pointer) == CURLM_OK else { return }
        handle = made
        state = .connecting
    }

    package func send(_ text: [UInt8]) {
        guard case .open = state else { return }
        out.append(WebSocketWriter.frame(.text, text, mask: freshMask()))
    }

    package func flush() {
        if case .open = state { _ = offer() }
    }

    package func close() {
        if case .open = state {
            out.append(WebSocketWriter.close(.normal, mask: freshMask()))
            _ = offer()
        }
        dropHandle()
    }

    package func events(limit: Int) -> [TransportEvent] {
        var events = [TransportEvent]()
        switch state {
        case .idle: break
        case .connecting: progress(&events)
        case .upgrading, .open:
            hasReceived = false
            let isArriving = isArriving()
            if offer() { receive(&events, limit: limit) } else { fail("the connection broke", &events) }
            if handle != nil, !offer() { fail("the connection broke", &events) }
            unarrived = bytesUnderWay()
            if case .open = state, events.isEmpty, hasReceived || isArriving { events.append(.moved) }
        }
        return events
    }

    package func wait(wake: Int32, milliseconds: Int32) {
        if case .connecting = state, let multi {
            var extra = curl_waitfd(fd: wake, events: Int16(CURL_WAIT_POLLIN), revents: 0)
            _ = curl_multi_poll(multi, &extra, 1, milliseconds < 0 ? 60_000 : milliseconds, nil)
            return
        }
        var watched = [pollfd(fd: wake, events: Int16(POLLIN), revents: 0)]
        if socket >= 0 {
            let wanted = POLLIN | (out.isEmpty ? 0 : POLLOUT)
            watched.append(pollfd(fd: socket, events: Int16(wanted), revents: 0))
        }
        // An interrupted poll counts as a short one: the caller checks again.
        _ = poll(&watched, nfds_t(watched.count), hasMore ? 0 : milliseconds)
    }

    // MARK: - Connecting

    private func progress(_ events: inout [TransportEvent]) {
        guard let multi, let handle else { return fail("libcurl could not start", &events) }
        var running: Int32 = 0
        _ = curl_multi_perform(multi, &running)
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE else { continue }
            let result = thicket_curl_result(message)
            guard result == CURLE_OK, let socket = handle.socket else {
                let proxy = handle.proxyStatus
                guard proxy >= 300 else {
                    let failure = handle.failure(result)
                    return fail(failure.detail, isUntrusted: failure.isUntrusted, &events)
                }
                let why = proxy == 407 ? ": it wants a user name and password, or others" : ""
                return fail("the proxy refused the connection with HTTP \(proxy)\(why)", status: proxy, &events)
            }
            self.socket = socket
            return upgrade()
        }
    }

    private func upgrade() {
        let nonce = RandomBytes.make(16)
        let fields = HTTPFields([HTTPField("user-agent", options.userAgent)])
        out.append(
            WebSocketHandshake.request(
                host: endpoint.authority, target: endpoint.prefix + target, nonce: nonce, fields: fields))
        reader = WebSocketReader(role: .client, messageBytesMax: options.messageBytesMax)
        state = .upgrading(nonce: nonce, HTTPResponseHeadReader())
        hasMore = true
    }

    private func upgraded(_ head: HTTPResponseHead, nonce: [UInt8], _ events: inout [TransportEvent]) -> Bool {
        do {
            try WebSocketHandshake.check(head, nonce: nonce, sha1: Hash.sha1)
            state = .open
            events.append(.opened)
            return true
        } catch {
            guard head.status != 101 else {
                fail("the server's answer to the upgrade is not a valid WebSocket handshake: \(error)", &events)
                return false
            }
            let refusal = UpgradeRefusal(head)
            fail(refusal.detail, status: head.status, retryAfter: refusal.retryAfter, &events)
            return false
        }
    }

    // MARK: - Bytes

    private func receive(_ events: inout [TransportEvent], limit: Int) {
        hasMore = false
        while events.count < limit, let handle {
            var count = 0
            let result = curl_easy_recv(handle.pointer, &scratch, scratch.count, &count)
            if result == CURLE_AGAIN { return }
            guard result == CURLE_OK else { return fail(handle.text(result), &events) }
            guard count > 0 else { return fail("the server closed the connection", &events) }
            hasReceived = true
            process(count, &events)
        }
        hasMore = handle != nil
    }

    /// Processes the first `count` bytes of the scratch buffer.
    private func process(_ count: Int, _ events: inout [TransportEvent]) {
        var buffer = [UInt8]()
        swap(&buffer, &scratch)
        buffer.withUnsafeMutableBytes { whole in
            var input = UnsafeMutableRawBufferPointer(rebasing: whole[..<count])
            if case .upgrading(let nonce, var head) = state {
                var unread = UnsafeRawBufferPointer(input)
                do {
                    let answer = try head.next(&unread)
                    state = .upgrading(nonce: nonce, head)
                    guard let answer, upgraded(answer, nonce: nonce, &events) else { return }
                } catch {
                    return fail("the server's answer to the upgrade is not HTTP: \(error)", &events)
                }
                input = .init(rebasing: input[(input.count - unread.count)...])
            }
            frames(&input, &events)
        }
        swap(&buffer, &scratch)
    }

    private func frames(_ input: inout UnsafeMutableRawBufferPointer, _ events: inout [TransportEvent]) {
        do {
            while case .open = state, let event = try reader.next(&input) {
                switch event {
                case .text(let bytes): events.append(.text(Array(bytes)))
                case .gatheredText(let bytes): events.append(.text(bytes))
                case .binary, .gatheredBinary, .pong: break
                case .ping(let bytes): out.append(WebSocketWriter.frame(.pong, bytes, mask: freshMask()))
                case .close(let code, let reason):
                    let text = String(decoding: reason.prefix(123), as: UTF8.self)
                    out.append(WebSocketWriter.close(code, mask: freshMask()))
                    _ = offer()
                    let said = "the server closed the connection" + (text.isEmpty ? "" : ": " + text)
                    fail(said, code: code?.rawValue, &events)
                }
            }
        } catch {
            out.append(WebSocketWriter.close(error.code, mask: freshMask()))
            _ = offer()
            fail("\(error)", &events)
        }
    }

    /// The sent bytes that the peer has not acknowledged.
    private func bytesUnderWay() -> Int32 {
        var count: Int32 = 0
        guard socket >= 0, ioctl(socket, UInt(TIOCOUTQ), &count) == 0 else { return 0 }
        return count
    }

    /// The peer accepts data but has not received all of it: an answer to a heartbeat behind that data cannot have
    /// arrived.
    private func isArriving() -> Bool {
        let count = bytesUnderWay()
        return count > 0 && count < unarrived
    }

    /// Writes to the socket what it accepts. Returns false when the connection is broken.
    private func offer() -> Bool {
        guard let handle else { return true }
        return out.flush { bytes in
            var count = 0
            let result = curl_easy_send(handle.pointer, bytes.baseAddress, bytes.count, &count)
            if result == CURLE_AGAIN { return .nothing }
            return result == CURLE_OK ? .bytes(count) : .broken
        }
    }

    private func fail(
        _ detail: String, code: UInt16? = nil, status: Int? = nil, isUntrusted: Bool = false,
        retryAfter: Int64? = nil, _ events: inout [TransportEvent]
    ) {
        dropHandle()
        events.append(
            .closed(
                LinkClosure(
                    code: code, detail: detail, httpStatus: status, isUntrusted: isUntrusted, retryAfter: retryAfter)))
    }

    private func dropHandle() {
        if let handle, let multi { curl_multi_remove_handle(multi, handle.pointer) }
        handle = nil
        socket = -1
        state = .idle
        out.clear()
        unarrived = 0
        hasMore = false
    }

    private func freshMask() -> UInt32 { UInt32.random(in: .min ... .max) }
}
