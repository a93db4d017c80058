import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketSharing

/// A device keeps what it knows of a bucket's readers. Whoever can write into its store is not believed for it.
@Suite("What a device has kept of a bucket's readers is looked at again")
struct KeptListsTests {
    /// Three lists: one more reader, then one fewer.
    private static func circle() throws -> Circle {
        var circle: Circle = try Circle(["ben": .writes])
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        try circle.change(to: ["cleo": .reads], newEpoch: true)
        return circle
    }

    private static func restored(_ reader: SharedBucketReader, _ circle: Circle) throws -> SharedBucketReader {
        try SharedBucketReader(saved: reader.saved, keys: circle.verified)
    }

    @Test("it is kept and restored; a state that was cut, changed in its order or of another bucket is none")
    func saved() throws {
        let circle: Circle = try Self.circle()
        let reader: SharedBucketReader = circle.reader()
        #expect(try Self.restored(reader, circle) == reader)
        let empty: SharedBucketReader = .init(bucket: circle.bucket)
        #expect(try Self.restored(empty, circle) == empty)
        let bytes: [UInt8] = reader.saved
        for count: Int in bytes.indices {
            #expect(throws: ReaderListError.self) {
                _ = try SharedBucketReader(saved: Array(bytes.prefix(count)), keys: circle.verified)
            }
        }
        #expect(throws: ReaderListError.malformed) {
            _ = try SharedBucketReader(saved: bytes + [0], keys: circle.verified)
        }
        var swapped: SharedBucketReader = reader
        swapped.lists.swapAt(1, 2)
        #expect(throws: ReaderListError.notNext) { _ = try Self.restored(swapped, circle) }
        swapped.lists = Array(reader.lists[1...])
        #expect(throws: ReaderListError.notNext) { _ = try Self.restored(swapped, circle) }
        swapped.lists = try Circle([:], bucket: "other").lists
        #expect(throws: ReaderListError.otherBucket) { _ = try Self.restored(swapped, circle) }
    }

    @Test("with any bit of it flipped it is refused, or an older signature of a list in between: never another list")
    func flipped() throws {
        let circle: Circle = try Self.circle()
        let reader: SharedBucketReader = circle.reader()
        for bytes: [UInt8] in reader.saved.flipped {
            guard let read: SharedBucketReader = try? .init(saved: bytes, keys: circle.verified) else { continue }
            #expect(read.lists.map(\.list) == reader.lists.map(\.list) && read.fork == nil)
        }
    }

    @Test("lists that somebody else has put into the store are refused, also behind the owner's own")
    func foreign() throws {
        let circle: Circle = try Self.circle()
        let eve: Member = try Member("eve")
        let mine: ReaderList = try circle.newest.next(
            readers: circle.newest.readers + [ListedReader(eve.keys, .writes)])
        let signatures: [[UInt8]] = [
            circle.lists[2].signature, .init(repeating: 0, count: 64),
            try eve.account.identity.signature(
                for: .readers, [Array("ann".utf8), Array(circle.ann.keys.id.utf8), mine.digest.bytes]),
        ]
        for signature: [UInt8] in signatures {
            var reader: SharedBucketReader = circle.reader()
            reader.lists.append(try SignedReaderList(parsing: mine.bytes + signature))
            #expect(throws: ReaderListError.badSignature) { _ = try Self.restored(reader, circle) }
        }
        // A list of a bucket that eve calls ann's, with keys that she calls ann's.
        var forged: Circle = try Circle(["eve": .writes])
        forged.members["eve"] = eve
        #expect(throws: ReaderListError.badSignature) { _ = try Self.restored(forged.reader(), circle) }
    }

    @Test("keys of the owner that nobody has verified prove nothing; those of before that were verified still do")
    func ownersKeys() throws {
        var circle: Circle = try Self.circle()
        let reader: SharedBucketReader = circle.reader()
        #expect(throws: ReaderListError.badSignature) {
            _ = try SharedBucketReader(saved: reader.saved, keys: VerifiedKeys { _ in nil })
        }
        try circle.changeKeys(of: "ann")
        #expect(try Self.restored(reader, circle) == reader, "the list with the new keys has not been seen here")
        var later: SharedBucketReader = reader
        guard case .accepted = later.accept(circle.lists, keys: circle.verified) else {
            Issue.record("not taken")
            return
        }
        #expect(try Self.restored(later, circle) == later)
    }

    @Test("two lists that the owner has signed stay told; two that the owner has not are no accusation, and refused")
    func forks() throws {
        let circle: Circle = try Self.circle()
        var reader: SharedBucketReader = circle.reader()
        let first: ReaderList = circle.lists[0].list
        let list: ReaderList = try first.next(readers: first.readers + [Member("dora").listed(.reads)])
        let other: SignedReaderList = try circle.signed(list)
        _ = reader.accept([circle.lists[0], other], keys: circle.verified)
        #expect(reader.fork != nil)
        #expect(try Self.restored(reader, circle) == reader)
        let unsigned: SignedReaderList = try .init(parsing: list.bytes + circle.lists[1].signature)
        let next: SignedReaderList = try circle.signed(circle.newest.next(readers: circle.newest.readers))
        let accusations: [ForkedLists] = [
            ForkedLists(own: circle.lists[1], other: unsigned), ForkedLists(own: other, other: circle.lists[1]),
            ForkedLists(own: circle.lists[1], other: circle.lists[1]),
            ForkedLists(own: circle.lists[1], other: circle.lists[2]), ForkedLists(own: circle.lists[2], other: next),
        ]
        for fork: ForkedLists in accusations {
            reader.fork = fork
            #expect(throws: ReaderListError.badSignature) { _ = try Self.restored(reader, circle) }
        }
    }

    @Test(
        "the evidence of a fork is a list that verifies, also where the first that contradicts has keys that nobody has verified"
    )
    func evidence() throws {
        let circle: Circle = try Circle(["ben": .writes])
        let (before, after): (Member, Member) = (try circle.ann, try Member("ann"))
        let first: ReaderList = circle.newest
        var known: SharedBucketReader = circle.reader()
        var secrets: BucketSecrets = try circle.secrets.beginning(.random(32))
        let second: ReaderList = try first.next(
            readers: [after.listed(.writes), circle.member("ben").listed(.writes)],
            beginning: secrets.commitments.last)
        let keys: VerifiedKeys = .init { $0 == "ann" ? after.keys : nil }
        let taken: SharedBucketReader.Verdict = known.accept(
            [try SignedReaderList(second, signedBy: after.account)], keys: keys)
        guard case .accepted = taken else {
            Issue.record("\(taken)")
            return
        }
        // Another line: its second list is signed with the keys of before, its third with those of today.
        let other: SignedReaderList = try .init(first.next(readers: first.readers), signedBy: before.account)
        secrets = try circle.secrets.beginning(.random(32))
        let newest: SignedReaderList = try .init(
            other.list.next(readers: second.readers, beginning: secrets.commitments.last), signedBy: after.account)
        #expect(
            known.accept([other, newest], keys: keys)
                == .forked(ForkedLists(own: known.lists[1], other: newest)))
        #expect(try SharedBucketReader(saved: known.saved, keys: keys) == known)
    }
}
