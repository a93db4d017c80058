import Glibc
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses

/// A real server with every kind of user: an app with built-in accounts, and a partner with its own app, whose users'
/// passwords are kept here too. Used by one thread at a time.
public final class ThreatHouse {
    public static let app = "notes"
    public static let shop = "shop"
    public static let partner = "77"

    public let folder: TemporaryFolder
    public let daemon: Daemon
    /// The API key of `app`.
    public let apiKey: String
    public let adminKey: String
    /// The API key of the partner.
    public let partnerKey: String
    public let authKey: String
    public var port: UInt16 { daemon.port }

    /// - Parameter words: more words for `serve`.
    public init(_ name: String, _ words: [String] = [], variables: [String: String] = [:]) throws(ProcessError) {
        let folder = TemporaryFolder(name)
        let keys = TemporaryFolder("\(name)-keys")
        partnerKey = Self.identifier()
        authKey = Base64.encode(RandomBytes.make(64))
        let file = "\(keys.path)/auth"
        try Self.write(authKey, to: file)
        try Daemon.command(
            folder.path, ["partner", "add", "--id", Self.partner, "--api-key", partnerKey, "--auth-key-file", file],
            succeeding: true)
        try Daemon.command(folder.path, ["partner", "passwords", Self.partner], succeeding: true)
        try Daemon.command(folder.path, ["app", "create", Self.shop, "--partner", Self.partner], succeeding: true)
        let made = try Daemon.command(folder.path, ["app", "create", Self.app], succeeding: true).output
        (apiKey, adminKey) = (try Self.value("api key", in: made), try Self.value("admin key", in: made))
        self.folder = folder
        daemon = try Daemon(folder: folder.path, words, variables: variables)
    }

    public func caller(source: UInt32 = 1) throws(ProcessError) -> Caller {
        try Caller(port: port, source: source)
    }

    /// Seconds since 1970.
    public static var now: Int64 { Int64(time(nil)) }

    /// Registers a user of the partner, as the partner's server does, and returns the entity id.
    public func register(_ user: String, by caller: Caller) throws(ProcessError) -> String {
        let token = SignedTokens.registration(user: user, ends: Self.now + 900, key: authKey)
        return try caller.ask(
            "POST", "/api/v1/authentication/register", partnerFields(token), body: #"{"email":"u@example.com"}"#
        ).string("entity_id")
    }

    /// A valid login token of a user.
    public func login(_ entity: String, _ user: String, device: String) -> String {
        SignedTokens.login(entity: entity, user: user, device: device, ends: Self.now + 1_500, key: authKey)
    }

    public func partnerFields(_ token: String, device: String? = nil) -> [(String, String)] {
        [("x-rezolve-partner-apikey", partnerKey), ("authorization", "Bearer \(token)")]
            + (device.map { [("x-rezolve-device-id", $0)] } ?? [])
    }

    /// Every file below a folder, with its contents.
    public static func files(_ folder: String) -> [(path: String, bytes: [UInt8])] {
        guard let open = opendir(folder) else { return [(folder, read(folder))] }
        defer { closedir(open) }
        var found = [(path: String, bytes: [UInt8])]()
        while let entry = readdir(open) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { (bytes: UnsafeRawBufferPointer) in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { found += files("\(folder)/\(name)") }
        }
        return found
    }

    private static func read(_ path: String) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = Glibc.read(file, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
        return bytes
    }

    private static func write(_ text: String, to path: String) throws(ProcessError) {
        let bytes: [UInt8] = Array(text.utf8)
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        defer { close(file) }
        guard file >= 0, Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw ProcessError("\(path) could not be written")
        }
    }

    /// The value behind a label at the beginning of a line.
    private static func value(_ label: String, in text: String) throws(ProcessError) -> String {
        for line in text.split(separator: "\n") where line.hasPrefix(label) {
            return String(line.dropFirst(label.count).drop { $0 == " " })
        }
        throw ProcessError("no \(label) in: \(text)")
    }

    /// A new identifier of the form of partners' API keys.
    private static func identifier() -> String {
        let hex: [Character] = Array(RandomBytes.hex(16))
        return [hex[0..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20..<32]].map { String($0) }
            .joined(separator: "-")
    }
}
