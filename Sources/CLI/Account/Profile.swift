import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What `thicket login` stores: the server, the app and the login.
struct Profile: Sendable, Equatable {
    /// How the token was obtained, and so how to get the next one.
    enum Kind: String, Sendable {
        /// From an operator; the user cannot get another one without the operator.
        case token
        /// With the password of a built-in account, which is not stored.
        case account
        /// For an account whose password and keys stay on the device; the keys are stored beside the profile.
        case keys
        /// With the password of a partner's user; renewed automatically for a month.
        case partner
    }

    /// The values of an account besides its name.
    struct Login: Sendable, Equatable {
        var apiKey: String
        /// The user's id, or the entity id of a partner's user.
        var userId: String
        /// Set for a partner's user.
        var partnerId = ""
        /// This machine's name in login tokens.
        var device: String
    }

    var server: String
    var app: String
    var token: String
    var kind = Kind.token
    /// Set for accounts.
    var login: Login?
    /// The token's owner as the server named it at the login; for accounts the login name.
    var user: String?
    /// A PEM file with the certificates to trust.
    var certificates: String?
    var proxy: String?
    /// The pins of the server's key.
    var pins: String?

    /// A partner's server signed the token: no password that the user has on this machine renews it.
    var hasPartnerToken: Bool {
        kind == .partner && PartnerTokenLogin.Claims(token)?.isOfPassword == false
    }

    /// What to do when the login has ended, as a sentence.
    var renewal: String {
        switch kind {
        case .partner where hasPartnerToken:
            "Get a new token from the partner's server and run 'thicket login --token-file FILE'."
        case .token:
            "'thicketd token create' makes another token; 'thicket login --token-file FILE' takes it."
        default: "Run 'thicket login'."
        }
    }

    init(
        server: String, app: String, token: String, user: String? = nil, certificates: String? = nil,
        proxy: String? = nil, pins: String? = nil
    ) {
        self.pins = pins
        self.user = user
        self.server = server
        self.app = app
        self.token = token
        self.certificates = certificates
        self.proxy = proxy
    }

    /// Reads what `json` writes; nil when a member is missing.
    init?(json bytes: [UInt8]) {
        guard let value = try? JSONValue(parsing: bytes), let server = value["server"]?.stringValue,
            let app = value["app"]?.stringValue, let token = value["token"]?.stringValue
        else { return nil }
        self.init(
            server: server, app: app, token: token, user: value["user"]?.stringValue,
            certificates: value["ca"]?.stringValue, proxy: value["proxy"]?.stringValue,
            pins: value["pin"]?.stringValue)
        kind = value["kind"]?.stringValue.flatMap(Kind.init(rawValue:)) ?? .token
        guard kind != .token else { return }
        guard let apiKey = value["api_key"]?.stringValue, let userId = value["user_id"]?.stringValue,
            let device: String = value["device"]?.stringValue
        else { return nil }
        login = Login(
            apiKey: apiKey, userId: userId, partnerId: value["partner_id"]?.stringValue ?? "", device: device)
    }

    var json: [UInt8] {
        var object: JSONObject = ["server": .string(server), "app": .string(app), "token": .string(token)]
        if let user { object["user"] = .string(user) }
        if let login {
            object["kind"] = .string(kind.rawValue)
            object["api_key"] = .string(login.apiKey)
            object["user_id"] = .string(login.userId)
            if kind == .partner { object["partner_id"] = .string(login.partnerId) }
            object["device"] = .string(login.device)
        }
        if let certificates { object["ca"] = .string(certificates) }
        if let proxy { object["proxy"] = .string(proxy) }
        if let pins { object["pin"] = .string(pins) }
        return Pretty.bytes(.object(object))
    }

    /// Whether server, app and token are equal.
    func agrees(with other: Profile) -> Bool {
        same(server, other.server) && same(app, other.app) && same(token, other.token)
    }

    /// Whether it is the same user of the same app, perhaps with another token: the local copies may stay.
    func isSameAccount(as other: Profile) -> Bool {
        guard same(server, other.server), same(app, other.app) else { return false }
        if let login, let other = other.login { return same(login.userId, other.userId) }
        if let user, let other = other.user { return same(user, other) }
        return same(token, other.token)
    }
}

/// The folder that holds profiles and their local stores: `$THICKET_HOME`, else `~/.thicket`.
///
/// ```
/// profiles/NAME/store.key       the key of all files below (mode 0600; not read when others may)
/// profiles/NAME/profile.json    server, app, token, sealed
/// profiles/NAME/keys.json       what opens the account's content, for accounts with keys, sealed
/// profiles/NAME/keys.people     what is known of other people's keys, sealed
/// profiles/NAME/*.lock          held while a command writes those files or changes the access key
/// profiles/NAME/objects/B.db    local copy of the bucket B, sealed
/// profiles/NAME/watch/B.db      the same for 'thicket watch', which runs beside other commands
/// profiles/NAME/tree/tree.db*   local copy of the tree with what waits and a cache of contents, sealed
/// profiles/NAME/tree/watch.db*  the same for 'thicket tree watch'
/// ```
struct ProfileHome: Sendable {
    let path: String
    private let runtimeFolder: String?

    init(_ environment: [String: String]) throws(Failure) {
        runtimeFolder = environment["XDG_RUNTIME_DIR"]
        if let home = environment["THICKET_HOME"], !home.isEmpty {
            path = home
        } else if let home = environment["HOME"], !home.isEmpty {
            path = home + "/.thicket"
        } else {
            throw Failure("no folder for profiles is known: neither THICKET_HOME nor HOME is set", .usage)
        }
    }

    func folder(_ name: String) -> String { "\(path)/profiles/\(name)" }
    func makeFolder(_ name: String) throws(Failure) {
        for folder in [path, path + "/profiles", folder(name)] { try Files.makeFolder(folder) }
    }
    private func file(_ name: String) -> String { folder(name) + "/profile.json" }
    /// The key that seals the profile and its copies.
    func keyFile(_ name: String) -> StoreKeyFile {
        StoreKeyFile(path: folder(name) + "/store.key", runtimeFolder: runtimeFolder)
    }

    /// The profile of that name; nil when no login is stored under it.
    func read(_ name: String) throws(Failure) -> Profile? {
        let bytes: [UInt8]
        switch Files.readPrivate(file(name), bytesMax: 1 << 20) {
        case .bytes(let found): bytes = found
        case .absent: return nil
        case .failed(let reason):
            throw Failure("the profile '\(name)' cannot be read: \(file(name)): \(reason)")
        }
        let damaged = "\(file(name)) is damaged: 'thicket login' with --profile \(name) writes it again"
        guard let kept = try? JSONValue(parsing: bytes) else { throw Failure(damaged) }
        guard let sealed = kept["sealed"]?.stringValue else {
            // Written by an earlier version; the next write seals it.
            guard let profile = Profile(json: bytes) else { throw Failure(damaged) }
            return profile
        }
        guard let text = Base64.decodeURL(Array(sealed.utf8)[...]) else { throw Failure(damaged) }
        let opened = try blocking("the profile '\(name)' cannot be read") { () throws(ClientError) in
            try keyFile(name).key(makesNew: false).open(text, as: "thicket/store-profile/1")
        }
        guard let profile = Profile(json: opened) else { throw Failure(damaged) }
        return profile
    }

    func write(_ profile: Profile, _ name: String) throws(Failure) {
        try makeFolder(name)
        let sealed = try blocking("the profile '\(name)' cannot be kept") { () throws(ClientError) in
            try keyFile(name).key().seal(profile.json, as: "thicket/store-profile/1")
        }
        let object: JSONObject = ["sealed": .string(Base64.encodeURL(sealed))]
        try Files.replace(file(name), Pretty.bytes(.object(object)), mode: 0o600)
    }

    /// Stores a renewed token, if the profile still belongs to the same login.
    func renew(_ name: String, from old: Profile, to token: String) throws(Failure) {
        guard let kept = try read(name), kept.isSameAccount(as: old) else { return }
        var renewed = kept
        renewed.token = token
        try write(renewed, name)
    }

    // MARK: - Keys

    private func keysFile(_ name: String) -> String { folder(name) + "/keys.json" }

    /// The account's keys on this machine; nil when it has none.
    func readKeys(_ name: String) throws(Failure) -> DeviceKeys? {
        let bytes: [UInt8]
        switch Files.readPrivate(keysFile(name), bytesMax: 1 << 20) {
        case .absent: return nil
        case .failed(let reason):
            throw Failure("the account's keys cannot be read: \(keysFile(name)): \(reason)")
        case .bytes(let found): bytes = found
        }
        let damaged =
            "\(keysFile(name)) is damaged. Nothing is lost at the server: set the file aside, and 'thicket login' writes it "
            + "anew"
        guard let kept = try? JSONValue(parsing: bytes), let text = kept["sealed"]?.stringValue,
            let sealed = Base64.decodeURL(Array(text.utf8)[...])
        else { throw Failure(damaged) }
        let opened = try blocking("the account's keys cannot be read") { () throws(ClientError) in
            try keyFile(name).key(makesNew: false).openSecret(sealed, as: "thicket/store-keys/1")
        }
        do throws(AccountError) { return try DeviceKeys(text: opened) } catch {
            throw Failure(
                error == .newerFormat ? "\(keysFile(name)) was written by a newer thicket: update this one" : damaged)
        }
    }

    /// Stores the account's keys beside the profile, sealed like it.
    func writeKeys(_ keys: DeviceKeys, _ name: String) throws(Failure) {
        try makeFolder(name)
        let sealed = try blocking("the account's keys cannot be kept") { () throws(ClientError) in
            try keyFile(name).key().seal(keys.text, as: "thicket/store-keys/1")
        }
        let object: JSONObject = ["sealed": .string(Base64.encodeURL(sealed))]
        try Files.replace(keysFile(name), Pretty.bytes(.object(object)), mode: 0o600)
        // The folder entry must be durable, too: the next access key may soon be all that opens the account.
        try Files.sync(folder: folder(name))
    }

    /// Names of all profiles, in byte order.
    func names() -> [String] {
        Files.names(in: path + "/profiles").filter { access(file($0), F_OK) == 0 }.sorted()
    }

    /// Names of the buckets of which a profile has a copy, in byte order.
    func buckets(_ name: String) -> [String] {
        Files.names(in: folder(name) + "/objects").filter { $0.hasSuffix(".db") }.map { String($0.dropLast(3)) }
            .sorted()
    }

    /// Removes a profile and all its files.
    func remove(_ name: String) throws(Failure) {
        // An unlocked key may be stored outside of the folder. A key that was never locked is not.
        var left: ClientError?
        do throws(ClientError) {
            if try keyFile(name).hasPassphrase { try keyFile(name).lock() }
        } catch { left = error }
        try Files.removeTree(folder(name))
        if let left {
            throw Failure(
                "the profile '\(name)' is removed, but a copy of its key may remain where it was unlocked "
                    + "(XDG_RUNTIME_DIR): \(left.description)")
        }
    }

    /// Renames a profile with all its copies and returns the new name.
    func setAside(_ name: String) throws(Failure) -> String {
        try blocking("cannot set the profile '\(name)' aside") { () throws(ClientError) in
            if try keyFile(name).hasPassphrase { try keyFile(name).lock() }
        }
        for number in 1...10_000 {
            let aside = "\(name.prefix(54)).old-\(number)"
            switch Files.renameNew(folder(name), folder(aside)) {
            case 0: return aside
            case EEXIST, ENOTEMPTY: continue
            case let problem:
                throw Failure("cannot set the profile '\(name)' aside as '\(aside)': \(Files.reason(problem))")
            }
        }
        throw Failure("there are too many profiles '\(name).old-…': 'thicket logout' removes one")
    }

    /// Checks a name that becomes a folder's name.
    static func checked(_ name: String) throws(Failure) -> String {
        let isGood =
            (1...64).contains(name.utf8.count) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E || byte == 0x5F
            }
        guard isGood else {
            throw Failure(
                "'\(name)' is not a profile name: 1 to 64 letters, digits, '.', '_' or '-', no '.' first", .usage)
        }
        return name
    }
}

/// Whether two texts are the same bytes.
func same(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
