import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The published client library, for the iframe page through which old browsers connect from other origins.
enum SockJSLibrary: Sendable, Equatable {
    /// Not available or not wanted; the page does not exist.
    case none
    /// Browsers load it from this address.
    case address(String)
    /// This server serves it beside the page.
    case kept([UInt8])

    /// Its name below an app's base, and in the page.
    static let name = "sockjs.min.js"
    /// Its path in Debian's package `node-sockjs-client`, and in the container image.
    static let path = "/usr/share/nodejs/sockjs-client/dist/sockjs.min.js"
    /// Most bytes of the file; version 1.6.1 has 92 KB.
    private static let bytesMax = 1 << 20
    /// Seconds for which browsers may cache it: an update of the machine can bring another version.
    private static let keptSeconds = 3_600

    /// - Parameters:
    ///   - setting: `auto`, `none` or an address.
    ///   - read: returns the file, or nil where it does not exist.
    init(_ setting: String, read: (_ path: String, _ bytesMax: Int) -> [UInt8]?) {
        if setting.utf8.elementsEqual("auto".utf8) {
            self = read(Self.path, Self.bytesMax).map(Self.kept) ?? .none
        } else {
            self = Self.isAddress(setting) ? .address(setting) : .none
        }
    }

    /// The address written into the page.
    var address: String? {
        switch self {
        case .none: nil
        case .address(let address): address
        case .kept: Self.name
        }
    }

    /// The response with the file.
    func response(_ request: HTTPRequest) -> HTTPResponse? {
        guard case .kept(let bytes) = self else { return nil }
        let tag = "\"\(Hex.encode(Array(Hash.sha256(bytes)[..<16])))\""
        var fields: HTTPFields = [
            .init("cache-control", "public, max-age=\(Self.keptSeconds)"), .init("etag", tag),
            .init("x-content-type-options", "nosniff"),
        ]
        if let known = request.fields["if-none-match"], known.utf8.elementsEqual(tag.utf8) {
            return HTTPResponse(status: 304, fields: fields)
        }
        fields.append("content-type", "text/javascript; charset=UTF-8")
        return HTTPResponse(status: 200, fields: fields, body: bytes)
    }

    /// The answer for page and file where no library is available.
    static let missing = RESTAnswer.failure(
        404, "no_sockjs_client", "This server has no SockJS client for iframe pages.",
        "The operator can install Debian's node-sockjs-client, or set sockjs-script to the address of \(name), and reload."
    )

    /// Accepts only characters that cannot end the HTML attribute around them.
    private static func isAddress(_ text: String) -> Bool {
        (text.hasPrefix("/") || text.hasPrefix("https://") || text.hasPrefix("http://"))
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"'<>&".utf8.contains($0) }
    }
}
