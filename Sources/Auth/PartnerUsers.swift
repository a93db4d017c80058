/// A user's data as reported to apps.
public struct Profile: Sendable, Hashable {
    /// Numbers the users from 1; reported beside the entity id because apps expect a number.
    public let number: Int64
    /// The user's ids and public keys.
    public let entity: Entity
    /// Empty for guests and for users whose passwords the partner keeps itself.
    public let username: String
    /// Empty: none is known.
    public let phone: String
    /// Empty: none is known.
    public let email: String
    /// Admitted by the partner before it knew the user's identity.
    public let isGuest: Bool
    /// Milliseconds since 1970.
    public let created: Int64
    /// Latest change of password or creation, milliseconds since 1970.
    public let updated: Int64
    /// The number of logins.
    public let logins: Int64

    /// A profile as the store has it.
    public init(
        number: Int64, entity: Entity, username: String = "", phone: String = "", email: String = "",
        isGuest: Bool = false, created: Int64, updated: Int64, logins: Int64 = 0
    ) {
        (self.number, self.entity, self.username, self.phone) = (number, entity, username, phone)
        (self.email, self.isGuest, self.created, self.updated, self.logins) = (email, isGuest, created, updated, logins)
    }
}

/// The stored form of a password: its scrypt (`Scrypt.Cost.login`) under its own salt.
public struct PasswordVerifier: Sendable, Hashable {
    /// Bytes of a salt.
    public static let saltBytes = 16
    /// Bytes of a hash.
    public static let hashBytes = 32

    /// Random, `saltBytes` bytes.
    public let salt: [UInt8]
    /// The scrypt hash, `hashBytes` bytes.
    public let hash: [UInt8]

    /// A stored or newly computed hash.
    public init(salt: [UInt8], hash: [UInt8]) { (self.salt, self.hash) = (salt, hash) }
}

/// A user that registers with a password.
public struct NewUser: Sendable, Hashable {
    /// Id of the partner.
    public let partner: String
    /// The server's new id of the user.
    public let entity: String
    /// A made-up id, unlike any id of the partner, because users with passwords are never the partner's own users.
    public let partnerEntity: String
    /// Unique within the partner.
    public let username: String
    /// Empty: none was given.
    public let phone: String
    /// The hash of its password.
    public let verifier: PasswordVerifier

    /// A user that is not stored yet.
    public init(
        partner: String, entity: String, partnerEntity: String, username: String, phone: String,
        verifier: PasswordVerifier
    ) {
        (self.partner, self.entity, self.partnerEntity) = (partner, entity, partnerEntity)
        (self.username, self.phone, self.verifier) = (username, phone, verifier)
    }
}

/// A session begun by a login with a password: its tokens are renewed without the password until it ends.
public struct LoginSession: Sendable, Hashable {
    /// Longest lifetime, seconds.
    public static let secondsMax: Double = 30 * 86_400
    /// Most sessions of one user; beyond that the oldest end.
    public static let perUserMax = 64

    /// SHA-256 of the id in its tokens.
    public let hash: [UInt8]
    /// The user's id.
    public let entity: String
    /// The device's id.
    public let device: String
    /// When it ends, seconds since 1970.
    public let ends: Double

    /// A session.
    public init(hash: [UInt8], entity: String, device: String, ends: Double) {
        (self.hash, self.entity, self.device, self.ends) = (hash, entity, device, ends)
    }
}

/// A code sent to a user that has forgotten its password.
public enum ResetCode {
    /// Digits of a code.
    public static let digits = 8
    /// Lifetime of a code, seconds.
    public static let seconds: Double = 900
    /// Seconds within which no other code is sent to the same user.
    public static let pause: Double = 300
    /// Most tries of one code.
    public static let triesMax = 5

    /// Random digits, all equally likely.
    static func make(random: (Int) -> [UInt8]) -> String {
        var text = ""
        while text.utf8.count < digits {
            // The 250 values below 250 map evenly to ten digits; the other six of 256 are skipped.
            for byte in random(digits) where byte < 250 && text.utf8.count < digits { text += String(byte % 10) }
        }
        return text
    }
}

/// The store of users that partners' apps log in on this server. A change is on disk when the call returns.
public protocol PartnerUsers: AnyObject {
    /// The user that the partner knows by this id, created as a guest if it does not exist.
    func registerGuest(
        partner: String, partnerEntity: String, newID: String, now: Double
    ) throws(DirectoryError) -> Profile
    /// Counts one more login.
    /// - Returns: nil when the user does not exist.
    func loggedIn(_ entity: String, now: Double) throws(DirectoryError) -> Profile?

    /// Adds a user with a password.
    /// - Returns: nil, and nothing is stored, when the partner has a user of that name.
    func add(_ user: NewUser, now: Double) throws(DirectoryError) -> Profile?
    /// The user id and password hash of a username; nil when it is unknown.
    func verifier(of username: String, partner: String) throws(DirectoryError) -> (
        entity: String, verifier: PasswordVerifier
    )?
    /// The name under which the user has a password; nil when it has none.
    func username(of entity: String) throws(DirectoryError) -> String?
    /// Replaces the user's password, and ends its sessions but one.
    /// - Parameter session: hash of the one that stays.
    func setVerifier(
        _ verifier: PasswordVerifier, of entity: String, keeping session: [UInt8]?, now: Double
    ) throws(DirectoryError)

    /// Begins a session; the one on the same device ends.
    func begin(_ session: LoginSession, now: Double) throws(DirectoryError)
    /// The session with this hash; nil when it is unknown. It may be over.
    func session(_ hash: [UInt8]) throws(DirectoryError) -> LoginSession?
    /// Ends a session.
    func endSession(_ hash: [UInt8]) throws(DirectoryError)

    /// Keeps a code, in place of the previous one.
    /// - Returns: false, and nothing is changed, when one was kept less than `ResetCode.pause` ago.
    func keep(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool
    /// Whether this is the kept code, in time, after fewer than `ResetCode.triesMax` tries. A right code is used
    /// up, a wrong one counts as a try.
    func redeem(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool
}
