import ThicketProtocol

/// The meaning of a path below `/sock/1/APP`. The raw WebSocket `/sock/1/APP/websocket` is not included.
struct SockJSPath: Equatable {
    enum Place: Equatable {
        case greeting
        case info
        case iframe
        /// The client library that the iframe page loads.
        case library
        /// The path part before the session name is for load balancers and is ignored.
        case session(String, SockJSTransport)
        case nothing
    }

    /// As written in the path; a valid app id.
    let app: String
    let place: Place

    /// Bytes of a session's name, and of the part before it.
    static let partBytesMax = 128

    /// nil for paths that are not SockJS paths.
    init?(_ path: Substring) {
        guard path.utf8.starts(with: Self.prefix.utf8) else { return nil }
        let below: Substring = path.dropFirst(Self.prefix.count)
        let app: Substring = below.prefix { $0 != "/" }
        guard (try? AppID(String(app))) != nil else { return nil }
        let rest: Substring = below.dropFirst(app.count)
        guard !rest.utf8.elementsEqual("/websocket".utf8), !rest.utf8.elementsEqual("/websocket/".utf8) else {
            return nil
        }
        self.app = String(app)
        place = Self.place(rest)
    }

    private static let prefix = "/sock/1/"

    private static func place(_ rest: Substring) -> Place {
        switch rest {
        case "", "/": .greeting
        case "/info": .info
        case "/sockjs.min.js": .library
        default: isIframe(rest) ? .iframe : session(rest)
        }
    }

    /// `/iframe*.html`, where the star is a version.
    private static func isIframe(_ rest: Substring) -> Bool {
        guard rest.hasPrefix("/iframe"), rest.hasSuffix(".html"), rest.utf8.count >= "/iframe.html".utf8.count else {
            return false
        }
        return rest.utf8.dropFirst("/iframe".utf8.count).allSatisfy { (byte: UInt8) in
            switch byte {
            case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
            default: false
            }
        }
    }

    private static func session(_ rest: Substring) -> Place {
        let parts: [Substring] = rest.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 4, isPart(parts[1]), isPart(parts[2]),
            let transport = SockJSTransport(rawValue: String(parts[3]))
        else { return .nothing }
        return .session(String(parts[2]), transport)
    }

    private static func isPart(_ part: Substring) -> Bool {
        !part.isEmpty && part.utf8.count <= partBytesMax && !part.utf8.contains(UInt8(ascii: "."))
    }
}
