internal import ThicketCrypto
internal import ThicketSealed

/// What a session needs of its account to open sealed buckets: the vault secret, and the modes of buckets from the
/// account's bundle (docs/decisions/0050).
struct SessionKeys: Sendable {
    /// The user's id at the server, which is part of everything that is sealed.
    let owner: String
    let app: String
    private let vault: SecureBytes
    /// The secret of the account's tree in the app.
    let tree: SecureBytes
    private let modes: [String: AccountBundle.BucketMode]

    /// The account itself, whose keys others look up in the key log.
    let account: OpenAccount

    /// Most epochs of one bucket for which keys are derived; objects may be sealed under the key of any epoch.
    static let epochsMax: UInt32 = 1_024

    init(_ account: OpenAccount) {
        self.account = account
        (owner, app) = (account.user, account.app)
        (vault, tree, modes) = (account.bundle.vaultSecret, account.bundle.treeSecret, account.bundle.buckets)
    }

    /// The mode of a bucket according to the bundle; nil when the bundle does not list the bucket.
    func mode(of bucket: String) -> AccountBundle.BucketMode? { modes[bucket] }

    /// The keys of a sealed bucket. A bucket that the bundle does not list starts with epoch 0.
    ///
    /// - Throws: `sealed` when the bundle lists the bucket as open or in a mode that this program does not know;
    ///   `limit` for more than 1,024 epochs.
    func keys(of bucket: String) throws(ClientError) -> SealedBucketKeys {
        let known = mode(of: bucket)
        if let known, !known.isSealed {
            throw ClientError(
                .sealed, "the account lists the bucket as '\(known.mode)': a sealed one needs another name")
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
            throw ClientError(.sealed, "the bucket's keys could not be derived: \(error)")
        }
    }
}

extension AccountBundle.BucketMode {
    /// The server's name for the mode.
    static let sealedName = "sealed"
    /// Whether the bucket is sealed: the server orders its objects and cannot read them.
    public var isSealed: Bool { mode.utf8.elementsEqual(Self.sealedName.utf8) }
}
