public import ThicketCrypto
public import ThicketSealed

/// What stands in front of the clear text of everything that is sealed in a shared bucket: whose it is. It is sealed
/// with it, so that only readers see who wrote what.
///
/// form(1) ‖ version of the list(8) ‖ its digest(32) ‖ the author's place in it(2) ‖ the device(8) ‖ signature(64).
public struct Authorship: Sendable, Equatable {
    /// Bytes of it.
    public static let bytesCount: Int = 1 + 8 + 32 + 2 + deviceBytes + Ed25519.signatureBytes
    /// Bytes of a device's id, which an account gives as it likes.
    public static let deviceBytes = 8
    private static let form: UInt8 = 1

    /// Version of the list that the author wrote under.
    public let list: UInt64
    /// Digest of that list, as the author has it.
    public let digest: Digest256
    /// Place among the readers of that list, from 0 on.
    public let place: Int
    /// 8 bytes.
    public let device: [UInt8]
    /// 64 bytes.
    public let signature: [UInt8]

    public var bytes: [UInt8] {
        [Self.form] + list.octets + digest.bytes + UInt16(place).octets + device + signature
    }

    init(list: UInt64, digest: Digest256, place: Int, device: [UInt8], signature: [UInt8]) {
        (self.list, self.digest, self.place) = (list, digest, place)
        (self.device, self.signature) = (device, signature)
    }

    /// Reads what stands in front of a clear text.
    /// - Returns: nil when it is no authorship: what is sealed in a bucket of one account begins otherwise.
    public init?(before text: [UInt8]) {
        var fields = FieldReader(text)
        guard fields.skip([Self.form]), let list: UInt64 = fields.number(), let digest: Digest256 = fields.digest(),
            let place: UInt16 = fields.number(), let device: [UInt8] = fields.take(Self.deviceBytes),
            let signature = fields.take(Ed25519.signatureBytes)
        else { return nil }
        self.init(list: list, digest: digest, place: Int(place), device: device, signature: signature)
    }

    /// What an author says of a sealed value. All of it is signed.
    struct Statement {
        let place: SealedPlace
        let kind: SealedHeader.Kind
        /// Of a snapshot; 0 for operations.
        let position: Int
        /// The sealed value's id: of an operation its ccid.
        let id: [UInt8]
        let clear: [UInt8]

        /// Owner, app, bucket, server key, kind, position, id, the list's version and digest, user, key id, device,
        /// SHA-256 of the clear text. The list names all who may read it, and the epoch that it is sealed under.
        func fields(_ list: ReaderList, _ author: ListedReader, _ device: [UInt8]) -> [[UInt8]] {
            fields(list.version, list.digest, author, device)
        }

        func fields(
            _ version: UInt64, _ digest: Digest256, _ author: ListedReader, _ device: [UInt8]
        ) -> [[UInt8]] {
            [place.owner, place.app, place.bucket, place.serverKey].map { Array($0.utf8) }
                + [[kind.rawValue], UInt64(position).octets, id, version.octets, digest.bytes]
                + [Array(author.user.utf8), Array(author.keyID.utf8), device, Digest256.of(clear).bytes]
        }
    }

    /// The author id under which a device of an account writes: the first 8 bytes of SHA-256 over
    /// `thicket/author-id/1`, key id and device. So no member writes under the id of another member's device.
    public static func authorID(keyID: String, device: [UInt8]) -> AuthorID {
        var bytes = LabelledBytes("thicket/author-id/1")
        guard (try? bytes.add(keyID.utf8)) != nil, (try? bytes.add(device)) != nil,
            let id = AuthorID(Digest256.of(bytes.octets).bytes.prefix(AuthorID.byteCount))
        else { preconditionFailure("a key id and a device's id are short") }
        return id
    }
}

/// Who wrote something, as far as the signature tells.
public struct Author: Sendable, Hashable {
    public let reader: ListedReader
    /// Which of their devices: 8 bytes.
    public let device: [UInt8]
    /// Version of the list that it was written under.
    public let list: UInt64
}

/// Why something that was sealed in a shared bucket counts for nothing, for every reader alike.
public enum AuthorshipError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No key of the bucket opens it: the server's, or somebody's who reads nothing here.
    case doesNotOpen
    /// Nobody stands in front of it.
    case unsigned
    /// It names a list that this bucket has not.
    case otherList
    /// It is sealed under another epoch than that of its list.
    case otherEpoch
    /// It names a list, or an epoch, that the owner has not made, says the owner (`AuthoredSealer.knowingNewest`):
    /// invented by this reader; nil: by nobody who can be named, with the secrets or without.
    case noSuchList(String?)
    /// It names nobody of its list.
    case notAReader
    /// Its author may only read.
    case mayNotWrite(String)
    /// Its author has not signed it: not this, not here, or not at all.
    case badSignature(String)
    /// It is written under the id of another account's device.
    case otherDevice(String)
    /// A snapshot that its author has given the name of another object.
    case otherName(String)

    /// For users and logs: names of users, and no content.
    public var description: String {
        switch self {
        case .doesNotOpen: "it does not open"
        case .unsigned: "nobody has signed it"
        case .otherList: "it names a list of readers that this bucket has not"
        case .otherEpoch: "it is sealed under another epoch than its list of readers says"
        case .noSuchList(let user):
            "it names a list of readers or an epoch that there is not" + (user.map { ", by \($0)" } ?? "")
        case .notAReader: "it names an author who is in no list of readers"
        case .mayNotWrite(let user): "\(user) may only read"
        case .badSignature(let user): "it bears the name of \(user), who has not signed it"
        case .otherDevice(let user): "\(user) wrote it under the id of another device"
        case .otherName(let user): "\(user) gave it the name of another object"
        }
    }
}

/// What a device lacks before it can say whether something counts. Until then nothing of the object is taken: what one
/// device took and another did not would part them for ever. What names a list or an epoch may have been invented, or
/// the list is kept back: only the owner can tell, and end it (`AuthoredSealer.knowingNewest`).
public enum SharedHold: Error, Equatable, Sendable, CustomStringConvertible {
    /// This list, or a newer one, has not been seen here.
    case list(UInt64)
    /// A list that begins this epoch has not been seen here.
    case epoch(UInt32)
    /// The secret of this epoch has not been opened here.
    case secret(UInt32)
    /// The keys that this reader had then have not been verified here.
    case keys(user: String, keyID: String)
    /// The owner has signed two lists of one version.
    case forked

    /// For users and logs: no content.
    public var description: String {
        switch self {
        case .list(let version): "list \(version) of the bucket's readers has not been seen here"
        case .epoch(let epoch): "the list of readers that begins epoch \(epoch) has not been seen here"
        case .secret(let epoch): "the secret of epoch \(epoch) has not been opened here"
        case .keys(let user, let id): "the keys \(id) of \(user) have not been verified here"
        case .forked: "the bucket's owner has signed two lists of readers of one version"
        }
    }
}
