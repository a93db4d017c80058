public import ThicketCrypto
import ThicketProtocol

/// The secrets of an account, which the server holds as one sealed bundle: everything of the user is sealed with them.
/// The first device generates them, every other device opens them, and a change of the password does not affect them
/// (spec 3.2, "One key hierarchy").
///
/// A new use of the secrets needs its own label: keys are derived from `vaultSecret` and `treeSecret` by HKDF with a
/// separate info, and the secrets are never used directly.
public struct AccountBundle: Sendable {
    /// Length of each secret in bytes.
    public static let secretBytes = 32
    /// Most buckets whose mode a bundle can hold.
    public static let bucketsMax = 512
    /// The format that this library writes. A bundle of a newer format is neither read nor replaced.
    static let format: Int64 = 1
    /// The text is padded with spaces to a multiple of this length, so that its length reveals little about its
    /// content.
    static let step = 512

    /// The secret from which the keys of buckets and notes are derived.
    public let vaultSecret: SecureBytes
    /// The secret from which names and keys of the tree are derived.
    public let treeSecret: SecureBytes
    /// The user's signing key.
    public internal(set) var signingKey: Ed25519.SigningKey
    /// The user's private key for data that others seal for the user.
    public internal(set) var exchangeKey: X25519.PrivateKey
    /// The keys that these two have replaced, the oldest first: what was sealed to them still opens.
    public internal(set) var earlierKeys: [AccountKeyPair] = []
    /// Modes and epochs of buckets, by name. A bucket that is not listed is open.
    public var buckets: [String: BucketMode]
    /// Whether the user keeps the access key elsewhere than on devices.
    public var backup: BackupState
    /// Members written by a later version, preserved unchanged.
    private var others: [(name: String, pair: SecureBytes)]
    /// `buckets` and `backup` as they were read, so that members inside of them from a later version are preserved too.
    private var read: (buckets: JSONObject, backup: (state: BackupState, value: JSONValue)?) = ([:], nil)

    /// The mode of a bucket.
    public struct BucketMode: Sendable, Hashable {
        /// The server's name for the mode: `open` or `sealed`.
        public var mode: String
        /// The epoch of the bucket's keys; it only grows.
        public var epoch: UInt32

        /// Makes a mode.
        ///
        /// - Parameters:
        ///   - mode: `open` or `sealed`.
        ///   - epoch: the epoch of the bucket's keys, from 0.
        public init(mode: String, epoch: UInt32) { (self.mode, self.epoch) = (mode, epoch) }
    }

    /// Whether the account can be recovered without its devices and its password.
    public enum BackupState: Sendable, Hashable {
        /// The user has not proved to have the access key on paper: the app reminds the user until then.
        case missing
        /// The user has proved it.
        ///
        /// - Parameters:
        ///   - kind: the form of the backup.
        ///   - at: seconds since 1970.
        case confirmed(BackupKind, at: Int64)
    }

    /// The forms in which an access key is kept outside of devices.
    public enum BackupKind: String, Sendable, Hashable, CaseIterable {
        /// The 24 recovery words.
        case words
        /// A code protected by a passcode.
        case code
        /// Pieces, a number of which give the key.
        case pieces
    }

    /// Generates new secrets.
    ///
    /// - Parameter random: returns the requested number of secret random bytes.
    public static func make(random: (Int) -> SecureBytes = SecureBytes.random) -> AccountBundle {
        guard let signing: Ed25519.SigningKey = try? .init(seed: random(secretBytes)),
            let exchange: X25519.PrivateKey = try? .init(random(secretBytes))
        else { preconditionFailure("32 bytes are a key of either kind") }
        return AccountBundle(random(secretBytes), random(secretBytes), signing, exchange, [:], .missing, [])
    }

    private init(
        _ vault: SecureBytes, _ tree: SecureBytes, _ signing: Ed25519.SigningKey, _ exchange: X25519.PrivateKey,
        _ buckets: [String: BucketMode], _ backup: BackupState,
        _ others: [(name: String, pair: SecureBytes)]
    ) {
        (vaultSecret, treeSecret, signingKey, exchangeKey) = (vault, tree, signing, exchange)
        (self.buckets, self.backup, self.others) = (buckets, backup, others)
    }

    private static let names: [String] = [
        "format", "vault", "tree", "sign", "exchange", "earlier", "buckets", "backup",
    ]

    /// The unsealed form: a JSON object with base64url values, padded with spaces.
    package func text() -> SecureBytes {
        var writer = SecretWriter()
        writer.add("format", .number(JSONNumber(Self.format)))
        writer.add("vault", bytes: vaultSecret)
        writer.add("tree", bytes: treeSecret)
        writer.add("sign", bytes: signingKey.seed)
        writer.add("exchange", bytes: exchangeKey.secret)
        if !earlierKeys.isEmpty { writer.add("earlier", bytes: AccountKeyPair.octets(of: earlierKeys)) }
        var modes = JSONObject()
        for (name, mode) in buckets.sorted(by: { $0.key < $1.key }) {
            let known: JSONObject = ["mode": .string(mode.mode), "epoch": .number(JSONNumber(Int64(mode.epoch)))]
            modes[name] = .object((read.buckets[name]?.objectValue ?? [:]).setting(known))
        }
        writer.add("buckets", .object(modes))
        if let read = read.backup, read.state == backup {
            writer.add("backup", read.value)
        } else if case .confirmed(let kind, let time) = backup {
            writer.add("backup", ["kind": .string(kind.rawValue), "at": .number(JSONNumber(time))])
        }
        for other in others { writer.add(pair: other.pair) }
        let text = writer.text
        let spaces = Padding.multiple(of: Self.step).size(of: text.count) - text.count
        return .joined([text, SecureBytes(copying: Array(repeating: 0x20, count: spaces))])
    }

    /// Reads the result of `text`.
    ///
    /// - Throws: `newerFormat`, or `damaged` for a text that no version writes.
    package init(text: SecureBytes) throws(AccountError) {
        guard let object = SecretObject(text) else { throw .damaged }
        guard let format = object.value("format")?.intValue else { throw .damaged }
        guard format == Self.format else { throw .newerFormat }
        guard let vault = object.bytes("vault", count: Self.secretBytes),
            let tree = object.bytes("tree", count: Self.secretBytes),
            let seed = object.bytes("sign", count: Self.secretBytes),
            let secret = object.bytes("exchange", count: Self.secretBytes),
            let signing: Ed25519.SigningKey = try? .init(seed: seed),
            let exchange: X25519.PrivateKey = try? .init(secret),
            let earlier = AccountKeyPair.read(object),
            let buckets = Self.modes(object.value("buckets"))
        else { throw .damaged }
        self.init(
            vault, tree, signing, exchange, buckets, Self.backup(object.value("backup")),
            object.others(than: Self.names))
        earlierKeys = earlier
        read.buckets = object.value("buckets")?.objectValue ?? [:]
        if let value = object.value("backup") { read.backup = (backup, value) }
    }

    /// Whether both bundles hold the secrets of the same account; other members may differ. The keys of one may have
    /// been replaced in the other. Compared in constant time.
    func hasSecrets(of other: AccountBundle) -> Bool {
        let pairs = [(vaultSecret, other.vaultSecret), (treeSecret, other.treeSecret)]
        let isSame = pairs.reduce(true) { same, pair in pair.0 == pair.1 && same }
        // Both may have replaced the same keys, when a server was restored in between.
        let oldest = (earlierKeys.first ?? keyPair, other.earlierKeys.first ?? other.keyPair)
        return oldest.0 == oldest.1 && isSame
    }

    private static func modes(_ value: JSONValue?) -> [String: BucketMode]? {
        guard let object = value?.objectValue, object.count <= bucketsMax else { return nil }
        var modes = [String: BucketMode]()
        for (name, value) in object.pairs {
            guard let mode = value["mode"]?.stringValue,
                let epoch = value["epoch"]?.intValue.flatMap(UInt32.init(exactly:))
            else { return nil }
            modes[name] = BucketMode(mode: mode, epoch: epoch)
        }
        return modes
    }

    /// A kind that only a later version knows is a backup, too.
    private static func backup(_ value: JSONValue?) -> BackupState {
        guard let time = value?["at"]?.intValue, let kind = value?["kind"]?.stringValue else {
            return .missing
        }
        return .confirmed(BackupKind(rawValue: kind) ?? .words, at: time)
    }
}

// Joining two bundles of one account (decision 0043).
extension AccountBundle {
    /// This bundle joined with another one of the same account; no entry of either is dropped. When both have an entry
    /// and it differs: a bucket becomes sealed if it is sealed in either, otherwise not open if it is not open in
    /// either, with the larger epoch; a confirmed backup prevails, or the one confirmed later. Of members from later
    /// versions this bundle's are kept, or the other's if `prevails` is true.
    ///
    /// - Throws: `unusable` when both together exceed a bundle's limits.
    func joined(with other: AccountBundle, prevails: Bool) throws(AccountError) -> AccountBundle {
        var joined = self
        for (name, mode) in other.buckets {
            joined.buckets[name] = buckets[name]?.joined(with: mode, prevails: prevails) ?? mode
            let raw = Self.joined(read.buckets[name], other.read.buckets[name], prevails: prevails)
            if let raw { joined.read.buckets[name] = .object(raw) }
        }
        try joined.join(keysOf: other, prevails: prevails)
        (joined.backup, joined.read.backup) = joinedBackup(other, prevails: prevails)
        for member in other.others {
            let place: Int? = others.firstIndex { $0.name.utf8.elementsEqual(member.name.utf8) }
            if let place, prevails { joined.others[place] = member }
            if place == nil { joined.others.append(member) }
        }
        // A bundle that no device could read must not be written.
        do throws(AccountError) { _ = try AccountBundle(text: joined.text()) } catch {
            throw .unusable("the keys on this device and those on the server together exceed the limits of a bundle")
        }
        return joined
    }

    private typealias ReadBackup = (state: BackupState, value: JSONValue)

    private func joinedBackup(_ other: AccountBundle, prevails: Bool) -> (BackupState, ReadBackup?) {
        guard backup == other.backup else {
            let isTheirs = (other.backup.time ?? .min) > (backup.time ?? .min)
            return isTheirs ? (other.backup, other.read.backup) : (backup, read.backup)
        }
        let raw = Self.joined(read.backup?.value, other.read.backup?.value, prevails: prevails)
        return (backup, raw.map { (backup, .object($0)) } ?? read.backup ?? other.read.backup)
    }

    /// - Returns: nil when neither was read.
    private static func joined(_ own: JSONValue?, _ other: JSONValue?, prevails: Bool) -> JSONObject? {
        guard let own = own?.objectValue else { return other?.objectValue }
        guard let other = other?.objectValue else { return own }
        return own.setting(JSONObject(other.pairs.filter { prevails || own[$0.key] == nil }))
    }
}

extension AccountBundle.BucketMode {
    private static let openName = "open"

    /// A bucket that is not open in either bundle must not become open through a server's fault. Of two modes that only
    /// later versions know, the prevailing side's is used.
    fileprivate func joined(with other: Self, prevails: Bool) -> Self {
        let modes = prevails ? [other.mode, mode] : [mode, other.mode]
        let closed = modes.first { $0 != Self.openName }
        return Self(
            mode: isSealed || other.isSealed ? Self.sealedName : closed ?? Self.openName, epoch: max(epoch, other.epoch)
        )
    }
}

extension AccountBundle.BackupState {
    /// Seconds since 1970; nil when no backup is confirmed.
    fileprivate var time: Int64? {
        guard case .confirmed(_, let time) = self else { return nil }
        return time
    }
}

extension AccountBundle: Equatable {
    /// Compares secrets in constant time.
    public static func == (left: AccountBundle, right: AccountBundle) -> Bool { left.text() == right.text() }
}

extension AccountBundle: CustomStringConvertible, CustomReflectable {
    /// A fixed text: the secrets never reach a log.
    public var description: String { "(the secrets of an account)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
