import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketSharing

/// A device keeps its knowledge of a bucket's readers, and does not trust its store, into which others may write.
@Suite("A device checks its kept knowledge of a bucket's readers")
struct KeptListsTests {
    /// Three lists: one more reader, then one fewer.
    private static func circle() throws -> Circle {
        var circle = try Circle(["ben": .writes])
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        try circle.change(to: ["cleo": .reads], newEpoch: true)
        return circle
    }

    private static func restored(_ reader: SharedBucketReader, _ circle: Circle) throws -> SharedBucketReader {
        try SharedBucketReader(saved: reader.saved, keys: circle.verified)
    }

    @Test("the kept state is restored; a state that was cut, reordered or of another bucket is refused")
    func saved() throws {
        let circle = try Self.circle()
        let reader = circle.reader()
        #expect(try Self.restored(reader, circle) == reader)
        let empty = SharedBucketReader(bucket: circle.bucket)
        #expect(try Self.restored(empty, circle) == empty)
        let bytes = reader.saved
        for count in bytes.indices {
            #expect(throws: ReaderListError.self) {
                _ = try SharedBucketReader(saved: Array(bytes.prefix(count)), keys: circle.verified)
            }
        }
        #expect(throws: ReaderListError.malformed) {
            _ = try SharedBucketReader(saved: bytes + [0], keys: circle.verified)
        }
        var swapped = reader
        swapped.lists.swapAt(1, 2)
        #expect(throws: ReaderListError.notNext) { _ = try Self.restored(swapped, circle) }
        swapped.lists = Array(reader.lists[1...])
        #expect(throws: ReaderListError.notNext) { _ = try Self.restored(swapped, circle) }
        swapped.lists = try Circle([:], bucket: "other").lists
        #expect(throws: ReaderListError.otherBucket) { _ = try Self.restored(swapped, circle) }
    }

    @Test("a kept state with any bit flipped is refused or still gives the same lists")
    func flipped() throws {
        let circle = try Self.circle()
        let reader: SharedBucketReader = circle.reader()
        for bytes in reader.saved.flipped {
            guard let read: SharedBucketReader = try? .init(saved: bytes, keys: circle.verified) else { continue }
            #expect(read.lists.map(\.list) == reader.lists.map(\.list) && read.fork == nil)
        }
    }

    @Test("foreign lists in the store are refused, also behind the owner's own")
    func foreign() throws {
        let circle = try Self.circle()
        let eve = try Member("eve")
        let mine = try circle.newest.next(
            readers: circle.newest.readers + [ListedReader(eve.keys, .writes)])
        let signatures = [
            circle.lists[2].signature, .init(repeating: 0, count: 64),
            try eve.account.identity.signature(
                for: .readers, [Array("ann".utf8), Array(circle.ann.keys.id.utf8), mine.digest.bytes]),
        ]
        for signature in signatures {
            var reader = circle.reader()
            reader.lists.append(try SignedReaderList(parsing: mine.bytes + signature))
            #expect(throws: ReaderListError.badSignature) { _ = try Self.restored(reader, circle) }
        }
        // A list of a bucket that eve presents as ann's, with keys that she presents as ann's.
        var forged = try Circle(["eve": .writes])
        forged.members["eve"] = eve
        #expect(throws: ReaderListError.badSignature) { _ = try Self.restored(forged.reader(), circle) }
    }

    @Test("the owner's unverified keys prove nothing; earlier keys that were verified still do")
    func ownersKeys() throws {
        var circle = try Self.circle()
        let reader = circle.reader()
        #expect(throws: ReaderListError.badSignature) {
            _ = try SharedBucketReader(saved: reader.saved, keys: VerifiedKeys { _ in nil })
        }
        try circle.changeKeys(of: "ann")
        #expect(try Self.restored(reader, circle) == reader, "the list with the new keys has not been seen here")
        var later = reader
        guard case .accepted = later.accept(circle.lists, keys: circle.verified) else {
            Issue.record("not taken")
            return
        }
        #expect(try Self.restored(later, circle) == later)
    }

    @Test("a kept fork of two lists signed by the owner is restored; a fork without the owner's signature is refused")
    func forks() throws {
        let circle = try Self.circle()
        var reader = circle.reader()
        let first = circle.lists[0].list
        let list = try first.next(readers: first.readers + [Member("dora").listed(.reads)])
        let other = try circle.signed(list)
        _ = reader.accept([circle.lists[0], other], keys: circle.verified)
        #expect(reader.fork != nil)
        #expect(try Self.restored(reader, circle) == reader)
        let unsigned = try SignedReaderList(parsing: list.bytes + circle.lists[1].signature)
        let next = try circle.signed(circle.newest.next(readers: circle.newest.readers))
        let accusations = [
            ForkedLists(own: circle.lists[1], other: unsigned), ForkedLists(own: other, other: circle.lists[1]),
            ForkedLists(own: circle.lists[1], other: circle.lists[1]),
            ForkedLists(own: circle.lists[1], other: circle.lists[2]), ForkedLists(own: circle.lists[2], other: next),
        ]
        for fork in accusations {
            reader.fork = fork
            #expect(throws: ReaderListError.badSignature) { _ = try Self.restored(reader, circle) }
        }
    }

    @Test(
        "the evidence of a fork is a list that verifies, also if the first contradicting list has unverified keys"
    )
    func evidence() throws {
        let circle = try Circle(["ben": .writes])
        let (before, after) = (try circle.ann, try Member("ann"))
        let first = circle.newest
        var known = circle.reader()
        var secrets = try circle.secrets.beginning(.random(32))
        let second = try first.next(
            readers: [after.listed(.writes), circle.member("ben").listed(.writes)],
            beginning: secrets.commitments.last)
        let keys = VerifiedKeys { $0 == "ann" ? after.keys : nil }
        let taken = known.accept(
            [try SignedReaderList(second, signedBy: after.account)], keys: keys)
        guard case .accepted = taken else {
            Issue.record("\(taken)")
            return
        }
        // Another line: its second list is signed with the earlier keys, its third with the present ones.
        let other = try SignedReaderList(first.next(readers: first.readers), signedBy: before.account)
        secrets = try circle.secrets.beginning(.random(32))
        let newest = try SignedReaderList(
            other.list.next(readers: second.readers, beginning: secrets.commitments.last), signedBy: after.account)
        #expect(
            known.accept([other, newest], keys: keys)
                == .forked(ForkedLists(own: known.lists[1], other: newest)))
        #expect(try SharedBucketReader(saved: known.saved, keys: keys) == known)
    }
}
