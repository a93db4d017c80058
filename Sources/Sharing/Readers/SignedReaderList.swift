public import ThicketCrypto

/// Public keys as far as the caller has verified whose they are: nobody else's word counts, the server's least.
public struct VerifiedKeys: Sendable {
    private let newestKeys: @Sendable (String) -> PublicKeys?
    private let pastKeys: @Sendable (String, String) -> PublicKeys?

    /// - Parameters:
    ///   - newest: a user's keys of today.
    ///   - past: keys of a user, by their id, that were verified as theirs in their time; what they signed then is
    ///     theirs.
    public init(
        _ newest: @escaping @Sendable (String) -> PublicKeys?,
        past: @escaping @Sendable (String, String) -> PublicKeys? = { _, _ in nil }
    ) { (newestKeys, pastKeys) = (newest, past) }

    /// A user's keys of today; nil: not verified.
    public func newest(_ user: String) -> PublicKeys? {
        newestKeys(user).flatMap { $0.user.utf8.elementsEqual(user.utf8) ? $0 : nil }
    }

    /// The keys that a list names for a reader, of today or of their time.
    public func keys(_ reader: ListedReader) -> PublicKeys? {
        [newest(reader.user), pastKeys(reader.user, reader.keyID)].lazy.compactMap { $0 }.first { reader.has($0) }
    }
}

/// An account that can sign: the secret half of its identity key, and what everybody knows of it.
public struct SigningAccount: Sendable {
    public let keys: PublicKeys
    let identity: Ed25519.SigningKey

    /// - Throws: `unusablePublicKey` when the key is another than the account's.
    public init(_ keys: PublicKeys, identity: Ed25519.SigningKey) throws(CryptoError) {
        guard identity.verifyingKey == keys.identity else { throw .unusablePublicKey }
        (self.keys, self.identity) = (keys, identity)
    }
}

/// A list with a signature that may be its owner's.
public struct SignedReaderList: Sendable, Equatable {
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

    /// Reads a list and its signature, which nobody has verified yet.
    /// - Throws: `ReaderListError`.
    public init(parsing bytes: [UInt8]) throws(ReaderListError) {
        guard bytes.count >= Ed25519.signatureBytes else { throw .malformed }
        list = try ReaderList(parsing: Array(bytes.dropLast(Ed25519.signatureBytes)))
        signature = Array(bytes.suffix(Ed25519.signatureBytes))
    }

    private static func fields(_ list: ReaderList, _ owner: ListedReader) -> [[UInt8]] {
        [Array(owner.user.utf8), Array(owner.keyID.utf8), list.digest.bytes]
    }

    /// Whether the owner has signed it, with these keys or earlier ones of theirs.
    func isSigned(_ keys: VerifiedKeys) -> Bool {
        guard let owner = list.owner, let signer = keys.keys(owner) else { return false }
        return signer.identity.isSignature(signature, for: .readers, Self.fields(list, owner))
    }
}

/// A list that the bucket's owner has signed, with the keys that were verified as theirs: the only kind that keys are
/// wrapped for.
public struct VerifiedReaderList: Sendable, Equatable {
    public let list: ReaderList

    /// - Parameter bucket: which one it has to be.
    /// - Throws: `ReaderListError`. Of the owner the keys of today are taken: with those of before, somebody who has
    ///   stolen them may sign. After a change of keys the owner signs a new list.
    public init(
        _ signed: SignedReaderList, of bucket: SharedBucket, by keys: VerifiedKeys
    ) throws(ReaderListError) {
        guard signed.list.bucket == bucket else { throw .otherBucket }
        guard let owner = keys.newest(bucket.owner) else { throw .unknownOwner }
        guard signed.list.owner?.has(owner) == true else { throw .otherOwnerKey }
        guard signed.isSigned(keys) else { throw .badSignature }
        list = signed.list
    }

    /// One that this device has verified before, and kept.
    init(kept list: ReaderList) { self.list = list }
}
