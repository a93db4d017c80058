import ThicketProtocol

/// The transports of a session; the raw value is the last part of the path.
enum SockJSTransport: String, CaseIterable, Sendable {
    case websocket
    case xhr
    case xhrStreaming = "xhr_streaming"
    case xhrSend = "xhr_send"
    case eventsource
    case htmlfile
    case jsonp
    case jsonpSend = "jsonp_send"

    enum Role {
        /// Both directions, for the lifetime of the session.
        case socket
        /// One frame completes the response.
        case poll
        /// Frame after frame, until the response is long enough.
        case stream
        /// From the client only.
        case send
    }

    var role: Role {
        switch self {
        case .websocket: .socket
        case .xhr, .jsonp: .poll
        case .xhrStreaming, .eventsource, .htmlfile: .stream
        case .xhrSend, .jsonpSend: .send
        }
    }

    var method: String {
        switch self {
        case .xhr, .xhrStreaming, .xhrSend, .jsonpSend: "POST"
        case .websocket, .eventsource, .htmlfile, .jsonp: "GET"
        }
    }

    var contentType: String {
        switch self {
        case .xhr, .xhrStreaming, .jsonp: "application/javascript; charset=UTF-8"
        case .xhrSend, .jsonpSend, .websocket: "text/plain; charset=UTF-8"
        case .eventsource: "text/event-stream; charset=UTF-8"
        case .htmlfile: "text/html; charset=UTF-8"
        }
    }

    /// Whether the client names a function that is called with each frame.
    var callsBack: Bool { self == .htmlfile || self == .jsonp }
}

/// One response, or one socket, that takes a session's frames.
struct SockJSReceiver: Sendable, Equatable {
    let transport: SockJSTransport
    /// For transports that call back: a name of letters, digits, `_`, `-` and `.`.
    let callback: String

    init(_ transport: SockJSTransport, callback: String = "") {
        (self.transport, self.callback) = (transport, callback)
    }

    /// Bytes before the first frame: some browsers show nothing until they have received that many.
    var prelude: [UInt8] {
        switch transport {
        case .xhrStreaming: [UInt8](repeating: UInt8(ascii: "h"), count: 2_048) + [0x0A]
        case .eventsource: [0x0D, 0x0A]
        case .htmlfile: htmlPrelude
        default: []
        }
    }

    /// Least bytes of the first part of an htmlfile page.
    private static let htmlPreludeBytes = 1_024

    private var htmlPrelude: [UInt8] {
        let page = """
            <!doctype html>
            <html><head>
              <meta http-equiv="X-UA-Compatible" content="IE=edge" />
              <meta http-equiv="Content-Type" content="text/html; charset=UTF-8" />
            </head><body><h2>Don't panic!</h2>
              <script>
                document.domain = document.domain;
                var c = parent.\(callback);
                c.start();
                function p(d) {c.message(d);};
                window.onload = function() {c.stop();};
              </script>
            """
        var bytes = [UInt8](page.utf8)
        bytes.append(contentsOf: repeatElement(0x20, count: max(1, Self.htmlPreludeBytes - bytes.count)))
        bytes.append(contentsOf: [0x0D, 0x0A, 0x0D, 0x0A])
        return bytes
    }

    /// The frame as this transport writes it.
    func wrap(_ frame: [UInt8]) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(frame.count + 32)
        switch transport {
        case .xhr, .xhrStreaming:
            bytes.append(contentsOf: frame)
            bytes.append(0x0A)
        case .eventsource:
            bytes.append(contentsOf: "data: ".utf8)
            bytes.append(contentsOf: frame)
            bytes.append(contentsOf: "\r\n\r\n".utf8)
        case .htmlfile:
            bytes.append(contentsOf: "<script>\np(".utf8)
            SockJSText.append(frame, to: &bytes, hidesTags: true)
            bytes.append(contentsOf: ");\n</script>\r\n".utf8)
        case .jsonp:
            bytes.append(contentsOf: callback.utf8)
            bytes.append(UInt8(ascii: "("))
            SockJSText.append(frame, to: &bytes)
            bytes.append(contentsOf: ");\r\n".utf8)
        case .websocket, .xhrSend, .jsonpSend: return frame
        }
        return bytes
    }
}
