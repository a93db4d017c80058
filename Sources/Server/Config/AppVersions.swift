import ThicketProtocol

/// The newest versions of client programs for `GET /version`: a text for each platform, named as its clients name it.
/// Clients compare it with their own version for equality.
struct AppVersions: Sendable, Equatable {
    /// Most bytes of the list.
    static let bytesMax = 4_096
    let versions: [(platform: String, version: String)]

    /// - Parameter list: `none`, or `PLATFORM=VERSION` entries separated by commas: letters, digits, `.`, `_`, `-` and
    ///   `+`.
    /// - Returns: nil for other text and for a repeated platform.
    init?(_ list: String) {
        guard list.utf8.count <= Self.bytesMax else { return nil }
        if list.utf8.elementsEqual("none".utf8) {
            versions = []
            return
        }
        var versions = [(platform: String, version: String)]()
        for part in list.split(separator: ",", omittingEmptySubsequences: false) {
            let halves: [Substring] = part.split(separator: "=", omittingEmptySubsequences: false)
            guard halves.count == 2, halves.allSatisfy(Self.isWord),
                !versions.contains(where: { $0.platform.utf8.elementsEqual(halves[0].utf8) })
            else { return nil }
            versions.append((String(halves[0]), String(halves[1])))
        }
        self.versions = versions
    }

    private static func isWord(_ text: Substring) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E, 0x5F: true
                default: false
                }
            }
    }

    /// The answer to `GET /version`.
    var response: HTTPResponse {
        var object: JSONObject = [:]
        for (platform, version) in versions { object[platform] = .string(version) }
        return .json(200, JSONValue.object(object).serialized())
    }

    static func == (left: Self, right: Self) -> Bool {
        left.versions.elementsEqual(right.versions) {
            $0.platform.utf8.elementsEqual($1.platform.utf8) && $0.version.utf8.elementsEqual($1.version.utf8)
        }
    }
}
