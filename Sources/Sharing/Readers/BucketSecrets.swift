public import ThicketCrypto
public import ThicketSealed

/// The reason why secrets of a shared bucket are not wrapped or not opened.
public enum SharingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// This reader's keys have not been verified.
    case unverified(String)
    /// The list names other keys of this reader than the verified ones.
    case otherKeys(String)
    /// The list commits to another secret for this epoch, or to none.
    case notCommitted(epoch: UInt32)
    /// The list does not name this account with these keys.
    case notAReader
    /// No wrap of this epoch for this reader opens.
    case missing(epoch: UInt32)
    /// The value belongs to another bucket.
    case otherBucket
    /// A secret must have 32 bytes, a device id 8, and a bucket at most `ReaderLimits.epochsMax` epochs.
    case outOfBounds
    /// The bytes are not a wrap.
    case malformed
    /// A key is unusable, or not the expected one.
    case unusableKey
    /// The app's key does not match the server key of the object.
    case otherObject

    /// Short identifier for programs.
    public var code: String {
        switch self {
        case .unverified: "unverified"
        case .otherKeys: "other_keys"
        case .notCommitted: "not_committed"
        case .notAReader: "not_a_reader"
        case .missing: "missing"
        case .otherBucket: "other_bucket"
        case .outOfBounds: "out_of_bounds"
        case .malformed: "malformed"
        case .unusableKey: "unusable_key"
        case .otherObject: "other_object"
        }
    }

    /// For users and logs: contains no secrets.
    public var description: String {
        switch self {
        case .unverified(let user): "the keys of \(user) have not been verified"
        case .otherKeys(let user): "the list of readers names other keys of \(user) than were verified"
        case .notCommitted(let epoch): "the list of readers commits to another secret of epoch \(epoch)"
        case .notAReader: "the list of readers does not name this account with these keys"
        case .missing(let epoch): "no secret of epoch \(epoch) sealed to this account can be opened"
        case .otherBucket: "this belongs to another bucket"
        case .outOfBounds:
            "a secret has 32 bytes, a device's id 8, and a bucket at most \(ReaderLimits.epochsMax) epochs"
        case .malformed: "the bytes are not a wrap of a secret"
        case .unusableKey: "the key cannot be used here"
        case .otherObject: "this belongs to another object"
        }
    }
}

/// The secrets of a shared bucket, one per epoch from 0 on. The secret of epoch 0 permanently determines the server
/// keys of the objects.
public struct BucketSecrets: Sendable, Equatable {
    /// The bucket.
    public let bucket: SharedBucket
    /// By epoch.
    private let secrets: [SecureBytes]
    /// Commitments to the secrets, as in a list, by epoch.
    public let commitments: [Digest256]

    /// Bytes of a secret.
    public static let secretBytes = 32

    /// The secrets of a new bucket.
    /// - Parameter secret: 32 random bytes, not derived from other keys, because the readers share no other secret.
    /// - Throws: `outOfBounds`.
    public init(of bucket: SharedBucket, secret: SecureBytes) throws(SharingError) {
        try self.init(of: bucket, secrets: [secret])
    }

    init(of bucket: SharedBucket, secrets: [SecureBytes]) throws(SharingError) {
        guard (1...ReaderLimits.epochsMax).contains(secrets.count) else { throw .outOfBounds }
        var commitments = [Digest256]()
        for secret in secrets { commitments.append(try Self.commitment(of: secret)) }
        (self.bucket, self.secrets, self.commitments) = (bucket, secrets, commitments)
    }

    /// Adds an epoch: values written from now on are readable only with this secret.
    /// - Parameter secret: 32 random bytes.
    /// - Throws: `outOfBounds`.
    public func beginning(_ secret: SecureBytes) throws(SharingError) -> BucketSecrets {
        try BucketSecrets(of: bucket, secrets: secrets + [secret])
    }

    /// The newest epoch.
    public var epoch: UInt32 { UInt32(secrets.count - 1) }

    func secret(_ epoch: Int) -> SecureBytes { secrets[epoch] }

    /// The keys that seal and open the bucket's objects.
    /// - Throws: `outOfBounds`.
    public func keys() throws(SharingError) -> SealedBucketKeys {
        var byEpoch = [UInt32: SecureBytes]()
        for (epoch, secret) in secrets.enumerated() { byEpoch[UInt32(epoch)] = secret }
        do throws(CryptoError) {
            return try SealedBucketKeys(
                owner: bucket.owner, app: bucket.app, bucket: bucket.bucket, secrets: byEpoch)
        } catch { throw .outOfBounds }
    }

    /// HKDF-SHA-256 with an empty salt and "thicket/bucket-key/1" ‖ 0 ‖ `commit`, all 32 bytes: collision-resistant,
    /// and independent of the keys derived from the same secret.
    static func commitment(of secret: SecureBytes) throws(SharingError) -> Digest256 {
        guard secret.count == secretBytes else { throw .outOfBounds }
        let info = LabelledBytes("thicket/bucket-key/1").octets + Array("commit".utf8)
        guard let derived = try? HKDF.derive(.sha256, secret: secret, info: info),
            let digest = derived.withUnsafeBytes({ Digest256(Array($0)) })
        else { preconditionFailure("32 bytes and a short label are within the bounds of HKDF") }
        return digest
    }
}
