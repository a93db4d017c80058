import ThicketPlatform
import ThicketProtocol

extension NetMetrics {
    /// Outcome of a TLS handshake.
    public enum Handshake: String, MetricLabel {
        /// With a signature of the server's key.
        case full
        /// The client showed a ticket of an earlier session.
        case resumed
        /// It ended early: no version or cipher in common, or the client rejected the certificate.
        case failed
        /// It was not complete within the request timeout.
        case timeout
        /// The client did not speak TLS.
        case plain
    }

    /// Outcome of reading the PROXY header of a trusted proxy's connection.
    public enum Preface: String, MetricLabel {
        /// The header was valid.
        case taken
        /// The header was missing or malformed.
        case refused
    }

    /// Outcome of reading certificate and key again.
    public enum Reload: String, MetricLabel {
        /// The new ones are in force.
        case done
        /// They cannot be used; the old ones stay in force.
        case failed
    }

    /// Why a connection ended.
    public enum CloseReason: String, MetricLabel {
        /// The client closed it.
        case client
        /// Silent for longer than the idle timeout.
        case idle
        /// Its queue was full.
        case slowReader = "slow_reader"
        /// It violated the WebSocket or HTTP rules.
        case protocolError = "protocol_error"
        /// It exceeded a limit.
        case limit
        /// The server is shutting down.
        case shutdown
        /// The answer to a plain HTTP request was complete.
        case done
        /// The socket failed.
        case failed
    }

    /// Status of a refused HTTP request.
    public enum HTTPFault: String, MetricLabel {
        /// 400 Bad Request.
        case badRequest = "400"
        /// 404 Not Found.
        case notFound = "404"
        /// 405 Method Not Allowed.
        case methodNotAllowed = "405"
        /// 408 Request Timeout.
        case timeout = "408"
        /// 413 Content Too Large.
        case tooLarge = "413"
        /// 414 URI Too Long.
        case targetTooLong = "414"
        /// 417 Expectation Failed.
        case expectationFailed = "417"
        /// 426 Upgrade Required.
        case upgradeRequired = "426"
        /// 431 Request Header Fields Too Large.
        case headTooLarge = "431"
        /// 501 Not Implemented.
        case notImplemented = "501"
        /// 503 Service Unavailable.
        case unavailable = "503"
        /// 505 HTTP Version Not Supported.
        case versionNotSupported = "505"
    }

    /// Close code of a WebSocket connection that the server ended (RFC 6455, 7.4.1).
    public enum CloseCode: String, MetricLabel {
        /// 1001: the server stops.
        case goingAway = "1001"
        /// 1002: a violation of the WebSocket protocol.
        case protocolError = "1002"
        /// 1003: a kind of data that is not accepted.
        case unsupportedData = "1003"
        /// 1007: text that is not UTF-8.
        case invalidPayload = "1007"
        /// 1008: a violation of the server's rules, such as an ended token.
        case policy = "1008"
        /// 1009: a message over the bound.
        case tooBig = "1009"
        /// 1011: a fault of the server.
        case internalError = "1011"
        /// 1013: the server is busy.
        case tryAgainLater = "1013"
    }
}

extension NetMetrics.CloseReason {
    init(_ end: ConnectionEnd) {
        self =
            switch end {
            case .peer, .vanished: .client
            case .refused(let failure): failure.problem == .messageTooBig ? .limit : .protocolError
            case .slowReader: .slowReader
            case .crowded: .limit
            case .idle: .idle
            case .closed(.normal), .closed(.goingAway): .done
            case .closed(.internalError): .failed
            case .closed: .limit
            case .stopping: .shutdown
            }
    }
}

extension NetMetrics.CloseCode {
    init(_ code: WebSocketCloseCode) { self = Self(known: code) ?? .protocolError }

    /// nil for codes that are not errors, such as 1000.
    init?(known code: WebSocketCloseCode) { self.init(rawValue: String(code.rawValue)) }
}

extension NetMetrics.HTTPFault {
    init(status: Int) { self = Self(rawValue: String(status)) ?? .badRequest }
}
