public import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// A bucket that several accounts share.
public struct SharedBucket: Sendable, Hashable {
    /// The user that determines the readers, and that is named in all sealed values.
    public let owner: String
    /// The app.
    public let app: String
    /// Name of the bucket.
    public let bucket: String

    /// - Throws: `badName` for a name that is empty or longer than `Limits` allows.
    public init(owner: String, app: String, bucket: String) throws(ReaderListError) {
        guard (1...Limits.userIDBytesMax).contains(owner.utf8.count),
            (1...Limits.appIDBytesMax).contains(app.utf8.count),
            (1...Limits.bucketNameBytesMax).contains(bucket.utf8.count)
        else { throw .badName }
        (self.owner, self.app, self.bucket) = (owner, app, bucket)
    }

    private var names: [[UInt8]] { [owner, app, bucket].map { Array($0.utf8) } }

    /// Compares the names byte by byte.
    public static func == (left: SharedBucket, right: SharedBucket) -> Bool { left.names == right.names }
    /// Uses the bytes of the names.
    public func hash(into hasher: inout Hasher) { hasher.combine(names) }
}

/// One account in a list, with the keys that the list names; the same account with other keys is a different reader.
public struct ListedReader: Sendable, Hashable {
    /// The permission of a reader.
    public enum Rights: UInt8, Sendable {
        /// May read only.
        case reads = 1
        /// May read and write.
        case writes = 2
    }

    /// The account's id at the server.
    public let user: String
    /// `PublicKeys.id`: 32 hex digits in lower case.
    public let keyID: String
    /// The reader's permission.
    public let rights: Rights

    /// Creates an entry; `keyID` is validated by `ReaderList`.
    public init(user: String, keyID: String, rights: Rights) {
        (self.user, self.keyID, self.rights) = (user, keyID, rights)
    }

    /// Creates an entry for these keys.
    public init(_ keys: PublicKeys, _ rights: Rights) { self.init(user: keys.user, keyID: keys.id, rights: rights) }

    /// Whether account and keys are the same, regardless of the permission.
    public func isSame(as other: ListedReader) -> Bool {
        user.utf8.elementsEqual(other.user.utf8) && keyID.utf8.elementsEqual(other.keyID.utf8)
    }

    /// Whether these are the reader's keys.
    public func has(_ keys: PublicKeys) -> Bool { isSame(as: ListedReader(keys, rights)) }

    /// Compares account, keys and permission; texts byte by byte.
    public static func == (left: ListedReader, right: ListedReader) -> Bool {
        left.isSame(as: right) && left.rights == right.rights
    }

    /// Uses the user's bytes.
    public func hash(into hasher: inout Hasher) { hasher.combine(Array(user.utf8)) }
}

/// The readers and writers of a bucket from this version on, as signed by its owner (decision 0067).
///
/// A list has no meaning until it has been verified: `VerifiedReaderList`.
public struct ReaderList: Sendable, Equatable {
    /// The bucket.
    public let bucket: SharedBucket
    /// From 1, incremented with each list.
    public let version: UInt64
    /// Digest of the previous list; zero in the first.
    public let previous: Digest256
    /// Commitments to the secret of each epoch, from epoch 0 on; they prevent different readers from receiving
    /// different secrets.
    public let commitments: [Digest256]
    /// Sorted by the bytes of the names.
    public let readers: [ListedReader]
    /// The unique encoding of the list.
    public let bytes: [UInt8]
    /// SHA-256 of `bytes`; covers every field.
    public let digest: Digest256

    /// - Parameter readers: in any order.
    /// - Throws: `ReaderListError` for contents that are invalid regardless of the previous list.
    public init(
        bucket: SharedBucket, version: UInt64, previous: Digest256, commitments: [Digest256], readers: [ListedReader]
    ) throws(ReaderListError) {
        let sorted = readers.sorted { $0.user.utf8.lexicographicallyPrecedes($1.user.utf8) }
        try Self.check(bucket, version, previous, commitments, sorted)
        (self.bucket, self.version, self.previous) = (bucket, version, previous)
        (self.commitments, self.readers) = (commitments, sorted)
        bytes = try Self.bytes(bucket, version, previous, commitments, sorted)
        digest = Digest256.of(bytes)
    }

    private static func check(
        _ bucket: SharedBucket, _ version: UInt64, _ previous: Digest256, _ commitments: [Digest256],
        _ readers: [ListedReader]
    ) throws(ReaderListError) {
        guard version <= ReaderLimits.listsMax, commitments.count <= ReaderLimits.epochsMax,
            readers.count <= ReaderLimits.readersMax
        else { throw .tooMany }
        // The first list begins the first epoch, and each later list begins at most one.
        guard version >= 1, (version == 1) == (previous == .zero), !commitments.isEmpty, commitments.count <= version
        else { throw .malformed }
        for reader in readers {
            guard (1...Limits.userIDBytesMax).contains(reader.user.utf8.count),
                let id = Hex.decode(reader.keyID), id.count == keyIDBytes,
                Hex.encode(id).utf8.elementsEqual(reader.keyID.utf8)
            else { throw .badName }
        }
        for (one, next) in zip(readers, readers.dropFirst())
        where one.user.utf8.elementsEqual(next.user.utf8) { throw .twice(one.user) }
        for (epoch, commitment) in commitments.enumerated()
        where commitments[..<epoch].contains(commitment) { throw .repeatedSecret(epoch: UInt32(epoch)) }
        guard readers.contains(where: { $0.rights == .writes && $0.user.utf8.elementsEqual(bucket.owner.utf8) }) else {
            throw .ownerMissing
        }
    }

    /// The epoch under which values are sealed.
    public var epoch: UInt32 { UInt32(commitments.count - 1) }

    /// The owner's own entry.
    public var owner: ListedReader? { reader(bucket.owner) }

    /// The entry of a user; nil when the user is not a reader.
    public func reader(_ user: String) -> ListedReader? { place(of: user).map { readers[$0] } }

    /// The entry of an account; nil unless it is listed with these keys.
    public func reader(_ keys: PublicKeys) -> ListedReader? { reader(keys.user).flatMap { $0.has(keys) ? $0 : nil } }

    /// Index of a user in `readers`.
    func place(of user: String) -> Int? { readers.firstIndex { $0.user.utf8.elementsEqual(user.utf8) } }

    /// Compares the encodings.
    public static func == (left: ReaderList, right: ReaderList) -> Bool { left.bytes == right.bytes }
}

extension ReaderList {
    /// The list that follows this one.
    /// - Parameter commitment: commitment to the secret of a new epoch; nil: no new epoch.
    /// - Throws: `ReaderListError`, including `removedWithoutEpoch`.
    public func next(
        readers: [ListedReader], beginning commitment: Digest256? = nil
    ) throws(ReaderListError) -> ReaderList {
        let list = try ReaderList(
            bucket: bucket, version: version + 1, previous: digest,
            commitments: commitments + (commitment.map { [$0] } ?? []), readers: readers)
        try list.check(follows: self)
        return list
    }

    /// Checks whether this list may directly follow `before`.
    /// - Throws: `ReaderListError` with the violated rule.
    public func check(follows before: ReaderList) throws(ReaderListError) {
        guard bucket == before.bucket else { throw .otherBucket }
        guard version == before.version + 1, previous == before.digest else { throw .notNext }
        guard commitments.count >= before.commitments.count else { throw .epochBack }
        guard commitments.count <= before.commitments.count + 1 else { throw .epochSkipped }
        for (epoch, pair) in zip(before.commitments, commitments).enumerated()
        where pair.0 != pair.1 { throw .changedSecret(epoch: UInt32(epoch)) }
        guard epoch == before.epoch, let lost = before.readers(notIn: self).first else { return }
        throw .removedWithoutEpoch(lost.user)
    }

    /// Readers that are missing in `other`, or that `other` lists with different keys.
    public func readers(notIn other: ReaderList) -> [ListedReader] {
        readers.filter { one in other.reader(one.user).map { !$0.isSame(as: one) } ?? true }
    }
}
