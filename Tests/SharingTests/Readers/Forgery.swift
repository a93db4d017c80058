import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// An operation that differs from an honest one in chosen parts.
struct Forgery {
    var circle: Circle
    /// The secrets with which it is sealed.
    var secrets: BucketSecrets
    var list: ReaderList
    var place = 1
    var device = AuthorshipTests.device
    /// The author that the operation names.
    var author: AuthorID
    var listNamed: Int
    var serverKey = "k"
    var id: [UInt8]
    /// What the signed statement contains where it differs from what is sealed.
    var saidKey: String?
    var saidID: [UInt8]?
    var saidKind = SealedHeader.Kind.operation
    var saidText: [UInt8]?
    var saidBucket: SharedBucket?
    /// Bytes that are sealed in place of an operation.
    var other: [UInt8]?

    /// An honest operation of ben's.
    init(_ circle: Circle) throws {
        let list = circle.newest
        (self.circle, secrets, self.list) = (circle, circle.secrets, list)
        author = Authorship.authorID(keyID: try circle.member("ben").keys.id, device: AuthorshipTests.device)
        (listNamed, id) = (Int(list.version), RandomBytes.make(16))
    }

    var text: [UInt8] {
        get throws {
            if let other { return other }
            let log = SealedLog(
                place: .init(owner: "ann", app: "notes", bucket: "plans", serverKey: serverKey), appKey: "note",
                incarnation: AuthorshipTests.incarnation, object: ["t": ""])
            let edit = try Edit(
                .object(ObjectDiff([(key: "t", operation: .text(TextDelta([.insert([0x61])])))])))
            return SealedOperation(
                base: 0, head: try #require(log.chain[0]), incarnation: log.incarnationTag, author: author,
                list: listNamed, content: .edit(edit)
            ).clearBytes()
        }
    }

    /// Signed by a user that need not be the reader at that place.
    func sealed(by user: String = "ben") throws -> [UInt8] {
        let signer = try circle.member(user)
        let bucket = saidBucket ?? circle.bucket
        let said = Authorship.Statement(
            place: SealedPlace(
                owner: bucket.owner, app: bucket.app, bucket: bucket.bucket, serverKey: saidKey ?? serverKey),
            kind: saidKind, position: 0, id: saidID ?? id, clear: try saidText ?? text)
        let reader = list.readers[min(place, list.readers.count - 1)]
        let signature = try signer.account.identity.signature(
            for: .author, said.fields(list, reader, device))
        let authorship = Authorship(
            list: list.version, digest: list.digest, place: place, device: device, signature: signature)
        return try raw(authorship.bytes + text)
    }

    /// Seals any bytes with the bucket's secrets.
    func raw(_ clear: [UInt8]) throws -> [UInt8] {
        try secrets.keys().sealer(serverKey: serverKey).seal(
            clear, kind: .operation, id: id, position: 0, nonce: RandomBytes.make(12))
    }
}
