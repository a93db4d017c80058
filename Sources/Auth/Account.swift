import ThicketCrypto
public import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// A user that the server itself knows by a name and a proof.
public struct Account: Sendable, Hashable {
    /// The server's id of the user, 32 hex digits. It never changes: the user's buckets belong to it, whatever the
    /// name becomes.
    public let user: String
    /// The app's id.
    public let app: String
    /// As the user wrote it; shown to clients.
    public var name: String
    /// What the user's secret is checked against.
    public var proof: Proof

    /// An account, new or from the store.
    public init(user: String, app: String, name: String, proof: Proof) {
        (self.user, self.app, self.name, self.proof) = (user, app, name, proof)
    }

    /// What a user proves at login. Its kind only changes from `password` to `key` (decision 0043).
    public enum Proof: Sendable, Hashable {
        /// A password, as Simperium's clients send it: its scrypt under this salt.
        case password(salt: [UInt8], hash: [UInt8])
        /// A key that the client derived from a password that it never sends.
        case key(KeyProof)
    }

    /// What is kept of an account whose password never reaches the server. All of it is opaque to the server.
    public struct KeyProof: Sendable, Hashable {
        /// How the client derives its keys from the password.
        public var stretch: Stretch
        /// Keyed hash of the key that it sends.
        public var verifier: [UInt8]
        /// Keyed hash of the proof derived from its recovery words.
        public var recovery: [UInt8]
        /// The access key, sealed under the password by the client; empty while the account is locked, that is,
        /// after a mailed code set another password under which no client has sealed it yet.
        public var access: [UInt8]
        /// The number of the account's access key, from 1. From 2 on, a client that stores a wrapped access key
        /// must prove that it is the current one.
        public var keyNumber: Int64

        /// The proof of a new account by default: its first access key.
        public init(stretch: Stretch, verifier: [UInt8], recovery: [UInt8], access: [UInt8], keyNumber: Int64 = 1) {
            (self.stretch, self.verifier, self.recovery, self.access) = (stretch, verifier, recovery, access)
            self.keyNumber = keyNumber
        }

        var isLocked: Bool { access.isEmpty }
    }

    /// Parameters of the client's scrypt.
    public struct Stretch: Sendable, Hashable {
        /// 16 bytes.
        public let salt: [UInt8]
        /// N as a power of two.
        public let n: Int64
        /// Block size.
        public let r: Int64
        /// Parallelism.
        public let p: Int64

        /// Parameters; the usual ones unless given.
        public init(salt: [UInt8], n: Int64 = Self.usual.n, r: Int64 = Self.usual.r, p: Int64 = Self.usual.p) {
            (self.salt, self.n, self.r, self.p) = (salt, n, r, p)
        }

        /// The parameters that clients use and that are reported for unknown users. Others are refused, because an
        /// account with other parameters could be distinguished from an unknown user.
        public static let usual: (n: Int64, r: Int64, p: Int64) = (17, 8, 1)
        static let saltBytes = 16

        var isUsable: Bool { salt.count == Self.saltBytes && (n, r, p) == Self.usual }

        /// Whether clients accept the parameters at all: weaker ones do not protect, stronger ones are unusable.
        /// This check is enough where the existence of a user is not secret, such as for users of a partner.
        var isHonoured: Bool {
            salt.count == Self.saltBytes && (17...20).contains(n) && r == 8 && (1...4).contains(p)
        }
    }

    /// Longest name, bytes.
    public static let nameBytesMax = 254

    /// A new user id.
    static func newID(random: (Int) -> [UInt8]) -> String { Hex.encode(random(16)) }

    /// Why a name is not allowed: it needs 1 to 254 bytes without control characters, and no blank at its ends.
    ///
    /// - Parameter isNew: the name is not an existing user's; then invisible characters at its ends are refused
    ///   too. Such names were accepted once, and existing users still log in with them.
    static func problem(ofName name: String, isNew: Bool) -> String? {
        if isNew, GuestName.isReserved(name) { return "begins with \(GuestName.prefix), which is for guests" }
        let isOld = !isNew && name.utf8.first != 0x20 && name.utf8.last != 0x20
        return isOld
            ? UserID.problem(of: name, bytesMax: nameBytesMax) : UserID.problem(asNew: name, bytesMax: nameBytesMax)
    }

    /// The form in which names are compared: case does not distinguish e-mail addresses.
    public static func folded(_ name: String) -> String { KeyLogHandle.folded(name) }
}

/// A token to be stored. Its text is returned to its owner once and stored nowhere.
public struct NewToken: Sendable, Hashable {
    /// SHA-256 of the token's text.
    public let hash: [UInt8]
    /// Milliseconds since 1970.
    public let created: Int64
    /// When it ends, milliseconds since 1970; nil: good until it is revoked.
    public let expires: Int64?
    /// The client's name for its device; shown to the user.
    public let device: String

    /// A token to be stored.
    public init(hash: [UInt8], created: Int64, expires: Int64?, device: String) {
        (self.hash, self.created, self.expires, self.device) = (hash, created, expires, device)
    }
}

/// A stored token, as reported to its user.
public struct KeptToken: Sendable, Hashable {
    /// The first digits of its hash.
    public let id: String
    /// Milliseconds since 1970.
    public let created: Int64
    /// When it ends, milliseconds since 1970; nil: good until it is revoked.
    public let expires: Int64?
    /// The client's name for its device.
    public let device: String

    /// A stored token.
    public init(id: String, created: Int64, expires: Int64?, device: String) {
        (self.id, self.created, self.expires, self.device) = (id, created, expires, device)
    }
}

/// How the access key of an account was sealed before its password was reset by a mailed code: a user that
/// remembers the old password can open it.
public struct LockedWrap: Sendable, Hashable {
    /// Parameters of the earlier password's derivation.
    public let stretch: Account.Stretch
    /// The access key, sealed under the earlier password.
    public let access: [UInt8]

    /// A wrap of an access key.
    public init(stretch: Account.Stretch, access: [UInt8]) { (self.stretch, self.access) = (stretch, access) }
}

/// A login with a sent password, of an account in upgrade to client-side keys (decision 0043). It ends when
/// everything is sealed under those keys.
public struct OldLogin: Sendable, Hashable {
    /// The user's id.
    public let user: String
    /// The name in the form in which names are compared.
    public let folded: String
    /// scrypt of the password under this salt.
    public let salt: [UInt8]
    /// The scrypt hash.
    public let hash: [UInt8]
    /// The access key, sealed by the client under the old password: an interrupted upgrade continues with it.
    public let wrap: LockedWrap

    /// The login of an account before its upgrade.
    public init(user: String, folded: String, salt: [UInt8], hash: [UInt8], wrap: LockedWrap) {
        (self.user, self.folded, self.salt, self.hash, self.wrap) = (user, folded, salt, hash, wrap)
    }
}

/// How the users of an app may log in besides client-side keys.
public enum AppPasswords: Int64, Sendable, Hashable, CaseIterable {
    /// Passwords, as Simperium's clients send them.
    case sent = 0
    /// The same, and the unsalted hashed names and passwords of the old notes app.
    case notes = 1
    /// Passwords are never accepted; accounts are made only by `auth/signup`.
    case none = 2
    /// Accounts cannot be made either: users log in with a partner's tokens. Existing accounts with keys still log in.
    case closed = 3

    /// The word in commands.
    public var word: String {
        switch self {
        case .sent: "sent"
        case .notes: "notes"
        case .none: "none"
        case .closed: "closed"
        }
    }
}

/// A user's right to encrypted notes.
public struct NoteStanding: Sendable, Hashable {
    /// The number of notes is not limited.
    public let isPro: Bool
    /// The proof of payment recorded by the operator; nil: none.
    public let receipt: String?
    /// Most notes allowed; nil: no limit.
    public let notesMax: Int?

    /// The right of one user.
    public init(isPro: Bool, receipt: String?, notesMax: Int?) {
        (self.isPro, self.receipt, self.notesMax) = (isPro, receipt, notesMax)
    }
}

/// The keys of a user's data, sealed by the user's devices.
public struct Bundle: Sendable, Hashable {
    /// Counts the writes, from 1.
    public let version: Int64
    /// Opaque to the server.
    public let content: [UInt8]

    /// A stored or new version.
    public init(version: Int64, content: [UInt8]) { (self.version, self.content) = (version, content) }
}

/// The store of accounts. Belongs to one thread. A change is on disk when the call returns, completely or not at all.
public protocol AccountDirectory: GuestDirectory {
    /// The rights of an app key, given its SHA-256; nil when the app does not have it.
    func key(_ hash: [UInt8], of app: String) throws(DirectoryError) -> AppKey?

    /// The account with this name; nil when the app has none.
    /// - Parameter folded: `Account.folded` of the name.
    func account(named folded: String, in app: String) throws(DirectoryError) -> Account?
    /// The account with this user id; nil when the app has none.
    func account(_ user: String, in app: String) throws(DirectoryError) -> Account?

    /// Adds an account with its first token.
    /// - Parameters:
    ///   - bundle: version 1 of it, if the account has one.
    ///   - entries: of the key log, added in the same step.
    /// - Returns: false, and nothing is added, when the name is taken.
    /// - Throws: an error with `refusedEntry`, and nothing is added, when an entry does not follow those in the log.
    func add(
        _ account: Account, bundle: [UInt8]?, entries: [KeyLogEntry], token: NewToken, now: Int64
    ) throws(DirectoryError) -> Bool
    /// Whether no account has had the id, or all data of that account is erased.
    func isFree(_ user: String, in app: String) throws(DirectoryError) -> Bool
    /// How the app's users may log in.
    func passwords(of app: String) throws(DirectoryError) -> AppPasswords

    /// Replaces an account's name and proof. If that locks the account, its previous wrap is kept until it is
    /// unlocked (`lockedWrap`).
    /// - Parameters:
    ///   - endsTokens: all tokens of the user end.
    ///   - token: added after that.
    /// - Returns: false, and nothing is changed, when another user has the name, the account does not exist, or its
    ///   proof is not `before`.
    func change(
        _ account: Account, from before: Account.Proof, endsTokens: Bool, token: NewToken?, now: Int64
    ) throws(DirectoryError) -> Bool
    /// Deletes the account with its tokens and its bundle, and schedules the erasure of the user's data.
    /// - Returns: false when it does not exist.
    func remove(_ user: String, in app: String, now: Int64) throws(DirectoryError) -> Bool

    /// The old login of an account in upgrade; nil for any other account.
    /// - Parameter folded: `Account.folded` of the old name.
    func oldLogin(named folded: String, in app: String) throws(DirectoryError) -> OldLogin?
    /// The same by the user's id.
    func oldLogin(of user: String, in app: String) throws(DirectoryError) -> OldLogin?
    /// Begins the upgrade of an account with a sent password to client-side keys, under the same user id: name, proof
    /// and bundle are the new ones, the old login stays valid beside them, and all tokens but the new one end.
    /// - Parameter entries: of the key log, added in the same step.
    /// - Returns: false, and nothing is changed, when another user has the name, the account has a bundle or does
    ///   not exist, or its proof is not `before`.
    /// - Throws: an error with `refusedEntry`, and nothing is changed, when an entry does not follow those in the log.
    func upgrade(
        _ account: Account, from before: Account.Proof, old: OldLogin, bundle: [UInt8], entries: [KeyLogEntry],
        token: NewToken, now: Int64
    ) throws(DirectoryError) -> Bool
    /// Ends the old login and, if one existed, all tokens of the user but the new one.
    /// - Returns: whether an old login existed.
    func finishUpgrade(of user: String, in app: String, token: NewToken) throws(DirectoryError) -> Bool

    /// Adds a token and ends the oldest of the user beyond `keeping`.
    /// - Returns: how many ended.
    func add(_ token: NewToken, of user: String, in app: String, keeping: Int) throws(DirectoryError) -> Int
    /// The account a token belongs to; nil when the token is unknown, expired, or of another app.
    func owner(ofToken hash: [UInt8], in app: String, now: Int64) throws(DirectoryError) -> Account?
    /// The user's tokens, the newest first.
    func tokens(of user: String, in app: String) throws(DirectoryError) -> [KeptToken]
    /// Ends one token, or all.
    /// - Returns: how many ended.
    func endTokens(_ id: String?, of user: String, in app: String) throws(DirectoryError) -> Int

    /// How the access key of a locked account was sealed before; nil for other accounts.
    func lockedWrap(of user: String) throws(DirectoryError) -> LockedWrap?

    /// Keeps the hash of a code, in place of the previous one.
    /// - Parameters:
    ///   - user: may be a made-up id, for an unknown name.
    ///   - now: milliseconds since 1970.
    /// - Returns: false, and nothing is changed, when one was kept less than `ResetCode.pause` ago.
    func keep(code hash: [UInt8], of user: String, now: Int64) throws(DirectoryError) -> Bool
    /// Whether this is the kept code, in time, after fewer than `ResetCode.triesMax` tries. A right code is used
    /// up, a wrong one counts as a try.
    func redeem(code hash: [UInt8], of user: String, now: Int64) throws(DirectoryError) -> Bool

    /// The user's right to encrypted notes; nil when the app has none.
    func notes(of user: String, in app: String) throws(DirectoryError) -> NoteStanding?

    /// The user's bundle; nil when it has none.
    func bundle(of user: String) throws(DirectoryError) -> Bundle?
    /// Writes the bundle if the stored one has this version (0: none is stored).
    /// - Returns: whether it was written.
    func putBundle(_ content: [UInt8], of user: String, replacing version: Int64) throws(DirectoryError) -> Bool
    /// Replaces the access key: the proof and the bundle sealed under it are replaced together. Tokens stay valid.
    /// - Parameter version: of the bundle that is replaced.
    /// - Returns: false, and nothing is changed, when the bundle has another version, or the proof is not `before`.
    func renew(
        _ account: Account, from before: Account.Proof, bundle: [UInt8], replacing version: Int64, now: Int64
    ) throws(DirectoryError) -> Bool
}

/// Functions of the server's key file that accounts need; the file is not in the database.
public struct AccountSecrets: Sendable {
    /// Keyed hash of a secret that a client sends.
    public let verifier: @Sendable ([UInt8]) -> [UInt8]
    /// Bytes that look random and are the same each time, for made-up answers about unknown names.
    let pretence: @Sendable ([UInt8]) -> [UInt8]

    /// The two keyed hashes of a key file.
    public init(
        verifier: @escaping @Sendable ([UInt8]) -> [UInt8], pretence: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        (self.verifier, self.pretence) = (verifier, pretence)
    }
}
