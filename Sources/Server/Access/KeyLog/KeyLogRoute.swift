import ThicketProtocol

/// The request about keys that a path names, whatever the method. Pure.
struct KeyLogRoute: Sendable, Hashable {
    enum Call: Sendable, Hashable {
        /// The keys of a user id.
        case keys(String)
        /// The keys of a name.
        case name
        case entries, head, consistency, witness
    }

    let app: AppID
    let call: Call

    /// The words below a bucket in the data API: a bucket may be named `keys`.
    private static let bucketWords = ["index", "changes", "all"]

    /// nil for other paths.
    init?(_ path: Substring) {
        guard path.utf8.starts(with: "/1/".utf8) else { return nil }
        let parts = RESTHandler.parts(of: path)
        guard (2...3).contains(parts.count), let call = Self.call(parts),
            let app = try? AppID(RESTQuery.decode(parts[0].utf8))
        else { return nil }
        (self.app, self.call) = (app, call)
    }

    private static func call(_ parts: [Substring]) -> Call? {
        if RESTHandler.named(parts[1], "keys") {
            if parts.count == 2 { return .name }
            let user = RESTQuery.decode(parts[2].utf8)
            return bucketWords.contains { $0.utf8.elementsEqual(user.utf8) } ? nil : .keys(user)
        }
        guard RESTHandler.named(parts[1], "keylog"), parts.count == 3 else { return nil }
        return switch parts[2] {
        case "entries": .entries
        case "head": .head
        case "consistency": .consistency
        case "witness": .witness
        default: nil
        }
    }

    /// The methods that the route supports, as in the `allow` field.
    var methods: String { call == .entries || call == .witness ? "POST" : "GET" }
}
