public import ThicketCrypto

/// An account whose keys are open on this device.
public struct OpenAccount: Sendable, Equatable {
    public let app: String
    /// The user's id at the server: of an account of ours, or a partner's entity id.
    public let user: String
    /// As one logs in; empty for a partner's user.
    public let name: String
    /// Opens the bundle. The recovery words are exactly these bytes.
    public let accessKey: AccessKey
    /// What the bundle holds.
    public internal(set) var bundle: AccountBundle
    /// Of the bundle: the newest that this device has seen.
    public internal(set) var version: UInt64
    /// How the password is stretched, as it was when the keys opened last; nil where there is none.
    public internal(set) var pin: PasswordPin?

    init(
        app: String, user: String, name: String, accessKey: AccessKey, bundle: AccountBundle, version: UInt64,
        pin: PasswordPin?
    ) {
        (self.app, self.user, self.name, self.accessKey) = (app, user, name, accessKey)
        (self.bundle, self.version, self.pin) = (bundle, version, pin)
    }

    /// Whether the user is to be reminded that nothing but devices and a password lead to the keys.
    public var needsBackup: Bool { bundle.backup == .missing }

    public static func == (left: OpenAccount, right: OpenAccount) -> Bool {
        left.app.utf8.elementsEqual(right.app.utf8) && left.user.utf8.elementsEqual(right.user.utf8)
            && left.accessKey == right.accessKey && left.bundle == right.bundle && left.version == right.version
            && left.pin == right.pin
    }

    var place: AccountPlace { AccountPlace(app: app, user: user, version: version) }

    var seen: SeenBundle { SeenBundle(version: version, bundle: bundle) }

    /// Opens a bundle that the server shows.
    /// - Parameter seen: the newest that this device has seen.
    /// - Throws: `rolledBack`, also for other content under the same number; `doesNotOpen`, `newerFormat`, `damaged`.
    static func open(
        _ sealed: [UInt8], app: String, user: String, version: UInt64, seen: SeenBundle, with key: AccessKey
    ) throws(AccountError) -> AccountBundle {
        guard version >= seen.version else { throw .rolledBack(seen: seen.version, shown: version) }
        let place = AccountPlace(app: app, user: user, version: version)
        let text: SecureBytes
        do throws(CryptoError) { text = try place.openBundle(sealed, with: key) } catch { throw .doesNotOpen }
        let bundle = try AccountBundle(text: text)
        // A write names the version that it replaces: one number never has two contents but after a restore, or by a
        // lie.
        if version == seen.version, let kept = seen.bundle, kept != bundle {
            throw .rolledBack(seen: seen.version, shown: version)
        }
        return bundle
    }

    /// The same with the access key that this device has had all along.
    /// - Throws: `keyChanged` for a newer bundle that does not open; else as `open`.
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
    /// Says nothing of what it holds but the version.
    public var description: String { "(an account with its keys, version \(version))" }
    /// Shows nothing of what it holds.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// The newest bundle that a device has seen of an account.
struct SeenBundle: Sendable {
    let version: UInt64
    /// What it holds; nil where only the number is known.
    let bundle: AccountBundle?

    static let none = SeenBundle(version: 0, bundle: nil)

    /// - Returns: the newer of both; of two with one number, the one whose content is known.
    static func newest(_ one: SeenBundle, _ other: SeenBundle) -> SeenBundle {
        if one.version == other.version { return one.bundle == nil ? other : one }
        return one.version > other.version ? one : other
    }
}

/// How an account's password is stretched, as a device that has opened the account remembers it. A server that later
/// says something else is believed only when what it keeps opens (spec 3.2, "Downgrade").
public struct PasswordPin: Sendable, Hashable {
    public let scheme: Int
    public let kdf: Int
    /// Logarithm of N to base 2.
    public let log2N: Int
    public let r: Int
    public let p: Int
    /// 16 bytes.
    public let salt: [UInt8]

    public init(scheme: Int, kdf: Int, log2N: Int, r: Int, p: Int, salt: [UInt8]) {
        (self.scheme, self.kdf, self.log2N) = (scheme, kdf, log2N)
        (self.r, self.p, self.salt) = (r, p, salt)
    }

    /// What this library chooses for a new password.
    static func new(salt: [UInt8]) -> PasswordPin {
        let usual = PasswordCost.standard
        return PasswordPin(
            scheme: 1, kdf: PasswordRules.scryptNumber, log2N: usual.log2N, r: usual.r, p: usual.p, salt: salt)
    }

    /// What stretching by it costs, if that is honoured at all.
    ///
    /// - Parameter known: what this device has pinned.
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
        // Every password change makes a salt: other parameters under the same one are no change of a password.
        guard salt != known.salt else { throw .downgrade("other parameters for the same password") }
        guard log2N >= known.log2N, p >= known.p else { throw .downgrade("weaker parameters than before") }
        return cost
    }
}
