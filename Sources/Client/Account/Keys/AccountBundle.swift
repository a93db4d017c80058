public import ThicketCrypto
import ThicketProtocol

/// The secrets of an account, as one sealed bundle holds them at the server: what everything of the user's is sealed
/// with. They are made on the first device and open on every other; no password change touches them (spec 3.2, "One key
/// hierarchy").
///
/// Whoever extends it takes a label of their own: keys are derived from `vaultSecret` and `treeSecret` by HKDF with an
/// info of their own, and never used as they are.
public struct AccountBundle: Sendable {
    /// Bytes of each secret in it.
    public static let secretBytes = 32
    /// Buckets whose mode it can say.
    public static let bucketsMax = 512
    /// The form that this library writes. Of a newer one nothing is read, and none is replaced.
    static let format: Int64 = 1
    /// Its text is filled up with spaces to a multiple of this, so that its length says little of what is in it.
    static let step = 512

    /// Seals buckets and notes.
    public let vaultSecret: SecureBytes
    /// The tree's names and keys.
    public let treeSecret: SecureBytes
    /// Signs as this user.
    public let signingKey: Ed25519.SigningKey
    /// What is sealed for this user opens with it.
    public let exchangeKey: X25519.PrivateKey
    /// Modes and epochs of buckets, by name. Whose name is not there is open.
    public var buckets: [String: BucketMode]
    /// Whether the user has the access key somewhere besides on devices.
    public var backup: BackupState
    /// Members that a later version has put there, kept as they are.
    private var others: [(name: String, pair: SecureBytes)]
    /// `buckets` and `backup` as they were read: what a later version has put inside of them is kept, too.
    private var read: (buckets: JSONObject, backup: (state: BackupState, value: JSONValue)?) = ([:], nil)

    /// How a bucket is kept.
    public struct BucketMode: Sendable, Hashable {
        /// As the server names it: `open` or `sealed`.
        public var mode: String
        /// Of its keys; a number that only grows.
        public var epoch: UInt32

        public init(mode: String, epoch: UInt32) { (self.mode, self.epoch) = (mode, epoch) }
    }

    /// Whether the account outlives its devices and its password.
    public enum BackupState: Sendable, Hashable {
        /// Nobody has shown that they have the access key on paper: the user is reminded until they do.
        case missing
        /// The user has shown it.
        /// - Parameters:
        ///   - kind: how it was kept.
        ///   - at: seconds since 1970.
        case confirmed(BackupKind, at: Int64)
    }

    /// The forms in which an access key is kept outside of devices.
    public enum BackupKind: String, Sendable, Hashable, CaseIterable {
        /// 24 words.
        case words
        /// A code under a passcode.
        case code
        /// Pieces, some of which give the key.
        case pieces
    }

    /// New secrets.
    /// - Parameter random: secret random bytes, as many as asked for.
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

    private static let names: [String] = ["format", "vault", "tree", "sign", "exchange", "buckets", "backup"]

    /// Its clear form: a JSON object, values base64url, filled up with spaces.
    package func text() -> SecureBytes {
        var writer = SecretWriter()
        writer.add("format", .number(JSONNumber(Self.format)))
        writer.add("vault", bytes: vaultSecret)
        writer.add("tree", bytes: treeSecret)
        writer.add("sign", bytes: signingKey.seed)
        writer.add("exchange", bytes: exchangeKey.secret)
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

    /// Reads what `text` writes.
    /// - Throws: `newerFormat`, or `damaged` for what no version has written.
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
            let buckets = Self.modes(object.value("buckets"))
        else { throw .damaged }
        self.init(
            vault, tree, signing, exchange, buckets, Self.backup(object.value("backup")),
            object.others(than: Self.names))
        read.buckets = object.value("buckets")?.objectValue ?? [:]
        if let value = object.value("backup") { read.backup = (backup, value) }
    }

    /// Whether these are the secrets of the same account, whatever else has changed. Compared in constant time.
    func hasSecrets(of other: AccountBundle) -> Bool {
        let pairs = [
            (vaultSecret, other.vaultSecret), (treeSecret, other.treeSecret),
            (signingKey.seed, other.signingKey.seed), (exchangeKey.secret, other.exchangeKey.secret),
        ]
        return pairs.reduce(true) { same, pair in pair.0 == pair.1 && same }
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

    /// A kind that a later version knows is a backup, too.
    private static func backup(_ value: JSONValue?) -> BackupState {
        guard let time = value?["at"]?.intValue, let kind = value?["kind"]?.stringValue else {
            return .missing
        }
        return .confirmed(BackupKind(rawValue: kind) ?? .words, at: time)
    }
}

// Two bundles of one account (decision 0062).
extension AccountBundle {
    /// This bundle with what another one of the same account has besides; nothing that either has is dropped. Where
    /// both have something different, a bucket is sealed rather than anything else, and anything rather than open, and
    /// has the larger epoch; a backup counts that was confirmed, or confirmed later. Of what later versions have put
    /// there, this one's stays, or the other's if that prevails.
    ///
    /// - Throws: `unusable` when both together are more than a bundle holds.
    func joined(with other: AccountBundle, prevails: Bool) throws(AccountError) -> AccountBundle {
        var joined = self
        for (name, mode) in other.buckets {
            joined.buckets[name] = buckets[name]?.joined(with: mode, prevails: prevails) ?? mode
            let raw = Self.joined(read.buckets[name], other.read.buckets[name], prevails: prevails)
            if let raw { joined.read.buckets[name] = .object(raw) }
        }
        (joined.backup, joined.read.backup) = joinedBackup(other, prevails: prevails)
        for member in other.others {
            let place: Int? = others.firstIndex { $0.name.utf8.elementsEqual(member.name.utf8) }
            if let place, prevails { joined.others[place] = member }
            if place == nil { joined.others.append(member) }
        }
        // What no device could read is not to be written.
        do throws(AccountError) { _ = try AccountBundle(text: joined.text()) } catch {
            throw .unusable("the keys here and those at the server together are more than a bundle holds")
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

    /// - Returns: nil where neither was read.
    private static func joined(_ own: JSONValue?, _ other: JSONValue?, prevails: Bool) -> JSONObject? {
        guard let own = own?.objectValue else { return other?.objectValue }
        guard let other = other?.objectValue else { return own }
        return own.setting(JSONObject(other.pairs.filter { prevails || own[$0.key] == nil }))
    }
}

extension AccountBundle.BucketMode {
    private static let openName = "open"

    /// No server is to make a bucket open that either says is not. Of two modes that only later versions know, that of
    /// the side that prevails.
    fileprivate func joined(with other: Self, prevails: Bool) -> Self {
        let modes = prevails ? [other.mode, mode] : [mode, other.mode]
        let closed = modes.first { $0 != Self.openName }
        return Self(
            mode: isSealed || other.isSealed ? Self.sealedName : closed ?? Self.openName, epoch: max(epoch, other.epoch)
        )
    }
}

extension AccountBundle.BackupState {
    /// Seconds since 1970; nil where none was confirmed.
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
    /// Says nothing of what it holds.
    public var description: String { "(the secrets of an account)" }
    /// Shows nothing of what it holds.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
