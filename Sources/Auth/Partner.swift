import ThicketCrypto
public import ThicketKeyLog
import ThicketPlatform

/// An organisation with users of its own, whose server signs their tokens.
public struct Partner: Sendable, Hashable {
    /// Decimal, as text.
    public let id: String
    /// The bytes of its live auth keys as text, the newest first; two while one replaces the other, none when its
    /// users may not log in.
    public let authKeys: [[UInt8]]
    /// The same keys, ready to check signatures with.
    let signers: [MessageKey512]
    /// Whether its users may log in.
    public let isEnabled: Bool
    /// Whether its users may have passwords on this server, for partners without an authentication server.
    public let keepsPasswords: Bool

    /// A partner; prepares its keys for checking signatures.
    public init(id: String, authKeys: [[UInt8]], isEnabled: Bool = true, keepsPasswords: Bool = false) {
        (self.id, self.authKeys, signers) = (id, authKeys, authKeys.map(MessageKey512.init))
        (self.isEnabled, self.keepsPasswords) = (isEnabled, keepsPasswords)
    }

    /// Compares the stored properties; `signers` follows from them.
    public static func == (left: Partner, right: Partner) -> Bool {
        left.id == right.id && left.authKeys == right.authKeys && left.isEnabled == right.isEnabled
            && left.keepsPasswords == right.keepsPasswords
    }

    /// Hashes the id, which is unique.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }

    /// Most live auth keys.
    public static let authKeysMax = 2
    /// An auth key has at least as many bytes as the hash that it keys (RFC 7518, 3.2).
    public static let authKeyBytesMin = 64
    /// Longest auth key, bytes.
    public static let authKeyBytesMax = 1_024

    /// Placeholder for an unknown API key, so that checking a token against it takes as long as for a known one.
    public static let nobody = Partner(
        id: "", authKeys: [Array(RandomBytes.hex(Self.authKeyBytesMin).utf8)], isEnabled: false)

    /// A new auth key: base64 of 64 random bytes, 88 characters. It is used as text.
    public static func newAuthKey(random: (Int) -> [UInt8]) -> String { Base64.encode(random(64)) }

    /// A new API key or entity id: a UUID of version 4 (RFC 9562, 5.4).
    public static func newID(random: (Int) -> [UInt8]) -> String {
        var bytes = random(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits: [Character] = Array(Hex.encode(bytes))
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }
}

/// A user of a partner.
public struct Entity: Sendable, Hashable {
    /// The server's id, given at registration.
    public let id: String
    /// Id of the partner.
    public let partner: String
    /// The partner's own id of the user.
    public let partnerEntity: String
    /// X25519 public key that a device of the user has uploaded; nil before that.
    public let publicKey: [UInt8]?
    /// Ed25519 public key, uploaded with it.
    public let signKey: [UInt8]?

    /// A user as the store has it.
    public init(
        id: String, partner: String, partnerEntity: String, publicKey: [UInt8]? = nil, signKey: [UInt8]? = nil
    ) {
        (self.id, self.partner, self.partnerEntity) = (id, partner, partnerEntity)
        (self.publicKey, self.signKey) = (publicKey, signKey)
    }
}

/// The store of partners and their users. Belongs to one thread.
public protocol PartnerDirectory: PartnerUsers, EntityBundles {
    /// The partner with this API key, enabled or not; nil when no partner has it. Known and unknown keys take as long.
    func partner(apiKey: String) throws(DirectoryError) -> Partner?
    /// The partner whose users may use the app; nil when the app is unknown or has none.
    func partner(ofApp app: String) throws(DirectoryError) -> Partner?
    /// Partners disabled since the last call; the first call may return all disabled ones.
    func disabledPartners() throws(DirectoryError) -> [String]
    /// The user with this id; nil when it does not exist.
    func entity(_ id: String) throws(DirectoryError) -> Entity?
    /// The user that the partner knows by this id, created under `newID` if it does not exist; on disk when the
    /// call returns.
    func register(
        partner: String, partnerEntity: String, email: String, newID: String, now: Double
    ) throws(DirectoryError) -> Entity
    /// Stores the public keys that a device of the user has uploaded, if the user has none; on disk when the call
    /// returns.
    /// - Returns: whether the user has these keys now; false when it has others.
    func setKeys(public: [UInt8], sign: [UInt8], of entity: String) throws(DirectoryError) -> Bool
    /// Records that the user logged in on this device.
    func saw(device: String, of entity: String, now: Double) throws(DirectoryError)
    /// The user's devices, the one seen last first; bounded.
    func devices(of entity: String) throws(DirectoryError) -> [KnownDevice]
    /// Denies these tokens from now on; on disk when the call returns.
    func deny(_ tokens: [DeniedToken], now: Double) throws(DirectoryError)
    /// Whether the token with this SHA-256 was denied.
    func isDenied(_ hash: [UInt8]) throws(DirectoryError) -> Bool
}

/// A device that a user has logged in on.
public struct KnownDevice: Sendable, Hashable {
    /// The device's id.
    public let id: String
    /// First login, milliseconds since 1970.
    public let first: Int64
    /// Latest login, milliseconds since 1970, to the hour.
    public let last: Int64

    /// A known device.
    public init(id: String, first: Int64, last: Int64) { (self.id, self.first, self.last) = (id, first, last) }
}

/// A token that its user has signed out, before its end.
public struct DeniedToken: Sendable, Hashable {
    /// SHA-256 of the token as it was shown.
    public let hash: [UInt8]
    /// Seconds since 1970 at which the token would end anyway.
    public let until: Double

    /// An entry that can be deleted after `until`.
    public init(hash: [UInt8], until: Double) { (self.hash, self.until) = (hash, until) }
}

/// The user or partner whose open connections must end.
public enum Revocation: Sendable, Hashable {
    /// The partner was disabled.
    case partner(String)
    /// The user has signed out on this device.
    case device(String, of: String)
    /// The user has another password: all connections but those of one device.
    case user(String, keeping: String?)
}

/// The directory cannot be used at the moment; the same request may be sent again.
public struct DirectoryError: Error, Sendable, CustomStringConvertible {
    /// For the log.
    public let description: String
    /// Why an entry of the key log was refused; nil: the directory itself failed.
    public let refusedEntry: KeyLogError?
    /// The newest entry of the user that the refused one is of.
    public let newestEntry: KeyLogEntry?

    /// An error with this text.
    public init(_ description: String) {
        (self.description, refusedEntry, newestEntry) = (description, nil, nil)
    }

    /// A refused entry.
    public init(_ refusal: KeyLogError, newest: KeyLogEntry?) {
        (description, refusedEntry, newestEntry) = (refusal.description, refusal, newest)
    }
}
