/// What apps are shown of a user.
public struct Profile: Sendable, Hashable {
    /// Counts users from 1; shown beside the entity id because apps expect a number.
    public let number: Int64
    public let entity: Entity
    /// Empty for guests and for users whose passwords the partner keeps itself.
    public let username: String
    public let phone: String
    public let email: String
    public let isGuest: Bool
    /// Milliseconds since 1970.
    public let created: Int64
    public let updated: Int64
    public let logins: Int64

    public init(
        number: Int64, entity: Entity, username: String = "", phone: String = "", email: String = "",
        isGuest: Bool = false, created: Int64, updated: Int64, logins: Int64 = 0
    ) {
        (self.number, self.entity, self.username, self.phone) = (number, entity, username, phone)
        (self.email, self.isGuest, self.created, self.updated, self.logins) = (email, isGuest, created, updated, logins)
    }
}

/// What is kept of a password: its scrypt (`Scrypt.Cost.login`) under a salt of its own.
public struct PasswordVerifier: Sendable, Hashable {
    public static let saltBytes = 16
    public static let hashBytes = 32

    public let salt: [UInt8]
    public let hash: [UInt8]

    public init(salt: [UInt8], hash: [UInt8]) { (self.salt, self.hash) = (salt, hash) }
}

/// A user who registers with a password.
public struct NewUser: Sendable, Hashable {
    public let partner: String
    public let entity: String
    /// Nobody else's: users with passwords are never those that the partner names itself.
    public let partnerEntity: String
    public let username: String
    public let phone: String
    public let verifier: PasswordVerifier

    public init(
        partner: String, entity: String, partnerEntity: String, username: String, phone: String,
        verifier: PasswordVerifier
    ) {
        (self.partner, self.entity, self.partnerEntity) = (partner, entity, partnerEntity)
        (self.username, self.phone, self.verifier) = (username, phone, verifier)
    }
}

/// What a login with a password begins: tokens of it are renewed without the password while it lives.
public struct LoginSession: Sendable, Hashable {
    /// Seconds that one lives at most.
    public static let secondsMax: Double = 30 * 86_400
    /// Of one user; of more the oldest end.
    public static let perUserMax = 64

    /// SHA-256 of the id that stands in its tokens.
    public let hash: [UInt8]
    public let entity: String
    public let device: String
    /// Seconds since 1970.
    public let ends: Double

    public init(hash: [UInt8], entity: String, device: String, ends: Double) {
        (self.hash, self.entity, self.device, self.ends) = (hash, entity, device, ends)
    }
}

/// A code that is sent to somebody who has forgotten a password.
public enum ResetCode {
    public static let digits = 8
    /// Seconds for which one is good.
    public static let seconds: Double = 900
    /// Seconds within which no other is sent to the same user.
    public static let pause: Double = 300
    public static let triesMax = 5

    /// Digits, each as likely as any.
    static func make(random: (Int) -> [UInt8]) -> String {
        var text = ""
        while text.utf8.count < digits {
            // Of 256 values 250 divide by ten.
            for byte in random(digits) where byte < 250 && text.utf8.count < digits { text += String(byte % 10) }
        }
        return text
    }
}

/// Where the users are kept whom partners' apps log in here. What a call has changed is on disk when it returns.
public protocol PartnerUsers: AnyObject {
    /// The user that the partner knows by this id, made as a guest if there is none yet.
    func registerGuest(
        partner: String, partnerEntity: String, newID: String, now: Double
    ) throws(DirectoryError) -> Profile
    /// Counts one more login.
    /// - Returns: nil when there is no such user.
    func loggedIn(_ entity: String, now: Double) throws(DirectoryError) -> Profile?

    /// - Returns: nil, and nothing is kept, when somebody of the partner has the name.
    func add(_ user: NewUser, now: Double) throws(DirectoryError) -> Profile?
    func verifier(of username: String, partner: String) throws(DirectoryError) -> (
        entity: String, verifier: PasswordVerifier
    )?
    /// The name under which the user has a password here; nil when it has none.
    func username(of entity: String) throws(DirectoryError) -> String?
    /// Puts another password in the place of the user's, and ends its sessions but one.
    /// - Parameter session: hash of the one that stays.
    func setVerifier(
        _ verifier: PasswordVerifier, of entity: String, keeping session: [UInt8]?, now: Double
    ) throws(DirectoryError)

    /// Begins a session; the one on the same device ends.
    func begin(_ session: LoginSession, now: Double) throws(DirectoryError)
    func session(_ hash: [UInt8]) throws(DirectoryError) -> LoginSession?
    func endSession(_ hash: [UInt8]) throws(DirectoryError)

    /// Keeps a code in the place of the one before.
    /// - Returns: false, and nothing is changed, when one was kept less than `ResetCode.pause` ago.
    func keep(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool
    /// Whether this is the code that is kept, it is in time, and fewer than `ResetCode.triesMax` others were tried.
    /// Used up by that.
    func use(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool
}
