public import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// What a device stores of an account between runs: the access key, the sealed bundle from the server, and what it
/// remembers of the server so that a rollback is noticed.
///
/// `text` is a secret: it gives access to the account's content. Store it in a file that only its owner can read, or
/// sealed under a key of the device.
public struct DeviceKeys: Sendable, Equatable {
    private static let format: Int64 = 1

    /// The app id.
    public let app: String
    /// The user's id at the server, or a partner's entity id.
    public let user: String
    /// The login name; empty for a partner's user.
    public let name: String
    /// The key that opens the bundle.
    public let accessKey: AccessKey
    /// The last sealed bundle; it opens with `accessKey`.
    let sealed: [UInt8]
    /// The version of the bundle.
    public let version: UInt64
    /// The parameters of the key derivation when the keys were opened last; nil when there is no password.
    public let pin: PasswordPin?
    /// The next access key, while a change of it is under way. It is stored before the server is asked, because
    /// afterwards it may be the only key that opens the account (`Accounts.changeAccessKey`).
    public let next: AccessKey?

    /// - Parameters:
    ///   - next: the next access key, while a change of it is under way.
    ///   - account: the opened account whose keys are kept.
    /// - Throws: an error that depends on no secret.
    public init(_ account: OpenAccount, next: AccessKey? = nil) throws(AccountError) {
        self.next = next
        (app, user, name) = (account.app, account.user, account.name)
        (accessKey, version, pin) = (account.accessKey, account.version, account.pin)
        sealed = try OpenAccount.seal(
            account.bundle, app: app, user: user, replacing: account.version &- 1, with: accessKey)
    }

    /// Opens the account without a server.
    ///
    /// - Throws: `doesNotOpen` when the stored data is damaged, `newerFormat`.
    public func open() throws(AccountError) -> OpenAccount {
        OpenAccount(
            app: app, user: user, name: name, accessKey: accessKey,
            bundle: try OpenAccount.open(
                sealed, app: app, user: user, version: version, seen: .none, with: accessKey),
            version: version, pin: pin)
    }

    /// If the stored bundle is damaged, `bundle` is nil, and no other access key is accepted for the account.
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

    /// The form to store: JSON, with the access key in base64url.
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

    /// Reads the result of `text`.
    ///
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

/// The version of the newest bundle that a device has seen, as stored and passed to another device in the member
/// `version`.
enum BundleVersion {
    static func json(_ version: UInt64) -> JSONValue { .number(JSONNumber(Int64(clamping: version))) }

    /// - Returns: nil when the member is missing or null.
    /// - Throws: `damaged` when it is not a whole number from 0 on.
    static func read(_ object: SecretObject) throws(AccountError) -> UInt64? {
        guard object["version"] != nil else { return nil }
        guard let value = object.value("version") else { throw .damaged }
        if value.isNull { return nil }
        guard let version = value.intValue.flatMap(UInt64.init(exactly:)) else { throw .damaged }
        return version
    }
}

/// The form stored and passed to another device in the member `pin`.
extension PasswordPin {
    var json: JSONValue {
        [
            "scheme": .number(JSONNumber(Int64(scheme))), "kdf": .number(JSONNumber(Int64(kdf))),
            "n": .number(JSONNumber(Int64(log2N))), "r": .number(JSONNumber(Int64(r))),
            "p": .number(JSONNumber(Int64(p))), "salt": .string(Base64.encodeURL(salt)),
        ]
    }

    /// - Returns: nil when the member is missing or null.
    /// - Throws: `damaged` when it is not a valid pin.
    static func read(_ object: SecretObject) throws(AccountError) -> PasswordPin? {
        guard object["pin"] != nil else { return nil }
        guard let value = object.value("pin") else { throw .damaged }
        if value.isNull { return nil }
        guard let members = value.objectValue else { throw .damaged }
        do throws(AccountError) { return try AccountReply(members).pin() } catch { throw .damaged }
    }
}

extension DeviceKeys: CustomStringConvertible, CustomReflectable {
    /// A fixed text: the keys never reach a log.
    public var description: String { "(what a device keeps of an account)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
