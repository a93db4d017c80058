public import ThicketCrypto

/// Public keys whose owner the caller has verified; statements of other parties, in particular of the server, do not
/// count.
public struct VerifiedKeys: Sendable {
    private let newestKeys: @Sendable (String) -> PublicKeys?
    private let pastKeys: @Sendable (String, String) -> PublicKeys?

    /// - Parameters:
    ///   - newest: returns a user's current keys.
    ///   - past: returns former keys of a user by their id, verified while they were in use; signatures from that time
    ///     stay valid.
    public init(
        _ newest: @escaping @Sendable (String) -> PublicKeys?,
        past: @escaping @Sendable (String, String) -> PublicKeys? = { _, _ in nil }
    ) { (newestKeys, pastKeys) = (newest, past) }

    /// A user's current keys; nil: not verified.
    public func newest(_ user: String) -> PublicKeys? {
        newestKeys(user).flatMap { $0.user.utf8.elementsEqual(user.utf8) ? $0 : nil }
    }

    /// The keys that a list names for a reader, current or former ones.
    public func keys(_ reader: ListedReader) -> PublicKeys? {
        [newest(reader.user), pastKeys(reader.user, reader.keyID)].lazy.compactMap { $0 }.first { reader.has($0) }
    }
}

/// An account that can sign: the secret half of its identity key, and its public keys.
public struct SigningAccount: Sendable {
    /// The public keys.
    public let keys: PublicKeys
    let identity: Ed25519.SigningKey

    /// - Throws: `unusablePublicKey` when the key does not belong to the account.
    public init(_ keys: PublicKeys, identity: Ed25519.SigningKey) throws(CryptoError) {
        guard identity.verifyingKey == keys.identity else { throw .unusablePublicKey }
        (self.keys, self.identity) = (keys, identity)
    }
}

/// A list with a signature that is not verified yet.
public struct SignedReaderList: Sendable, Equatable {
    /// The list.
    public let list: ReaderList
    /// 64 bytes, over label, owner, the owner's key id, and the digest of the list.
    public let signature: [UInt8]

    /// Signs a list.
    /// - Throws: `otherOwnerKey` when the account is not the owner with the keys that the list names.
    public init(_ list: ReaderList, signedBy account: SigningAccount) throws(ReaderListError) {
        guard let owner = list.owner, owner.has(account.keys) else { throw .otherOwnerKey }
        self.list = list
        do throws(CryptoError) {
            signature = try account.identity.signature(for: .readers, Self.fields(list, owner))
        } catch { throw .badName }
    }

    /// The list's bytes ‖ signature.
    public var bytes: [UInt8] { list.bytes + signature }

    /// Parses a list and its signature without verifying it.
    /// - Throws: `ReaderListError`.
    public init(parsing bytes: [UInt8]) throws(ReaderListError) {
        guard bytes.count >= Ed25519.signatureBytes else { throw .malformed }
        list = try ReaderList(parsing: Array(bytes.dropLast(Ed25519.signatureBytes)))
        signature = Array(bytes.suffix(Ed25519.signatureBytes))
    }

    private static func fields(_ list: ReaderList, _ owner: ListedReader) -> [[UInt8]] {
        [Array(owner.user.utf8), Array(owner.keyID.utf8), list.digest.bytes]
    }

    /// Whether the owner has signed the list, with current or former keys.
    func isSigned(_ keys: VerifiedKeys) -> Bool {
        guard let owner = list.owner, let signer = keys.keys(owner) else { return false }
        return signer.identity.isSignature(signature, for: .readers, Self.fields(list, owner))
    }
}

/// A list whose owner's signature was verified with verified keys; keys are wrapped only for such a list.
public struct VerifiedReaderList: Sendable, Equatable {
    /// The list.
    public let list: ReaderList

    /// - Parameter bucket: the expected bucket.
    /// - Throws: `ReaderListError`. Only the owner's current keys are accepted, because former ones may have been
    ///   stolen; after a change of keys the owner must sign a new list.
    public init(
        _ signed: SignedReaderList, of bucket: SharedBucket, by keys: VerifiedKeys
    ) throws(ReaderListError) {
        guard signed.list.bucket == bucket else { throw .otherBucket }
        guard let owner = keys.newest(bucket.owner) else { throw .unknownOwner }
        guard signed.list.owner?.has(owner) == true else { throw .otherOwnerKey }
        guard signed.isSigned(keys) else { throw .badSignature }
        list = signed.list
    }

    /// A list that this device has verified before and stored.
    init(kept list: ReaderList) { self.list = list }
}
