import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketSharing

@Suite("Lists of readers")
struct ReaderListTests {
    private static func circle() throws -> Circle { try Circle(["ben": .writes, "cleo": .reads]) }

    /// The list of a circle, with something else in it.
    private static func list(
        _ circle: Circle, version: UInt64 = 1, previous: Digest256 = .zero, commitments: [Digest256]? = nil,
        readers: [ListedReader]? = nil
    ) throws -> ReaderList {
        try ReaderList(
            bucket: circle.bucket, version: version, previous: previous,
            commitments: commitments ?? circle.newest.commitments, readers: readers ?? circle.newest.readers)
    }

    private static func commitment(_ byte: UInt8) -> Digest256 { Digest256.of([byte]) }

    @Test("what is written is read, and whoever signs it in whatever order makes the same bytes")
    func form() throws {
        let circle: Circle = try Self.circle()
        let signed: SignedReaderList = circle.lists[0]
        #expect(try SignedReaderList(parsing: signed.bytes) == signed)
        #expect(try Self.list(circle, readers: circle.newest.readers.reversed()).bytes == signed.list.bytes)
        #expect(signed.list.readers.map(\.user) == ["ann", "ben", "cleo"])
        #expect(signed.list.reader("cleo")?.rights == .reads && signed.list.epoch == 0)
        _ = try VerifiedReaderList(signed, of: circle.bucket, by: circle.verified)
    }

    @Test("a list with any bit flipped, cut anywhere or longer by one byte is refused")
    func flipped() throws {
        let circle: Circle = try Self.circle()
        let bytes: [UInt8] = circle.lists[0].bytes
        for (bit, changed): (Int, [UInt8]) in bytes.flipped.enumerated() {
            #expect(throws: ReaderListError.self, "bit \(bit)") {
                _ = try VerifiedReaderList(
                    SignedReaderList(parsing: changed), of: circle.bucket, by: circle.verified)
            }
        }
        for count: Int in bytes.indices {
            #expect(throws: ReaderListError.self) { _ = try SignedReaderList(parsing: Array(bytes.prefix(count))) }
        }
        #expect(throws: ReaderListError.malformed) { _ = try SignedReaderList(parsing: [0] + bytes) }
        #expect(throws: ReaderListError.malformed) { _ = try ReaderList(parsing: circle.newest.bytes + [0]) }
    }

    @Test("no list has two forms: readers in another order, twice, or a name that is no UTF-8 are refused")
    func oneForm() throws {
        let circle: Circle = try Self.circle()
        let (ann, ben): (ListedReader, ListedReader) = (circle.newest.readers[0], circle.newest.readers[1])
        let good: [UInt8] = try ReaderList.bytes(
            circle.bucket, 1, .zero, circle.newest.commitments, [ann, ben])
        _ = try ReaderList(parsing: good)
        let swapped: [UInt8] = try ReaderList.bytes(circle.bucket, 1, .zero, circle.newest.commitments, [ben, ann])
        #expect(throws: ReaderListError.malformed) { _ = try ReaderList(parsing: swapped) }
        let twice: [UInt8] = try ReaderList.bytes(circle.bucket, 1, .zero, circle.newest.commitments, [ann, ben, ben])
        #expect(throws: ReaderListError.twice("ben")) { _ = try ReaderList(parsing: twice) }
        var broken: [UInt8] = good
        let name: Int = good.count - 20
        #expect(broken[name] == UInt8(ascii: "b"))
        broken[name] = 0xFF
        #expect(throws: ReaderListError.malformed) { _ = try ReaderList(parsing: broken) }
    }

    @Test("two spellings of one name are two readers")
    func spellings() throws {
        let circle: Circle = try Self.circle()
        let readers: [ListedReader] = try ["\u{E9}", "e\u{301}"].map { try Member($0).listed(.reads) }
        let list: ReaderList = try Self.list(circle, readers: circle.newest.readers + readers)
        #expect(list.readers.count == 5)
        for reader: ListedReader in readers { #expect(list.reader(reader.user)?.keyID == reader.keyID) }
    }

    @Test("what no list may be is refused by whoever makes or reads one")
    func bounds() throws {
        let circle: Circle = try Self.circle()
        let readers: [ListedReader] = circle.newest.readers
        let many: [ListedReader] = (0..<1_022).map {
            ListedReader(user: "u\($0)", keyID: readers[0].keyID, rights: .reads)
        }
        let most: ReaderList = try Self.list(circle, readers: many + readers.prefix(2))
        #expect(try ReaderList(parsing: most.bytes) == most)
        #expect(throws: ReaderListError.tooMany) { try Self.list(circle, readers: many + readers) }
        #expect(throws: ReaderListError.tooMany) {
            try Self.list(circle, version: 4_097, previous: Self.commitment(0))
        }
        #expect(throws: ReaderListError.tooMany) {
            try Self.list(
                circle, version: 1_025, previous: Self.commitment(0),
                commitments: (0..<1_025).map { Digest256.of("\($0)".utf8.map { $0 }) })
        }
        #expect(throws: ReaderListError.ownerMissing) { try Self.list(circle, readers: Array(readers.dropFirst())) }
        #expect(throws: ReaderListError.ownerMissing) {
            try Self.list(circle, readers: [circle.ann.listed(.reads)] + readers.dropFirst())
        }
        #expect(throws: ReaderListError.twice("ben")) { try Self.list(circle, readers: readers + [readers[1]]) }
        for (version, previous): (UInt64, Digest256) in [(0, .zero), (1, Self.commitment(0)), (2, .zero)] {
            #expect(throws: ReaderListError.malformed) {
                try Self.list(circle, version: version, previous: previous)
            }
        }
        // No secret, and two of them in the first list.
        for commitments: [Digest256] in [[], [Self.commitment(1), Self.commitment(2)]] {
            #expect(throws: ReaderListError.malformed) { try Self.list(circle, commitments: commitments) }
        }
        #expect(throws: ReaderListError.repeatedSecret(epoch: 1)) {
            try Self.list(
                circle, version: 2, previous: Self.commitment(0),
                commitments: [Self.commitment(1), Self.commitment(1)])
        }
        for id: String in ["", "00", readers[0].keyID.uppercased() + "0", String(repeating: "A", count: 32)] {
            #expect(throws: ReaderListError.badName) {
                try Self.list(circle, readers: readers + [ListedReader(user: "dora", keyID: id, rights: .reads)])
            }
        }
        for user: String in ["", String(repeating: "x", count: 257)] {
            #expect(throws: ReaderListError.badName) {
                try Self.list(
                    circle, readers: readers + [ListedReader(user: user, keyID: readers[0].keyID, rights: .reads)])
            }
        }
        #expect(throws: ReaderListError.badName) { try SharedBucket(owner: "", app: "notes", bucket: "b") }
    }

    @Test("a list counts for what its owner signs with the keys that were verified, and for nobody else's word")
    func signatures() throws {
        let circle: Circle = try Self.circle()
        let list: ReaderList = circle.newest
        let keys: VerifiedKeys = circle.verified
        let ben: Member = try circle.member("ben")
        #expect(throws: ReaderListError.otherOwnerKey) { _ = try SignedReaderList(list, signedBy: ben.account) }
        // A member's signature in the owner's place, one for another use, and one over another list.
        let owner: ListedReader = try circle.ann.listed(.writes)
        let fields: [[UInt8]] = [Array(owner.user.utf8), Array(owner.keyID.utf8), list.digest.bytes]
        let wrong: [[UInt8]] = [
            try ben.account.identity.signature(for: .readers, fields),
            try circle.ann.account.identity.signature(for: .author, fields),
            try circle.ann.account.identity.signature(for: .readers, fields.dropLast() + [Self.commitment(9).bytes]),
            .init(repeating: 0, count: 64),
        ]
        for signature: [UInt8] in wrong {
            #expect(throws: ReaderListError.badSignature) {
                _ = try VerifiedReaderList(
                    SignedReaderList(parsing: list.bytes + signature), of: circle.bucket, by: keys)
            }
        }
        let other: SharedBucket = try .init(owner: "ann", app: "notes", bucket: "other")
        #expect(throws: ReaderListError.otherBucket) {
            _ = try VerifiedReaderList(circle.lists[0], of: other, by: keys)
        }
        #expect(throws: ReaderListError.unknownOwner) {
            _ = try VerifiedReaderList(circle.lists[0], of: circle.bucket, by: VerifiedKeys { _ in nil })
        }
    }

    @Test(
        "the server adds a reader, gives more rights, or puts another key in a reader's or the owner's place: refused")
    func serversList() throws {
        let circle: Circle = try Self.circle()
        let eve: Member = try Member("eve")
        let readers: [ListedReader] = circle.newest.readers
        let cleo: ListedReader = readers[2]
        let lists: [ReaderList] = [
            try Self.list(circle, readers: readers + [eve.listed(.reads)]),
            try Self.list(
                circle, readers: [readers[0], readers[1], .init(user: cleo.user, keyID: cleo.keyID, rights: .writes)]),
            try Self.list(
                circle, readers: [readers[0], readers[1], .init(user: "cleo", keyID: eve.keys.id, rights: .reads)]),
        ]
        for list: ReaderList in lists {
            #expect(throws: ReaderListError.badSignature) {
                _ = try circle.checked(SignedReaderList(parsing: list.bytes + circle.lists[0].signature))
            }
        }
        // The owner's keys replaced, and signed with them: nobody has verified those.
        let false_: Member = try Member("ann")
        let taken: SignedReaderList = try .init(
            Self.list(circle, readers: [false_.listed(.writes)] + readers.dropFirst()), signedBy: false_.account)
        #expect(throws: ReaderListError.otherOwnerKey) { _ = try circle.checked(taken) }
    }

    @Test("what follows a list: the next version of the same bucket, with the same secrets and one more at most")
    func successors() throws {
        let circle: Circle = try Self.circle()
        let (first, readers): (ReaderList, [ListedReader]) = (circle.newest, circle.newest.readers)
        let known: [Digest256] = first.commitments
        func check(_ list: ReaderList) throws { try list.check(follows: first) }
        try check(Self.list(circle, version: 2, previous: first.digest))
        try check(Self.list(circle, version: 2, previous: first.digest, commitments: known + [Self.commitment(1)]))
        #expect(throws: ReaderListError.notNext) {
            try check(Self.list(circle, version: 3, previous: first.digest))
        }
        #expect(throws: ReaderListError.notNext) {
            try check(Self.list(circle, version: 2, previous: Self.commitment(1)))
        }
        #expect(throws: ReaderListError.notNext) { try check(first) }
        #expect(throws: ReaderListError.changedSecret(epoch: 0)) {
            try check(Self.list(circle, version: 2, previous: first.digest, commitments: [Self.commitment(1)]))
        }
        let second: ReaderList = try first.next(readers: readers, beginning: Self.commitment(1))
        #expect(throws: ReaderListError.epochBack) {
            try Self.list(circle, version: 3, previous: second.digest).check(follows: second)
        }
        let plain: ReaderList = try Self.list(circle, version: 2, previous: first.digest)
        let skipping: ReaderList = try Self.list(
            circle, version: 3, previous: plain.digest, commitments: known + [Self.commitment(1), Self.commitment(2)])
        #expect(throws: ReaderListError.epochSkipped) { try skipping.check(follows: plain) }
    }

    @Test("nobody is removed, and no reader gets other keys, without a new epoch; rights and new readers need none")
    func removal() throws {
        let circle: Circle = try Self.circle()
        let (first, readers): (ReaderList, [ListedReader]) = (circle.newest, circle.newest.readers)
        #expect(throws: ReaderListError.removedWithoutEpoch("ben")) {
            _ = try first.next(readers: [readers[0], readers[2]])
        }
        let renewed: ListedReader = try Member("ben").listed(.writes)
        #expect(throws: ReaderListError.removedWithoutEpoch("ben")) {
            _ = try first.next(readers: [readers[0], renewed, readers[2]])
        }
        _ = try first.next(readers: [readers[0], readers[2]], beginning: Self.commitment(1))
        _ = try first.next(readers: [readers[0], renewed, readers[2]], beginning: Self.commitment(1))
        let ben: ListedReader = .init(user: "ben", keyID: readers[1].keyID, rights: .reads)
        _ = try first.next(readers: [readers[0], ben, readers[2], Member("dora").listed(.reads)])
    }

    @Test("errors say what was wrong, each with a code of its own, and no key")
    func errors() {
        let all: [ReaderListError] = [
            .malformed, .badName, .tooMany, .ownerMissing, .twice("ben"), .repeatedSecret(epoch: 1), .otherBucket,
            .unknownOwner, .otherOwnerKey, .badSignature, .notNext, .epochBack, .epochSkipped,
            .changedSecret(epoch: 1), .removedWithoutEpoch("ben"),
        ]
        #expect(Set(all.map(\.code)).count == all.count && Set(all.map(\.description)).count == all.count)
    }
}
