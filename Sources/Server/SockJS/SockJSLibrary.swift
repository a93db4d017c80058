import ThicketCrypto
import ThicketProtocol

/// The published client library, for the page in a frame through which old browsers reach us from other origins.
enum SockJSLibrary: Sendable, Equatable {
    /// There is none to be had, or none is wanted: no such page.
    case none
    /// It is loaded from there.
    case address(String)
    /// It is given out here, beside the page.
    case kept([UInt8])

    /// Its name below an app's base, and in the page beside it.
    static let name = "sockjs.min.js"
    /// Where Debian's package `node-sockjs-client` puts it; the container image has it there, too.
    static let path = "/usr/share/nodejs/sockjs-client/dist/sockjs.min.js"
    /// Bytes of it at most; version 1.6.1 has 92 KB.
    private static let bytesMax = 1 << 20
    /// Seconds for which browsers may keep it: another version comes with an update of the machine.
    private static let keptSeconds = 3_600

    /// - Parameters:
    ///   - setting: `auto`, `none` or an address.
    ///   - read: gives the file, if the machine has it.
    init(_ setting: String, read: (_ path: String, _ bytesMax: Int) -> [UInt8]?) {
        if setting.utf8.elementsEqual("auto".utf8) {
            self = read(Self.path, Self.bytesMax).map(Self.kept) ?? .none
        } else {
            self = Self.isAddress(setting) ? .address(setting) : .none
        }
    }

    /// What stands in the page.
    var address: String? {
        switch self {
        case .none: nil
        case .address(let address): address
        case .kept: Self.name
        }
    }

    /// The file itself.
    func response(_ request: HTTPRequest) -> HTTPResponse? {
        guard case .kept(let bytes) = self else { return nil }
        let tag = "\"\(Hex.encode(Array(Hash.sha256(bytes)[..<16])))\""
        var fields: HTTPFields = [
            .init("cache-control", "public, max-age=\(Self.keptSeconds)"), .init("etag", tag),
            .init("x-content-type-options", "nosniff"),
        ]
        if let known: String = request.fields["if-none-match"], known.utf8.elementsEqual(tag.utf8) {
            return HTTPResponse(status: 304, fields: fields)
        }
        fields.append("content-type", "text/javascript; charset=UTF-8")
        return HTTPResponse(status: 200, fields: fields, body: bytes)
    }

    /// In the place of page and file where there is no library.
    static let missing = RESTAnswer.failure(
        404, "no_sockjs_client", "This server has no SockJS client for pages in frames.",
        "Its operator installs Debian's node-sockjs-client, or sets sockjs-script to the address of \(name), and reloads."
    )

    /// Only what cannot end the attribute it stands in.
    private static func isAddress(_ text: String) -> Bool {
        (text.hasPrefix("/") || text.hasPrefix("https://") || text.hasPrefix("http://"))
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"'<>&".utf8.contains($0) }
    }
}
