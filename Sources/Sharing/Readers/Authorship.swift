public import ThicketCrypto
public import ThicketSealed

/// The author of a value, placed before the clear text of everything that is sealed in a shared bucket. It is sealed
/// together with the text, so that only readers see the author.
///
/// form(1) ‖ version of the list(8) ‖ its digest(32) ‖ the author's index in it(2) ‖ the device(8) ‖ signature(64).
public struct Authorship: Sendable, Equatable {
    /// Bytes of the encoding.
    public static let bytesCount: Int = 1 + 8 + 32 + 2 + deviceBytes + Ed25519.signatureBytes
    /// Bytes of a device id, which the account chooses freely.
    public static let deviceBytes = 8
    private static let form: UInt8 = 1

    /// Version of the list under which the author wrote.
    public let list: UInt64
    /// Digest of that list, as the author knows it.
    public let digest: Digest256
    /// Index among the readers of that list, from 0.
    public let place: Int
    /// Device id, 8 bytes.
    public let device: [UInt8]
    /// Ed25519 signature, 64 bytes.
    public let signature: [UInt8]

    /// The encoding, `bytesCount` bytes.
    public var bytes: [UInt8] {
        [Self.form] + list.octets + digest.bytes + UInt16(place).octets + device + signature
    }

    init(list: UInt64, digest: Digest256, place: Int, device: [UInt8], signature: [UInt8]) {
        (self.list, self.digest, self.place) = (list, digest, place)
        (self.device, self.signature) = (device, signature)
    }

    /// Parses the authorship before a clear text.
    /// - Returns: nil when the text does not begin with one, as values in a bucket of a single account.
    public init?(before text: [UInt8]) {
        var fields = FieldReader(text)
        guard fields.skip([Self.form]), let list: UInt64 = fields.number(), let digest: Digest256 = fields.digest(),
            let place: UInt16 = fields.number(), let device: [UInt8] = fields.take(Self.deviceBytes),
            let signature = fields.take(Ed25519.signatureBytes)
        else { return nil }
        self.init(list: list, digest: digest, place: Int(place), device: device, signature: signature)
    }

    /// The statement of an author about a sealed value. All of it is signed.
    struct Statement {
        let place: SealedPlace
        let kind: SealedHeader.Kind
        /// Position of a snapshot; 0 for operations.
        let position: Int
        /// Id of the sealed value; for an operation its ccid.
        let id: [UInt8]
        let clear: [UInt8]

        /// The signed fields: owner, app, bucket, server key, kind, position, id, the list's version and digest, user,
        /// key id, device, SHA-256 of the clear text. The list determines all readers and the epoch of the seal.
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

    /// The author id of a device of an account: the first 8 bytes of SHA-256 over `thicket/author-id/1`, key id and
    /// device. A member can therefore not write under the id of another member's device.
    public static func authorID(keyID: String, device: [UInt8]) -> AuthorID {
        var bytes = LabelledBytes("thicket/author-id/1")
        guard (try? bytes.add(keyID.utf8)) != nil, (try? bytes.add(device)) != nil,
            let id = AuthorID(Digest256.of(bytes.octets).bytes.prefix(AuthorID.byteCount))
        else { preconditionFailure("a key id and a device's id are short") }
        return id
    }
}

/// The author of a value, verified by its signature.
public struct Author: Sendable, Hashable {
    /// The author's entry in the list.
    public let reader: ListedReader
    /// The author's device, 8 bytes.
    public let device: [UInt8]
    /// Version of the list under which the value was written.
    public let list: UInt64
}

/// The reason why a value sealed in a shared bucket is ignored, by every reader alike.
public enum AuthorshipError: Error, Equatable, Sendable, CustomStringConvertible {
    /// No key of the bucket opens it: written by the server or by an account that is not a reader.
    case doesNotOpen
    /// It has no authorship.
    case unsigned
    /// It names a list that this bucket does not have.
    case otherList
    /// It is sealed under another epoch than that of its list.
    case otherEpoch
    /// It names a list or an epoch that the owner has not made, according to the owner
    /// (`AuthoredSealer.knowingNewest`). The associated value is the reader that signed it; nil: the signer is not
    /// known.
    case noSuchList(String?)
    /// Its author index is outside its list.
    case notAReader
    /// Its author has only read permission.
    case mayNotWrite(String)
    /// The signature is not the author's for this value at this place.
    case badSignature(String)
    /// It is written under the author id of another account's device.
    case otherDevice(String)
    /// A snapshot to which its author gave the name of another object.
    case otherName(String)

    /// For users and logs: contains names of users, no content.
    public var description: String {
        switch self {
        case .doesNotOpen: "it does not open"
        case .unsigned: "it is not signed"
        case .otherList: "it names a list of readers that this bucket does not have"
        case .otherEpoch: "it is sealed under another epoch than its list of readers says"
        case .noSuchList(let user):
            "it names a list of readers or an epoch that does not exist" + (user.map { ", by \($0)" } ?? "")
        case .notAReader: "it names an author that is not in its list of readers"
        case .mayNotWrite(let user): "\(user) may only read"
        case .badSignature(let user): "it names \(user) as its author without a valid signature"
        case .otherDevice(let user): "\(user) wrote it under the id of another device"
        case .otherName(let user): "\(user) gave it the name of another object"
        }
    }
}

/// The information that a device lacks for a verdict. Until it is available, no part of the object is accepted: if some
/// devices accepted a value and others did not, they would diverge permanently. A named list or epoch may be invented,
/// or the server may be withholding it: only the owner can decide that and end the hold
/// (`AuthoredSealer.knowingNewest`).
public enum SharedHold: Error, Equatable, Sendable, CustomStringConvertible {
    /// This list, or a newer one, has not been received.
    case list(UInt64)
    /// The list that begins this epoch has not been received.
    case epoch(UInt32)
    /// The secret of this epoch has not been opened.
    case secret(UInt32)
    /// The keys that this reader had at that time have not been verified.
    case keys(user: String, keyID: String)
    /// The owner has signed two lists of one version.
    case forked

    /// For users and logs: contains no content.
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
