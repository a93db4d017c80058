internal import ThicketCrypto
internal import ThicketSealed

/// What a session has of its account to open sealed buckets with: the vault secret, and what the account's bundle says
/// of buckets (docs/decisions/0050).
struct SessionKeys: Sendable {
    /// The user's id at the server, which everything that is sealed names.
    let owner: String
    let app: String
    private let vault: SecureBytes
    private let modes: [String: AccountBundle.BucketMode]

    /// Epochs of one bucket that are derived at most; each is a key that its objects may be sealed under.
    static let epochsMax: UInt32 = 1_024

    init(_ account: OpenAccount) {
        (owner, app) = (account.user, account.app)
        (vault, modes) = (account.bundle.vaultSecret, account.bundle.buckets)
    }

    /// The mode of a bucket as the bundle has it; nil: it says nothing of that bucket.
    func mode(of bucket: String) -> AccountBundle.BucketMode? { modes[bucket] }

    /// The keys of a sealed bucket. A bucket that the bundle does not name begins with epoch 0.
    ///
    /// - Throws: `sealed` when the bundle has the bucket as an open one, or in a mode that this program does not know;
    ///   `limit` for more than 1,024 epochs.
    func keys(of bucket: String) throws(ClientError) -> SealedBucketKeys {
        let known = mode(of: bucket)
        if let known, !known.isSealed {
            throw ClientError(
                .sealed, "the account has the bucket as '\(known.mode)': a sealed one needs another name")
        }
        let epoch = known?.epoch ?? 0
        guard epoch < Self.epochsMax else {
            throw ClientError(.limit, "the bucket has more than \(Self.epochsMax) epochs of keys")
        }
        do {
            var secrets = [UInt32: SecureBytes]()
            for each in 0...epoch {
                secrets[each] = try SealedBucketKeys.secret(vault: vault, app: app, bucket: bucket, epoch: each)
            }
            return try SealedBucketKeys(owner: owner, app: app, bucket: bucket, secrets: secrets)
        } catch {
            throw ClientError(.sealed, "the bucket's keys could not be made: \(error)")
        }
    }
}

extension AccountBundle.BucketMode {
    /// As the server names it.
    static let sealedName = "sealed"
    /// The server orders the bucket's objects and cannot read them.
    public var isSealed: Bool { mode.utf8.elementsEqual(Self.sealedName.utf8) }
}
