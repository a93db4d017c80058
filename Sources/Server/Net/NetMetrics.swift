internal import CThicketNet
import ThicketProtocol

extension Metrics.CloseReason {
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

extension Metrics.CloseCode {
    init(_ code: WebSocketCloseCode) { self = Self(known: code) ?? .protocolError }

    /// nil for codes that are not errors, such as 1000.
    init?(known code: WebSocketCloseCode) { self.init(rawValue: String(code.rawValue)) }
}

extension Metrics.HTTPFault {
    init(status: Int) { self = Self(rawValue: String(status)) ?? .badRequest }
}

/// The date field of responses, made once a second.
struct HTTPDate {
    private var cached = ""
    private var validUntil = Int64.min

    /// - Parameter now: nanoseconds of the monotonic clock; it only decides when to read the wall clock again.
    mutating func text(_ now: Int64) -> String {
        if now >= validUntil {
            var text = [CChar](repeating: 0, count: 40)
            let count = Int(thicket_http_date(&text, Int32(text.count)))
            cached = String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            validUntil = now + 1_000_000_000
        }
        return cached
    }
}
