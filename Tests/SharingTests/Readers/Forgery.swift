import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// What can be said in place of what an honest device says.
struct Forgery {
    var circle: Circle
    /// Who seals: somebody with the bucket's secrets.
    var secrets: BucketSecrets
    var list: ReaderList
    var place: Int = 1
    var device: [UInt8] = AuthorshipTests.device
    /// Of whose device the operation calls itself.
    var author: AuthorID
    var listNamed: Int
    var serverKey: String = "k"
    var id: [UInt8]
    /// What the statement says where it is not what is sealed.
    var saidKey: String?
    var saidID: [UInt8]?
    var saidKind: SealedHeader.Kind = .operation
    var saidText: [UInt8]?
    var saidBucket: SharedBucket?
    /// What is sealed in the place of an operation.
    var other: [UInt8]?

    /// All honest: ben's.
    init(_ circle: Circle) throws {
        let list: ReaderList = circle.newest
        (self.circle, secrets, self.list) = (circle, circle.secrets, list)
        author = Authorship.authorID(keyID: try circle.member("ben").keys.id, device: AuthorshipTests.device)
        (listNamed, id) = (Int(list.version), RandomBytes.make(16))
    }

    var text: [UInt8] {
        get throws {
            if let other { return other }
            let log: SealedLog = .init(
                place: .init(owner: "ann", app: "notes", bucket: "plans", serverKey: serverKey), appKey: "note",
                incarnation: AuthorshipTests.incarnation, object: ["t": ""])
            let edit: Edit = try .init(
                .object(ObjectDiff([(key: "t", operation: .text(TextDelta([.insert([0x61])])))])))
            return SealedOperation(
                base: 0, head: try #require(log.chain[0]), incarnation: log.incarnationTag, author: author,
                list: listNamed, content: .edit(edit)
            ).clearBytes()
        }
    }

    /// Signed by somebody, whose place it may not be.
    func sealed(by user: String = "ben") throws -> [UInt8] {
        let signer: Member = try circle.member(user)
        let bucket: SharedBucket = saidBucket ?? circle.bucket
        let said: Authorship.Statement = .init(
            place: SealedPlace(
                owner: bucket.owner, app: bucket.app, bucket: bucket.bucket, serverKey: saidKey ?? serverKey),
            kind: saidKind, position: 0, id: saidID ?? id, clear: try saidText ?? text)
        let reader: ListedReader = list.readers[min(place, list.readers.count - 1)]
        let signature: [UInt8] = try signer.account.identity.signature(
            for: .author, said.fields(list, reader, device))
        let authorship: Authorship = .init(
            list: list.version, digest: list.digest, place: place, device: device, signature: signature)
        return try raw(authorship.bytes + text)
    }

    /// Sealed with the bucket's secrets, whatever it is.
    func raw(_ clear: [UInt8]) throws -> [UInt8] {
        try secrets.keys().sealer(serverKey: serverKey).seal(
            clear, kind: .operation, id: id, position: 0, nonce: RandomBytes.make(12))
    }
}
