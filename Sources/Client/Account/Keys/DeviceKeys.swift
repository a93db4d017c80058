public import ThicketCrypto
import ThicketProtocol

/// What a device keeps of an account between two runs: the access key, the bundle as the server has it sealed, and what
/// is remembered of the server so that it cannot go back.
///
/// `text` is a secret: whoever has it has the account's content. It belongs into a file that its owner alone reads, or
/// under a key of the device's own.
public struct DeviceKeys: Sendable, Equatable {
    private static let format: Int64 = 1

    public let app: String
    public let user: String
    public let name: String
    public let accessKey: AccessKey
    /// The bundle as it was sealed last, and its version; it opens with `accessKey`.
    let sealed: [UInt8]
    public let version: UInt64
    /// How the password was stretched when the keys opened last.
    public let pin: PasswordPin?
    /// The access key that is to follow, while a change of it is under way: kept before the server is asked, since
    /// afterwards it may be all that opens the account (`Accounts.changeAccessKey`).
    public let next: AccessKey?

    /// - Parameter next: an access key that is to follow.
    /// - Throws: nothing that depends on a secret.
    public init(_ account: OpenAccount, next: AccessKey? = nil) throws(AccountError) {
        self.next = next
        (app, user, name) = (account.app, account.user, account.name)
        (accessKey, version, pin) = (account.accessKey, account.version, account.pin)
        sealed = try OpenAccount.seal(
            account.bundle, app: app, user: user, replacing: account.version &- 1, with: accessKey)
    }

    /// The account, opened without a server.
    /// - Throws: `doesNotOpen` when what was kept is damaged, `newerFormat`.
    public func open() throws(AccountError) -> OpenAccount {
        OpenAccount(
            app: app, user: user, name: name, accessKey: accessKey,
            bundle: try OpenAccount.open(
                sealed, app: app, user: user, version: version, seen: .none, with: accessKey),
            version: version, pin: pin)
    }

    /// Of keys that are damaged here, no other access key is taken for the account's.
    var known: KnownAccount {
        KnownAccount(user: user, accessKey: accessKey, version: version, pin: pin, bundle: try? open().bundle)
    }

    private static func next(_ object: SecretObject) throws(AccountError) -> AccessKey? {
        guard object["next_access_key"] != nil else { return nil }
        guard let secret = object.bytes("next_access_key", count: AccessKey.bytesCount),
            let key = try? AccessKey(secret)
        else { throw .damaged }
        return key
    }

    /// As it is kept: JSON, with the access key as base64url.
    public var text: SecureBytes {
        var writer = SecretWriter()
        writer.add("format", .number(JSONNumber(Self.format)))
        writer.add("app", .string(app))
        writer.add("user", .string(user))
        writer.add("name", .string(name))
        writer.add("access_key", bytes: accessKey.secret)
        if let next { writer.add("next_access_key", bytes: next.secret) }
        writer.add("bundle", .string(Base64.encodeURL(sealed)))
        writer.add("version", BundleVersion.json(version))
        if let pin { writer.add("pin", pin.json) }
        return writer.text
    }

    /// Reads what `text` gives.
    /// - Throws: `newerFormat`, or `damaged`.
    public init(text: SecureBytes) throws(AccountError) {
        guard let object = SecretObject(text), let format = object.value("format")?.intValue
        else { throw .damaged }
        guard format == Self.format else { throw .newerFormat }
        guard let app = object.value("app")?.stringValue, let user = object.value("user")?.stringValue,
            let name = object.value("name")?.stringValue,
            let secret = object.bytes("access_key", count: AccessKey.bytesCount),
            let key = try? AccessKey(secret), let bundle = object.value("bundle")?.stringValue,
            let sealed = Base64.decodeURL(Array(bundle.utf8)[...]),
            let version = try BundleVersion.read(object)
        else { throw .damaged }
        (self.app, self.user, self.name, accessKey) = (app, user, name, key)
        (self.sealed, self.version) = (sealed, version)
        next = try Self.next(object)
        pin = try PasswordPin.read(object)
    }
}

/// Which bundle was the newest, as a device keeps it, and gives it to another one: the member `version`.
enum BundleVersion {
    static func json(_ version: UInt64) -> JSONValue { .number(JSONNumber(Int64(clamping: version))) }

    /// - Returns: nil where there is none.
    /// - Throws: `damaged` for what is no whole number from 0 on.
    static func read(_ object: SecretObject) throws(AccountError) -> UInt64? {
        guard object["version"] != nil else { return nil }
        guard let value = object.value("version") else { throw .damaged }
        if value.isNull { return nil }
        guard let version = value.intValue.flatMap(UInt64.init(exactly:)) else { throw .damaged }
        return version
    }
}

/// As a device keeps it, and gives it to another one: the member `pin`.
extension PasswordPin {
    var json: JSONValue {
        [
            "scheme": .number(JSONNumber(Int64(scheme))), "kdf": .number(JSONNumber(Int64(kdf))),
            "n": .number(JSONNumber(Int64(log2N))), "r": .number(JSONNumber(Int64(r))),
            "p": .number(JSONNumber(Int64(p))), "salt": .string(Base64.encodeURL(salt)),
        ]
    }

    /// - Returns: nil where there is none.
    /// - Throws: `damaged` for what is none.
    static func read(_ object: SecretObject) throws(AccountError) -> PasswordPin? {
        guard object["pin"] != nil else { return nil }
        guard let value = object.value("pin") else { throw .damaged }
        if value.isNull { return nil }
        guard let members = value.objectValue else { throw .damaged }
        do throws(AccountError) { return try AccountReply(members).pin() } catch { throw .damaged }
    }
}

extension DeviceKeys: CustomStringConvertible, CustomReflectable {
    /// Says nothing of what it holds.
    public var description: String { "(what a device keeps of an account)" }
    /// Shows nothing of what it holds.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
