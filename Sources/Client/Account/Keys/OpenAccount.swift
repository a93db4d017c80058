public import ThicketCrypto

/// An account whose keys are open on this device.
public struct OpenAccount: Sendable, Equatable {
    /// The app id.
    public let app: String
    /// The user's id at the server, or a partner's entity id.
    public let user: String
    /// The login name; empty for a partner's user.
    public let name: String
    /// The key that opens the bundle. The recovery words encode exactly these bytes.
    public let accessKey: AccessKey
    /// The content of the bundle.
    public internal(set) var bundle: AccountBundle
    /// The newest version of the bundle that this device has seen.
    public internal(set) var version: UInt64
    /// The parameters of the key derivation when the keys were opened last; nil when there is no password.
    public internal(set) var pin: PasswordPin?

    init(
        app: String, user: String, name: String, accessKey: AccessKey, bundle: AccountBundle, version: UInt64,
        pin: PasswordPin?
    ) {
        (self.app, self.user, self.name, self.accessKey) = (app, user, name, accessKey)
        (self.bundle, self.version, self.pin) = (bundle, version, pin)
    }

    /// Whether to remind the user that only devices and a password lead to the keys.
    public var needsBackup: Bool { bundle.backup == .missing }

    /// Compares all members except `name`; secrets in constant time.
    public static func == (left: OpenAccount, right: OpenAccount) -> Bool {
        left.app.utf8.elementsEqual(right.app.utf8) && left.user.utf8.elementsEqual(right.user.utf8)
            && left.accessKey == right.accessKey && left.bundle == right.bundle && left.version == right.version
            && left.pin == right.pin
    }

    var place: AccountPlace { AccountPlace(app: app, user: user, version: version) }

    var seen: SeenBundle { SeenBundle(version: version, bundle: bundle) }

    /// Opens a bundle from the server.
    ///
    /// - Parameter seen: the newest bundle that this device has seen.
    /// - Throws: `rolledBack`, also for other content under the same number; `doesNotOpen`, `newerFormat`, `damaged`.
    static func open(
        _ sealed: [UInt8], app: String, user: String, version: UInt64, seen: SeenBundle, with key: AccessKey
    ) throws(AccountError) -> AccountBundle {
        guard version >= seen.version else { throw .rolledBack(seen: seen.version, shown: version) }
        let place = AccountPlace(app: app, user: user, version: version)
        let text: SecureBytes
        do throws(CryptoError) { text = try place.openBundle(sealed, with: key) } catch { throw .doesNotOpen }
        let bundle = try AccountBundle(text: text)
        // A write names the version that it replaces, so a number has two contents only after a restore, or when the
        // server lies.
        if version == seen.version, let kept = seen.bundle, kept != bundle {
            throw .rolledBack(seen: seen.version, shown: version)
        }
        return bundle
    }

    /// As above, with the access key that this device already had.
    ///
    /// - Throws: `keyChanged` for a newer bundle that does not open; otherwise as `open`.
    static func openOwn(
        _ sealed: [UInt8], app: String, user: String, version: UInt64, seen: SeenBundle, with key: AccessKey
    ) throws(AccountError) -> AccountBundle {
        do throws(AccountError) {
            return try open(sealed, app: app, user: user, version: version, seen: seen, with: key)
        } catch {
            throw error == .doesNotOpen && version > seen.version ? .keyChanged : error
        }
    }

    /// Seals a bundle as the version that follows `replaced`.
    static func seal(
        _ bundle: AccountBundle, app: String, user: String, replacing replaced: UInt64, with key: AccessKey
    ) throws(AccountError) -> [UInt8] {
        let place = AccountPlace(app: app, user: user, version: replaced + 1)
        do throws(CryptoError) {
            return try place.seal(bundle: bundle.text(), with: key)
        } catch { throw .unusable("\(error)") }
    }
}

extension OpenAccount: CustomStringConvertible, CustomReflectable {
    /// A fixed text with the version: the keys never reach a log.
    public var description: String { "(an account with its keys, version \(version))" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// The newest bundle of an account that a device has seen.
struct SeenBundle: Sendable {
    let version: UInt64
    /// Its content; nil when only the number is known.
    let bundle: AccountBundle?

    static let none = SeenBundle(version: 0, bundle: nil)

    /// - Returns: the newer of both; with equal numbers, the one whose content is known.
    static func newest(_ one: SeenBundle, _ other: SeenBundle) -> SeenBundle {
        if one.version == other.version { return one.bundle == nil ? other : one }
        return one.version > other.version ? one : other
    }
}

/// The parameters of the key derivation from an account's password, as remembered by a device that has opened the
/// account. If a server later reports other parameters, they are accepted only when its data opens with them (spec 3.2,
/// "Downgrade").
public struct PasswordPin: Sendable, Hashable {
    /// The number of the scheme; 1 is the only one.
    public let scheme: Int
    /// The number of the key derivation function.
    public let kdf: Int
    /// The base-2 logarithm of scrypt's N.
    public let log2N: Int
    /// scrypt's r, the block size.
    public let r: Int
    /// scrypt's p, the parallelism.
    public let p: Int
    /// The salt, 16 bytes.
    public let salt: [UInt8]

    /// Makes a pin; the values are checked when it is used.
    public init(scheme: Int, kdf: Int, log2N: Int, r: Int, p: Int, salt: [UInt8]) {
        (self.scheme, self.kdf, self.log2N) = (scheme, kdf, log2N)
        (self.r, self.p, self.salt) = (r, p, salt)
    }

    /// The parameters that this library chooses for a new password.
    static func new(salt: [UInt8]) -> PasswordPin {
        let usual = PasswordCost.standard
        return PasswordPin(
            scheme: 1, kdf: PasswordRules.scryptNumber, log2N: usual.log2N, r: usual.r, p: usual.p, salt: salt)
    }

    /// The cost of the derivation, if its parameters are acceptable.
    ///
    /// - Parameter known: the parameters that this device remembers.
    /// - Throws: `downgrade`.
    func cost(_ rules: PasswordRules, known: PasswordPin?) throws(AccountError) -> PasswordCost {
        guard scheme == 1 else { throw .downgrade("another scheme (\(scheme))") }
        guard salt.count == PasswordKeys.saltBytes else { throw .downgrade("a salt of \(salt.count) bytes") }
        let cost: PasswordCost
        do throws(CryptoError) {
            cost = try rules.cost(kdf: kdf, log2N: log2N, r: r, p: p)
        } catch {
            throw .downgrade("kdf \(kdf), N 2^\(log2N), r \(r), p \(p)")
        }
        guard let known, self != known else { return cost }
        // Every change of the password makes a new salt: other parameters with the same salt are not a change of the
        // password.
        guard salt != known.salt else { throw .downgrade("other parameters for the same password") }
        guard log2N >= known.log2N, p >= known.p else { throw .downgrade("weaker parameters than before") }
        return cost
    }
}
