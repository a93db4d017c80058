import ThicketCrypto
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// An account with all its keys.
struct Member {
    let keys: PublicKeys
    let account: SigningAccount
    let opening: X25519.PrivateKey

    /// - Parameter seed: gives the same account the same identity key, so that ties between authors end alike; nil: a
    ///   new key.
    init(_ user: String, seed: UInt64? = nil) throws {
        let signing: Ed25519.SigningKey =
            try seed.map {
                try .init(seed: SecureBytes(copying: Digest256.of(Array("\($0) \(user)".utf8)).bytes))
            } ?? .random()
        opening = .random()
        keys = try PublicKeys(user: user, identity: signing.verifyingKey, encryption: opening.publicKey)
        account = try SigningAccount(keys, identity: signing)
    }

    func listed(_ rights: ListedReader.Rights) -> ListedReader { ListedReader(keys, rights) }
}

/// A bucket of ann's, with all that its owner makes and its server shows: lists and wraps.
struct Circle {
    let bucket: SharedBucket
    var members = [String: Member]()
    private(set) var secrets: BucketSecrets
    private(set) var lists = [SignedReaderList]()
    private(set) var wraps = [SecretWrap]()
    /// Keys that accounts had before.
    private(set) var past = [PublicKeys]()
    private let seed: UInt64?

    /// - Parameters:
    ///   - rights: by user; ann writes.
    ///   - seed: of the accounts' identity keys; nil: random ones.
    init(_ rights: [String: ListedReader.Rights], bucket name: String = "plans", seed: UInt64? = nil) throws {
        bucket = try SharedBucket(owner: "ann", app: "notes", bucket: name)
        self.seed = seed
        secrets = try BucketSecrets(of: bucket, secret: .random(32))
        for user: String in ["ann"] + rights.keys { members[user] = try Member(user, seed: seed) }
        let list = try ReaderList(
            bucket: bucket, version: 1, previous: .zero, commitments: secrets.commitments, readers: listed(rights))
        try publish(list, after: nil)
    }

    var ann: Member { get throws { try member("ann") } }

    func member(_ user: String) throws -> Member {
        guard let member = members[user] else { throw SharingError.unverified(user) }
        return member
    }

    func listed(_ rights: [String: ListedReader.Rights]) throws -> [ListedReader] {
        try [ann.listed(.writes)] + rights.map { try member($0.key).listed($0.value) }
    }

    var newest: ReaderList { lists[lists.count - 1].list }

    /// The keys that all accounts have verified, each in person.
    var verified: VerifiedKeys {
        let (keys, past): ([String: PublicKeys], [PublicKeys]) = (members.mapValues(\.keys), past)
        return VerifiedKeys({ keys[$0] }, past: { (user, id) in past.first { $0.user == user && $0.id == id } })
    }

    /// An account gets other keys, which all accounts verify, and the owner puts them into the list.
    mutating func changeKeys(of user: String) throws {
        past.append(try member(user).keys)
        members[user] = try Member(user)
        var rights = [String: ListedReader.Rights]()
        for reader in newest.readers where reader.user != "ann" { rights[reader.user] = reader.rights }
        try change(to: rights, newEpoch: true)
    }

    /// The owner publishes a new list of readers.
    mutating func change(to rights: [String: ListedReader.Rights], newEpoch: Bool) throws {
        for user in rights.keys where members[user] == nil { members[user] = try Member(user, seed: seed) }
        let before = newest
        if newEpoch { secrets = try secrets.beginning(.random(32)) }
        let next = try before.next(
            readers: listed(rights), beginning: newEpoch ? secrets.commitments.last : nil)
        try publish(next, after: before)
    }

    private mutating func publish(_ list: ReaderList, after before: ReaderList?) throws {
        let signed = try SignedReaderList(list, signedBy: ann.account)
        let checked = try VerifiedReaderList(signed, of: bucket, by: verified)
        wraps += try secrets.wraps(for: checked, after: before, keys: verified)
        lists.append(signed)
    }

    /// Signs any list as the owner.
    func signed(_ list: ReaderList) throws -> SignedReaderList { try SignedReaderList(list, signedBy: ann.account) }

    func checked(_ list: SignedReaderList? = nil) throws -> VerifiedReaderList {
        try VerifiedReaderList(list ?? lists[lists.count - 1], of: bucket, by: verified)
    }

    /// The knowledge of a device that has been shown all lists.
    func reader() -> SharedBucketReader {
        var reader = SharedBucketReader(bucket: bucket)
        _ = reader.accept(lists, keys: verified)
        return reader
    }

    func opened(by user: String, known: BucketSecrets? = nil) throws -> BucketSecrets {
        let own = try member(user)
        return try BucketSecrets.opened(wraps, for: checked(), known: known, as: own.keys, with: own.opening)
    }

    /// The sealer of a member's device that has been shown everything.
    func sealer(of user: String, device: [UInt8] = .init(repeating: 1, count: 8), key: String = "k") throws
        -> AuthoredSealer
    {
        try AuthoredSealer(
            serverKey: key, secrets: opened(by: user), lists: reader(), keys: verified,
            writer: AuthoredSealer.Writer(member(user).account, device: device))
    }
}

extension SeededRandom {
    mutating func below(_ bound: Int) -> Int { bound <= 1 ? 0 : Int(next() % UInt64(bound)) }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}

extension [UInt8] {
    /// Each of these bytes with one bit changed.
    var flipped: [[UInt8]] {
        (0..<count * 8).map { bit in
            var bytes = self
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            return bytes
        }
    }
}
