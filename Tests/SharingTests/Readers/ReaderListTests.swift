import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketSharing

@Suite("Lists of readers")
struct ReaderListTests {
    private static func circle() throws -> Circle { try Circle(["ben": .writes, "cleo": .reads]) }

    /// The list of a circle, with some members replaced.
    private static func list(
        _ circle: Circle, version: UInt64 = 1, previous: Digest256 = .zero, commitments: [Digest256]? = nil,
        readers: [ListedReader]? = nil
    ) throws -> ReaderList {
        try ReaderList(
            bucket: circle.bucket, version: version, previous: previous,
            commitments: commitments ?? circle.newest.commitments, readers: readers ?? circle.newest.readers)
    }

    private static func commitment(_ byte: UInt8) -> Digest256 { Digest256.of([byte]) }

    @Test("a list is read as it was written, and the order of its readers does not change its bytes")
    func form() throws {
        let circle = try Self.circle()
        let signed = circle.lists[0]
        #expect(try SignedReaderList(parsing: signed.bytes) == signed)
        #expect(try Self.list(circle, readers: circle.newest.readers.reversed()).bytes == signed.list.bytes)
        #expect(signed.list.readers.map(\.user) == ["ann", "ben", "cleo"])
        #expect(signed.list.reader("cleo")?.rights == .reads && signed.list.epoch == 0)
        _ = try VerifiedReaderList(signed, of: circle.bucket, by: circle.verified)
    }

    @Test("a list with any bit flipped, cut anywhere or longer by one byte is refused")
    func flipped() throws {
        let circle = try Self.circle()
        let bytes = circle.lists[0].bytes
        for (bit, changed) in bytes.flipped.enumerated() {
            #expect(throws: ReaderListError.self, "bit \(bit)") {
                _ = try VerifiedReaderList(
                    SignedReaderList(parsing: changed), of: circle.bucket, by: circle.verified)
            }
        }
        for count in bytes.indices {
            #expect(throws: ReaderListError.self) { _ = try SignedReaderList(parsing: Array(bytes.prefix(count))) }
        }
        #expect(throws: ReaderListError.malformed) { _ = try SignedReaderList(parsing: [0] + bytes) }
        #expect(throws: ReaderListError.malformed) { _ = try ReaderList(parsing: circle.newest.bytes + [0]) }
    }

    @Test("a list has one form: readers in another order or twice, and a name that is not UTF-8, are refused")
    func oneForm() throws {
        let circle = try Self.circle()
        let (ann, ben) = (circle.newest.readers[0], circle.newest.readers[1])
        let good = try ReaderList.bytes(
            circle.bucket, 1, .zero, circle.newest.commitments, [ann, ben])
        _ = try ReaderList(parsing: good)
        let swapped = try ReaderList.bytes(circle.bucket, 1, .zero, circle.newest.commitments, [ben, ann])
        #expect(throws: ReaderListError.malformed) { _ = try ReaderList(parsing: swapped) }
        let twice = try ReaderList.bytes(circle.bucket, 1, .zero, circle.newest.commitments, [ann, ben, ben])
        #expect(throws: ReaderListError.twice("ben")) { _ = try ReaderList(parsing: twice) }
        var broken = good
        let name = good.count - 20
        #expect(broken[name] == UInt8(ascii: "b"))
        broken[name] = 0xFF
        #expect(throws: ReaderListError.malformed) { _ = try ReaderList(parsing: broken) }
    }

    @Test("two spellings of one name are two readers")
    func spellings() throws {
        let circle = try Self.circle()
        let readers = try ["\u{E9}", "e\u{301}"].map { try Member($0).listed(.reads) }
        let list = try Self.list(circle, readers: circle.newest.readers + readers)
        #expect(list.readers.count == 5)
        for reader in readers { #expect(list.reader(reader.user)?.keyID == reader.keyID) }
    }

    @Test("a list beyond its bounds, without its owner or with a bad name, version or secret cannot be made")
    func bounds() throws {
        let circle: Circle = try Self.circle()
        let readers = circle.newest.readers
        let many = (0..<1_022).map {
            ListedReader(user: "u\($0)", keyID: readers[0].keyID, rights: .reads)
        }
        let most = try Self.list(circle, readers: many + readers.prefix(2))
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
        // A first list without a secret, and one with two.
        for commitments in [[], [Self.commitment(1), Self.commitment(2)]] {
            #expect(throws: ReaderListError.malformed) { try Self.list(circle, commitments: commitments) }
        }
        #expect(throws: ReaderListError.repeatedSecret(epoch: 1)) {
            try Self.list(
                circle, version: 2, previous: Self.commitment(0),
                commitments: [Self.commitment(1), Self.commitment(1)])
        }
        for id in ["", "00", readers[0].keyID.uppercased() + "0", String(repeating: "A", count: 32)] {
            #expect(throws: ReaderListError.badName) {
                try Self.list(circle, readers: readers + [ListedReader(user: "dora", keyID: id, rights: .reads)])
            }
        }
        for user in ["", String(repeating: "x", count: 257)] {
            #expect(throws: ReaderListError.badName) {
                try Self.list(
                    circle, readers: readers + [ListedReader(user: user, keyID: readers[0].keyID, rights: .reads)])
            }
        }
        #expect(throws: ReaderListError.badName) { try SharedBucket(owner: "", app: "notes", bucket: "b") }
    }

    @Test("a list is accepted only with its owner's signature by verified keys, and for its own bucket")
    func signatures() throws {
        let circle = try Self.circle()
        let list = circle.newest
        let keys = circle.verified
        let ben = try circle.member("ben")
        #expect(throws: ReaderListError.otherOwnerKey) { _ = try SignedReaderList(list, signedBy: ben.account) }
        // A member's signature in the owner's place, one for another use, and one over another list.
        let owner = try circle.ann.listed(.writes)
        let fields = [Array(owner.user.utf8), Array(owner.keyID.utf8), list.digest.bytes]
        let wrong = [
            try ben.account.identity.signature(for: .readers, fields),
            try circle.ann.account.identity.signature(for: .author, fields),
            try circle.ann.account.identity.signature(for: .readers, fields.dropLast() + [Self.commitment(9).bytes]),
            .init(repeating: 0, count: 64),
        ]
        for signature in wrong {
            #expect(throws: ReaderListError.badSignature) {
                _ = try VerifiedReaderList(
                    SignedReaderList(parsing: list.bytes + signature), of: circle.bucket, by: keys)
            }
        }
        let other = try SharedBucket(owner: "ann", app: "notes", bucket: "other")
        #expect(throws: ReaderListError.otherBucket) {
            _ = try VerifiedReaderList(circle.lists[0], of: other, by: keys)
        }
        #expect(throws: ReaderListError.unknownOwner) {
            _ = try VerifiedReaderList(circle.lists[0], of: circle.bucket, by: VerifiedKeys { _ in nil })
        }
    }

    @Test(
        "a list with a reader, more rights, or a reader's or owner's key that the server has put in is refused")
    func serversList() throws {
        let circle = try Self.circle()
        let eve = try Member("eve")
        let readers = circle.newest.readers
        let cleo = readers[2]
        let lists = [
            try Self.list(circle, readers: readers + [eve.listed(.reads)]),
            try Self.list(
                circle, readers: [readers[0], readers[1], .init(user: cleo.user, keyID: cleo.keyID, rights: .writes)]),
            try Self.list(
                circle, readers: [readers[0], readers[1], .init(user: "cleo", keyID: eve.keys.id, rights: .reads)]),
        ]
        for list in lists {
            #expect(throws: ReaderListError.badSignature) {
                _ = try circle.checked(SignedReaderList(parsing: list.bytes + circle.lists[0].signature))
            }
        }
        // The owner's keys replaced, and the list signed with them: those keys are not verified.
        let false_ = try Member("ann")
        let taken = try SignedReaderList(
            Self.list(circle, readers: [false_.listed(.writes)] + readers.dropFirst()), signedBy: false_.account)
        #expect(throws: ReaderListError.otherOwnerKey) { _ = try circle.checked(taken) }
    }

    @Test("the successor of a list is the next version, with the same secrets and at most one more")
    func successors() throws {
        let circle = try Self.circle()
        let (first, readers) = (circle.newest, circle.newest.readers)
        let known = first.commitments
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
        let second = try first.next(readers: readers, beginning: Self.commitment(1))
        #expect(throws: ReaderListError.epochBack) {
            try Self.list(circle, version: 3, previous: second.digest).check(follows: second)
        }
        let plain = try Self.list(circle, version: 2, previous: first.digest)
        let skipping = try Self.list(
            circle, version: 3, previous: plain.digest, commitments: known + [Self.commitment(1), Self.commitment(2)])
        #expect(throws: ReaderListError.epochSkipped) { try skipping.check(follows: plain) }
    }

    @Test("a removal and a reader's new keys need a new epoch; a change of rights and a new reader do not")
    func removal() throws {
        let circle = try Self.circle()
        let (first, readers) = (circle.newest, circle.newest.readers)
        #expect(throws: ReaderListError.removedWithoutEpoch("ben")) {
            _ = try first.next(readers: [readers[0], readers[2]])
        }
        let renewed = try Member("ben").listed(.writes)
        #expect(throws: ReaderListError.removedWithoutEpoch("ben")) {
            _ = try first.next(readers: [readers[0], renewed, readers[2]])
        }
        _ = try first.next(readers: [readers[0], readers[2]], beginning: Self.commitment(1))
        _ = try first.next(readers: [readers[0], renewed, readers[2]], beginning: Self.commitment(1))
        let ben = ListedReader(user: "ben", keyID: readers[1].keyID, rights: .reads)
        _ = try first.next(readers: [readers[0], ben, readers[2], Member("dora").listed(.reads)])
    }

    @Test("each error has its own code and its own description")
    func errors() {
        let all: [ReaderListError] = [
            .malformed, .badName, .tooMany, .ownerMissing, .twice("ben"), .repeatedSecret(epoch: 1), .otherBucket,
            .unknownOwner, .otherOwnerKey, .badSignature, .notNext, .epochBack, .epochSkipped,
            .changedSecret(epoch: 1), .removedWithoutEpoch("ben"),
        ]
        #expect(Set(all.map(\.code)).count == all.count && Set(all.map(\.description)).count == all.count)
    }
}
