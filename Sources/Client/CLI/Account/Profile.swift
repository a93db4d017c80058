import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Who talks to which server: what `thicket login` keeps.
struct Profile: Sendable, Equatable {
    var server: String
    var app: String
    var token: String
    /// Whom the server takes the token's owner for, as it said at the login.
    var user: String?
    /// PEM file with the certificates to trust.
    var certificates: String?
    var proxy: String?

    init(
        server: String, app: String, token: String, user: String? = nil, certificates: String? = nil,
        proxy: String? = nil
    ) {
        self.user = user
        self.server = server
        self.app = app
        self.token = token
        self.certificates = certificates
        self.proxy = proxy
    }

    /// Reads what `json` writes; nil when a part is missing.
    init?(json bytes: [UInt8]) {
        guard let value: JSONValue = try? JSONValue(parsing: bytes), let server: String = value["server"]?.stringValue,
            let app: String = value["app"]?.stringValue, let token: String = value["token"]?.stringValue
        else { return nil }
        self.init(
            server: server, app: app, token: token, user: value["user"]?.stringValue,
            certificates: value["ca"]?.stringValue, proxy: value["proxy"]?.stringValue)
    }

    var json: [UInt8] {
        var object: JSONObject = ["server": .string(server), "app": .string(app), "token": .string(token)]
        if let user { object["user"] = .string(user) }
        if let certificates { object["ca"] = .string(certificates) }
        if let proxy { object["proxy"] = .string(proxy) }
        return Pretty.bytes(.object(object))
    }

    /// Says the same about server, app and token.
    func agrees(with other: Profile) -> Bool {
        same(server, other.server) && same(app, other.app) && same(token, other.token)
    }

    /// The same user of the same app, perhaps by another token: the local copies may stay.
    func isSameAccount(as other: Profile) -> Bool {
        guard same(server, other.server), same(app, other.app) else { return false }
        if let user, let other: String = other.user { return same(user, other) }
        return same(token, other.token)
    }
}

/// The folder that holds profiles and their local stores: `$THICKET_HOME`, else `~/.thicket`.
///
/// ```
/// profiles/NAME/profile.json    server, app, token (mode 0600)
/// profiles/NAME/objects/B.db    local copy of the bucket B
/// profiles/NAME/watch/B.db      the same for 'thicket watch', which runs beside other commands
/// ```
struct ProfileHome: Sendable {
    let path: String

    init(_ environment: [String: String]) throws(Failure) {
        if let home: String = environment["THICKET_HOME"], !home.isEmpty {
            path = home
        } else if let home: String = environment["HOME"], !home.isEmpty {
            path = home + "/.thicket"
        } else {
            throw Failure("there is no place for profiles: neither THICKET_HOME nor HOME is set", .usage)
        }
    }

    func folder(_ name: String) -> String { "\(path)/profiles/\(name)" }
    private func file(_ name: String) -> String { folder(name) + "/profile.json" }

    /// The profile of that name; nil when nobody logged in under it.
    func read(_ name: String) throws(Failure) -> Profile? {
        let bytes: [UInt8]
        switch Files.read(file(name), bytesMax: 1 << 20) {
        case .bytes(let found): bytes = found
        case .absent: return nil
        case .failed(let reason):
            throw Failure("the profile '\(name)' cannot be read: \(file(name)): \(reason)")
        }
        guard let profile: Profile = Profile(json: bytes) else {
            throw Failure("\(file(name)) is damaged: 'thicket login' with --profile \(name) writes it anew")
        }
        return profile
    }

    func write(_ profile: Profile, _ name: String) throws(Failure) {
        for folder: String in [path, path + "/profiles", folder(name)] { try Files.makeFolder(folder) }
        try Files.replace(file(name), profile.json, mode: 0o600)
    }

    /// Names of all profiles, in byte order.
    func names() -> [String] {
        Files.names(in: path + "/profiles").filter { access(file($0), F_OK) == 0 }.sorted()
    }

    /// Names of the buckets that a profile keeps a copy of, in byte order.
    func buckets(_ name: String) -> [String] {
        Files.names(in: folder(name) + "/objects").filter { $0.hasSuffix(".db") }.map { String($0.dropLast(3)) }
            .sorted()
    }

    /// Removes a profile and everything it keeps.
    func remove(_ name: String) throws(Failure) { try Files.removeTree(folder(name)) }

    /// Checks a name that becomes a folder.
    static func checked(_ name: String) throws(Failure) -> String {
        let isGood: Bool =
            (1...64).contains(name.utf8.count) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E || byte == 0x5F
            }
        guard isGood else {
            throw Failure(
                "'\(name)' is no profile name: 1 to 64 letters, digits, '.', '_' or '-', no '.' first", .usage)
        }
        return name
    }
}

/// Whether two texts are the same bytes.
func same(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
