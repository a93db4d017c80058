import ThicketCrypto
import ThicketProtocol

/// A user whom the server itself knows by a name and a proof.
public struct Account: Sendable, Hashable {
    /// Ours, 32 hex digits, the same for good: the user's buckets belong to it, whatever the name is by then.
    public let user: String
    public let app: String
    /// As the user wrote it; shown to clients.
    public var name: String
    public var proof: Proof

    public init(user: String, app: String, name: String, proof: Proof) {
        (self.user, self.app, self.name, self.proof) = (user, app, name, proof)
    }

    /// What the user shows to come in. An account has one kind for good.
    public enum Proof: Sendable, Hashable {
        /// A password, as Simperium's clients send it: its scrypt under this salt.
        case password(salt: [UInt8], hash: [UInt8])
        /// A key that the client has stretched from a password that it never sends.
        case key(KeyProof)
    }

    /// What is kept of an account whose password never comes here. All of it is opaque to the server.
    public struct KeyProof: Sendable, Hashable {
        /// How the client stretches the password.
        public var stretch: Stretch
        /// Keyed hash of the key that it sends.
        public var verifier: [UInt8]
        /// Keyed hash of what its recovery words prove.
        public var recovery: [UInt8]
        /// The access key, sealed under the password by the client; empty while the account is locked: a mailed code
        /// has set another password, under which nobody has sealed it yet.
        public var access: [UInt8]
        /// Which access key of the account it is, counted from 1. Once there was another, whoever puts a wrap of it
        /// here has to show that it is the newest.
        public var keyNumber: Int64

        public init(stretch: Stretch, verifier: [UInt8], recovery: [UInt8], access: [UInt8], keyNumber: Int64 = 1) {
            (self.stretch, self.verifier, self.recovery, self.access) = (stretch, verifier, recovery, access)
            self.keyNumber = keyNumber
        }

        var isLocked: Bool { access.isEmpty }
    }

    /// Parameters of the client's scrypt.
    public struct Stretch: Sendable, Hashable {
        public let salt: [UInt8]
        /// N as a power of two.
        public let n: Int64
        public let r: Int64
        public let p: Int64

        public init(salt: [UInt8], n: Int64 = Self.usual.n, r: Int64 = Self.usual.r, p: Int64 = Self.usual.p) {
            (self.salt, self.n, self.r, self.p) = (salt, n, r, p)
        }

        /// What clients use, and what is said of users that there are not. No others are taken: an account that has
        /// others would be told from nobody by them.
        public static let usual: (n: Int64, r: Int64, p: Int64) = (17, 8, 1)
        static let saltBytes = 16

        var isUsable: Bool { salt.count == Self.saltBytes && (n, r, p) == Self.usual }

        /// Whether clients follow it at all: weaker is no protection, stronger is no use. Of those of whom nothing is
        /// to be hidden, such as the users of a partner, that will do.
        var isHonoured: Bool {
            salt.count == Self.saltBytes && (17...20).contains(n) && r == 8 && (1...4).contains(p)
        }
    }

    /// Bytes of a name at most.
    public static let nameBytesMax = 254

    /// A new user id.
    static func newID(random: (Int) -> [UInt8]) -> String { Hex.encode(random(16)) }

    /// What is wrong with a name that a user may have: 1 to 254 bytes without control characters, no blank at its ends.
    ///
    /// - Parameter isNew: the name is no user's yet; then the ends hold nothing else either that is not seen. Such
    ///   names were taken once, and a user who has one comes in by it.
    static func problem(ofName name: String, isNew: Bool) -> String? {
        let isOld = !isNew && name.utf8.first != 0x20 && name.utf8.last != 0x20
        return isOld
            ? UserID.problem(of: name, bytesMax: nameBytesMax) : UserID.problem(asNew: name, bytesMax: nameBytesMax)
    }

    /// What names are compared by: e-mail addresses differ by case for nobody.
    public static func folded(_ name: String) -> String { name.lowercased() }
}

/// A token to be kept. The token itself is told to its owner once and nowhere stored.
public struct NewToken: Sendable, Hashable {
    /// SHA-256 of the token's text.
    public let hash: [UInt8]
    /// Milliseconds since 1970.
    public let created: Int64
    /// The same; nil: good until it is revoked.
    public let expires: Int64?
    /// What the client called its device; shown to the user.
    public let device: String

    public init(hash: [UInt8], created: Int64, expires: Int64?, device: String) {
        (self.hash, self.created, self.expires, self.device) = (hash, created, expires, device)
    }
}

/// A token that is kept, as its user sees it.
public struct KeptToken: Sendable, Hashable {
    /// The first digits of its hash.
    public let id: String
    /// Milliseconds since 1970.
    public let created: Int64
    public let expires: Int64?
    public let device: String

    public init(id: String, created: Int64, expires: Int64?, device: String) {
        (self.id, self.created, self.expires, self.device) = (id, created, expires, device)
    }
}

/// How the access key of an account was sealed before its password was reset by a mailed code: whoever remembers the
/// old password opens it by that.
public struct LockedWrap: Sendable, Hashable {
    public let stretch: Account.Stretch
    public let access: [UInt8]

    public init(stretch: Account.Stretch, access: [UInt8]) { (self.stretch, self.access) = (stretch, access) }
}

/// A login by a password that is sent, of an account that is being brought to keys of its own (decision 0054). It goes
/// when everything is sealed under those.
public struct OldLogin: Sendable, Hashable {
    public let user: String
    /// What names are compared by.
    public let folded: String
    /// scrypt of the password under this salt.
    public let salt: [UInt8]
    public let hash: [UInt8]
    /// The access key, sealed by the client under the old password: an upgrade that was cut short goes on with it.
    public let wrap: LockedWrap

    public init(user: String, folded: String, salt: [UInt8], hash: [UInt8], wrap: LockedWrap) {
        (self.user, self.folded, self.salt, self.hash, self.wrap) = (user, folded, salt, hash, wrap)
    }
}

/// By what the users of an app may log in besides the keys that clients make.
public enum AppPasswords: Int64, Sendable, Hashable, CaseIterable {
    /// Passwords, as Simperium's clients send them.
    case sent = 0
    /// The same, and the unsalted stretched names and passwords of the old notes app.
    case notes = 1
    /// No password is ever taken; accounts are made by `auth/signup` alone.
    case none = 2
    /// Nor is any account made: users come in by a partner's tokens. Accounts with keys that exist still log in.
    case closed = 3

    /// As operators write it.
    public var word: String {
        switch self {
        case .sent: "sent"
        case .notes: "notes"
        case .none: "none"
        case .closed: "closed"
        }
    }
}

/// What the server says of a user's encrypted notes.
public struct NoteStanding: Sendable, Hashable {
    /// As many notes as they like.
    public let isPro: Bool
    /// What the operator wrote down when the user was made Pro; nil: nothing.
    public let receipt: String?
    /// Notes that there may be; nil: as many as come.
    public let notesMax: Int?

    public init(isPro: Bool, receipt: String?, notesMax: Int?) {
        (self.isPro, self.receipt, self.notesMax) = (isPro, receipt, notesMax)
    }
}

/// The keys of a user's data, sealed by the user's devices.
public struct Bundle: Sendable, Hashable {
    /// Counts the writes, from 1.
    public let version: Int64
    public let content: [UInt8]

    public init(version: Int64, content: [UInt8]) { (self.version, self.content) = (version, content) }
}

/// Where accounts are kept. Belongs to one thread. What a call has changed is on disk when it returns, whole or not
/// at all.
public protocol AccountDirectory: AnyObject {
    /// What the key lets its holder do in the app; nil when it is none of the app's.
    func key(_ hash: [UInt8], of app: String) throws(DirectoryError) -> AppKey?

    /// - Parameter folded: `Account.folded` of the name.
    func account(named folded: String, in app: String) throws(DirectoryError) -> Account?
    func account(_ user: String, in app: String) throws(DirectoryError) -> Account?

    /// Adds an account with its first token.
    /// - Parameter bundle: version 1 of it, where the account has one.
    /// - Returns: false, and nothing is added, when somebody has the name.
    func add(_ account: Account, bundle: [UInt8]?, token: NewToken, now: Int64) throws(DirectoryError) -> Bool
    /// Whether the id was never an account's, or nothing of that account is left.
    func isFree(_ user: String, in app: String) throws(DirectoryError) -> Bool
    /// What the app's users may log in by.
    func passwords(of app: String) throws(DirectoryError) -> AppPasswords

    /// Puts name and proof in the place of those that the account had. Of an account that becomes locked by that, the
    /// wrap from before is kept until it is locked no more (`lockedWrap`).
    /// - Parameters:
    ///   - endsTokens: all tokens of the user end.
    ///   - token: added behind that.
    /// - Returns: false, and nothing is changed, when somebody else has the name, the account is gone, or its proof
    ///   is not `before` any more.
    func change(
        _ account: Account, from before: Account.Proof, endsTokens: Bool, token: NewToken?, now: Int64
    ) throws(DirectoryError) -> Bool
    /// Ends the account with its tokens and its bundle, and notes that the user's data is to be erased.
    /// - Returns: false when it is gone already.
    func remove(_ user: String, in app: String, now: Int64) throws(DirectoryError) -> Bool

    /// How an account could be come into before it got keys, while it is brought to them; nil for everybody else.
    /// - Parameter folded: `Account.folded` of the old name.
    func oldLogin(named folded: String, in app: String) throws(DirectoryError) -> OldLogin?
    /// The same by the user's id.
    func oldLogin(of user: String, in app: String) throws(DirectoryError) -> OldLogin?
    /// Begins to bring an account whose password was sent to one with keys, under the same user id: name, proof and
    /// bundle are the new ones, the old login goes on beside them, and all tokens but the new one end.
    /// - Returns: false, and nothing is changed, when somebody else has the name, the account has a bundle, is gone, or
    ///   its proof is not `before` any more.
    func upgrade(
        _ account: Account, from before: Account.Proof, old: OldLogin, bundle: [UInt8], token: NewToken, now: Int64
    ) throws(DirectoryError) -> Bool
    /// Ends the old login and, if there was one, all tokens of the user but the new one.
    /// - Returns: whether there was one.
    func finishUpgrade(of user: String, in app: String, token: NewToken) throws(DirectoryError) -> Bool

    /// Adds a token; of more than `keeping` tokens of the user the oldest go.
    /// - Returns: how many went.
    func add(_ token: NewToken, of user: String, in app: String, keeping: Int) throws(DirectoryError) -> Int
    /// Whose account a token is for; nil when it is unknown, over, or of another app.
    func owner(ofToken hash: [UInt8], in app: String, now: Int64) throws(DirectoryError) -> Account?
    /// The user's tokens, the newest first.
    func tokens(of user: String, in app: String) throws(DirectoryError) -> [KeptToken]
    /// Ends one token, or all.
    /// - Returns: how many ended.
    func endTokens(_ id: String?, of user: String, in app: String) throws(DirectoryError) -> Int

    /// How the access key of a locked account was sealed before; nil for others.
    func lockedWrap(of user: String) throws(DirectoryError) -> LockedWrap?

    /// Keeps the hash of a code in the place of the one before.
    /// - Parameters:
    ///   - user: may be nobody.
    ///   - now: milliseconds since 1970.
    /// - Returns: false, and nothing is changed, when one was kept less than `ResetCode.pause` ago.
    func keep(code hash: [UInt8], of user: String, now: Int64) throws(DirectoryError) -> Bool
    /// Whether this is the code that is kept, it is in time, and fewer than `ResetCode.triesMax` others were tried.
    /// Used up by that.
    func use(code hash: [UInt8], of user: String, now: Int64) throws(DirectoryError) -> Bool

    /// What holds for the user's encrypted notes; nil where the app keeps none.
    func notes(of user: String, in app: String) throws(DirectoryError) -> NoteStanding?

    func bundle(of user: String) throws(DirectoryError) -> Bundle?
    /// Writes the bundle if the one that is there has this version; 0 where there is none.
    /// - Returns: whether it was written.
    func putBundle(_ content: [UInt8], of user: String, replacing version: Int64) throws(DirectoryError) -> Bool
    /// Another access key: the proof and the bundle that are sealed under it take the places of those that there are,
    /// both or neither. Tokens stay.
    /// - Parameter version: of the bundle that is replaced.
    /// - Returns: false, and nothing is changed, when the bundle has another version, or the proof is not `before` any
    ///   more.
    func renew(
        _ account: Account, from before: Account.Proof, bundle: [UInt8], replacing version: Int64, now: Int64
    ) throws(DirectoryError) -> Bool
}

/// What accounts need of the server's key file, which lies outside of the database.
public struct AccountSecrets: Sendable {
    /// Keyed hash of a secret that a client sends.
    public let verifier: @Sendable ([UInt8]) -> [UInt8]
    /// Bytes that look random and are the same each time, for what somebody else made up.
    let pretence: @Sendable ([UInt8]) -> [UInt8]

    public init(
        verifier: @escaping @Sendable ([UInt8]) -> [UInt8], pretence: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        (self.verifier, self.pretence) = (verifier, pretence)
    }
}
