import ThicketNet
import ThicketProtocol

// Requests below `/sock/1/APP`.
extension SockJSHandler {
    /// - Parameter unixTime: milliseconds since 1970.
    func answer(
        _ request: HTTPRequest, _ path: SockJSPath, on connection: ConnectionID, unixTime: Int64
    ) -> HTTPDisposition {
        metrics.httpRequests.add(1, .sockjs)
        let replies = SockJSReplies(settings: settings, unixTime: unixTime)
        switch path.place {
        case .greeting: return .respond(page(request) { SockJSReplies.greeting })
        case .iframe: return .respond(page(request) { replies.iframe(request) })
        case .library: return .respond(page(request) { replies.library(request) })
        case .info:
            if request.method == "OPTIONS" { return .respond(replies.options(request, methods: "OPTIONS, GET")) }
            return .respond(page(request) { replies.info(request, entropy: entropy()) })
        case .nothing: return .respond(SockJSReplies.notFound(request))
        case .session(let name, let transport):
            return session(name, transport, request, path.app, connection, replies)
        }
    }

    private func page(_ request: HTTPRequest, _ make: () -> HTTPResponse) -> HTTPResponse {
        let isRead = request.method == "GET" || request.method == "HEAD"
        return isRead ? make() : SockJSReplies.methodNotAllowed(but: "GET, HEAD")
    }

    private func session(
        _ name: String, _ transport: SockJSTransport, _ request: HTTPRequest, _ app: String,
        _ connection: ConnectionID, _ replies: SockJSReplies
    ) -> HTTPDisposition {
        guard transport != .websocket else { return webSocket(request) }
        let methods = "OPTIONS, \(transport.method)"
        if request.method == "OPTIONS" { return .respond(replies.options(request, methods: methods)) }
        guard request.method == transport.method else {
            return .respond(SockJSReplies.methodNotAllowed(but: methods))
        }
        guard let app = try? AppID(app) else { return .respond(SockJSReplies.notFound(request)) }
        let key = Key(app: app, session: name)
        return transport.role == .send
            ? send(key, transport, request, connection, replies)
            : receive(key, transport, request, connection, replies)
    }

    private func webSocket(_ request: HTTPRequest) -> HTTPDisposition {
        guard settings.acceptsWebSockets else { return .respond(SockJSReplies.notFound(request)) }
        guard request.method == "GET" else { return .respond(SockJSReplies.methodNotAllowed(but: "GET")) }
        guard request.fields.tokens(of: "upgrade").contains("websocket") else {
            return .respond(SockJSReplies.refusal(400, "Can \"Upgrade\" only to \"WebSocket\".", request))
        }
        guard request.fields.tokens(of: "connection").contains("upgrade") else {
            return .respond(SockJSReplies.refusal(400, "\"Connection\" must be \"Upgrade\".", request))
        }
        return .upgrade
    }

    // MARK: To the client

    private func receive(
        _ key: Key, _ transport: SockJSTransport, _ request: HTTPRequest, _ connection: ConnectionID,
        _ replies: SockJSReplies
    ) -> HTTPDisposition {
        let receiver: SockJSReceiver
        switch Self.callback(of: request, for: transport) {
        case .failure(let refusal): return .respond(SockJSReplies.refusal(500, refusal.text, request))
        case .success(let callback): receiver = SockJSReceiver(transport, callback: callback)
        }
        guard let entry = byKey[key] ?? newEntry(key, transport) else {
            return .respond(Self.unavailable(request))
        }
        loop.count(connection, to: host.tenant(of: entry.id))
        var head = replies.head(transport, request)
        switch entry.session.attach(receiver, now: loop.now) {
        case .admitted:
            serve(entry, by: connection, transport)
            if transport.role == .poll {
                entry.answer = head
                return .waits
            }
        case .refused(let bytes):
            guard transport.role == .stream else {
                head.body = bytes
                return .respond(head)
            }
            farewells.append((connection, bytes))
        }
        head.body = receiver.prelude
        return .stream(head)
    }

    private func newEntry(_ key: Key, _ transport: SockJSTransport) -> Entry? {
        guard !isStopping else { return nil }
        guard byKey.count < settings.sessionsMax else {
            metrics.limitHits.add(1, .sockJSSessions)
            return nil
        }
        return makeEntry(key, app: key.app.text, transport)
    }

    private struct CallbackRefusal: Error { let text: String }

    private static func callback(
        of request: HTTPRequest, for transport: SockJSTransport
    ) -> Result<String, CallbackRefusal> {
        guard transport.callsBack else { return .success("") }
        let query = [UInt8]((request.query ?? "").utf8)
        let field =
            SockJSQuery.field("c", of: query[...]) ?? SockJSQuery.field("callback", of: query[...])
        guard let field, let name = SockJSQuery.decode(field), !name.isEmpty else {
            return .failure(CallbackRefusal(text: "\"callback\" parameter required"))
        }
        let isClean = name.allSatisfy { (byte: UInt8) in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
            default: false
            }
        }
        guard isClean, name.count <= callbackBytesMax else {
            return .failure(CallbackRefusal(text: "invalid \"callback\" parameter"))
        }
        return .success(String(decoding: name, as: UTF8.self))
    }

    // MARK: From the client

    private func send(
        _ key: Key, _ transport: SockJSTransport, _ request: HTTPRequest, _ connection: ConnectionID,
        _ replies: SockJSReplies
    ) -> HTTPDisposition {
        guard let entry = byKey[key], entry.session.isOpen else {
            return .respond(SockJSReplies.notFound(request))
        }
        // The request's resources are counted for its user, not for the unauthenticated connections.
        loop.count(connection, to: host.tenant(of: entry.id))
        // At most one body waits: clients send the next one after the answer to the last.
        guard entry.held == nil, entry.inbound.isEmpty else {
            metrics.limitHits.add(1, .sockJSSends)
            return .respond(Self.unavailable(request))
        }
        do throws(SockJSPayload.Failure) {
            let messages =
                transport == .jsonpSend
                ? try SockJSPayload.messages(request.body, contentType: request.fields["content-type"])
                : try SockJSPayload.messages(request.body)
            receive(messages, entry)
        } catch {
            return .respond(SockJSReplies.refusal(error.status, error.text, request))
        }
        let answer = replies.accepted(transport, request)
        guard !entry.inbound.isEmpty || entry.isPaused else { return .respond(answer) }
        entry.held = (connection, answer)
        return .later
    }

    private static func unavailable(_ request: HTTPRequest) -> HTTPResponse {
        HTTPResponse(
            status: 503, fields: HTTPFields([.init("retry-after", "1")] + SockJSReplies.cors(request)))
    }
}
