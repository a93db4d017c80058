import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketSharing

@Suite("A device's knowledge of a bucket's readers")
struct SharedBucketReaderTests {
    /// Three lists: one more reader, then one fewer.
    private static func circle() throws -> Circle {
        var circle = try Circle(["ben": .writes])
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        try circle.change(to: ["cleo": .reads], newEpoch: true)
        return circle
    }

    @Test("lists are accepted one by one or together, and each step reports the readers added and removed")
    func steps() throws {
        let circle = try Self.circle()
        var reader = SharedBucketReader(bucket: circle.bucket)
        #expect(reader.newest == nil && reader.version == 0 && reader.list(1) == nil)
        var reported = [SharedBucketReader.Step]()
        for list in circle.lists {
            guard case .accepted(let step) = reader.accept([list], keys: circle.verified) else {
                Issue.record("not taken")
                return
            }
            reported.append(step)
        }
        #expect(reported.map(\.from) == [nil, 1, 2] && reported.map(\.to) == [1, 2, 3])
        #expect(reported.map(\.beganEpoch) == [true, false, true])
        #expect(reported.map { $0.added.map(\.user) } == [["ann", "ben"], ["cleo"], []])
        #expect(reported.map { $0.removed.map(\.user) } == [[], [], ["ben"]])
        #expect(reader == circle.reader() && reader.newest?.list == circle.newest)
        #expect(reader.accept(circle.lists, keys: circle.verified) == .known)
        #expect(reader.accept([], keys: circle.verified) == .known)
        #expect(reader.list(2) == circle.lists[1].list && reader.list(4) == nil && reader.list(0) == nil)
    }

    @Test("a device that has seen a newer list rejects an older one; a new device cannot tell")
    func older() throws {
        let circle = try Self.circle()
        var reader = circle.reader()
        #expect(reader.accept(Array(circle.lists[..<2]), keys: circle.verified) == .older(2))
        #expect(reader.accept([circle.lists[0]], keys: circle.verified) == .older(1))
        #expect(reader.version == 3)
        // A new device accepts what it is shown: ben is in that list, and nothing in it says that he is removed.
        var new = SharedBucketReader(bucket: circle.bucket)
        guard case .accepted = new.accept(Array(circle.lists[..<2]), keys: circle.verified) else {
            Issue.record("not taken")
            return
        }
        #expect(new.newest?.list.reader("ben") != nil)
    }

    @Test("missing lists in between are requested, and nothing is accepted until they are shown")
    func gaps() throws {
        let circle = try Self.circle()
        var reader = SharedBucketReader(bucket: circle.bucket)
        #expect(reader.accept(Array(circle.lists[1...]), keys: circle.verified) == .needs(1...1))
        _ = reader.accept([circle.lists[0]], keys: circle.verified)
        #expect(reader.accept([circle.lists[2]], keys: circle.verified) == .needs(2...2))
        #expect(reader.version == 1)
        #expect(reader.accept([circle.lists[0], circle.lists[2]], keys: circle.verified) == .refused(.notNext))
        guard case .accepted(let step) = reader.accept(Array(circle.lists[1...]), keys: circle.verified) else {
            Issue.record("not taken")
            return
        }
        #expect(step.from == 1 && step.to == 3)
    }

    @Test("two lists of one version are reported as a fork with both lists, and nothing is accepted or sealed after it")
    func forks() throws {
        let circle = try Self.circle()
        let other = try circle.signed(
            circle.lists[0].list.next(readers: circle.lists[0].list.readers + [Member("dora").listed(.reads)]))
        let evidence = ForkedLists(own: circle.lists[1], other: other)
        var reader = circle.reader()
        #expect(reader.accept([circle.lists[0], other], keys: circle.verified) == .forked(evidence))
        #expect(reader.accept(circle.lists, keys: circle.verified) == .forked(evidence))
        // The successor of a list that was never shown here proves the same.
        var later = SharedBucketReader(bucket: circle.bucket)
        _ = later.accept(Array(circle.lists[..<2]), keys: circle.verified)
        let next = try circle.signed(other.list.next(readers: other.list.readers))
        #expect(
            later.accept([next], keys: circle.verified) == .forked(ForkedLists(own: circle.lists[1], other: next)))
        #expect(try SharedBucketReader(saved: later.saved, keys: circle.verified) == later)
        let sealer = try AuthoredSealer(
            serverKey: "k", secrets: circle.secrets, lists: reader, keys: circle.verified,
            writer: AuthoredSealer.Writer(circle.ann.account, device: .init(repeating: 1, count: 8)))
        #expect(!sealer.maySeal)
        #expect(sealer.look(at: [], kind: .operation, position: 0) == .held(.forked))
    }

    @Test("a contradicting list that the owner has not signed is refused, and the device goes on")
    func unsignedForks() throws {
        let circle = try Self.circle()
        let list = try circle.lists[0].list.next(
            readers: circle.lists[0].list.readers + [Member("dora").listed(.reads)])
        let unsigned = try SignedReaderList(parsing: list.bytes + circle.lists[1].signature)
        let next = try SignedReaderList(
            parsing: list.next(readers: list.readers).bytes + circle.lists[1].signature)
        var reader = circle.reader()
        #expect(reader.accept([unsigned], keys: circle.verified) == .refused(.badSignature))
        #expect(reader.fork == nil)
        var older = SharedBucketReader(bucket: circle.bucket)
        _ = older.accept(Array(circle.lists[..<2]), keys: circle.verified)
        #expect(older.accept([next], keys: circle.verified) == .refused(.badSignature))
        guard case .accepted = older.accept(circle.lists, keys: circle.verified) else {
            Issue.record("not taken")
            return
        }
    }

    @Test(
        "lists of an unverified owner's key are refused; after a verified change of keys the new list is accepted")
    func ownersKey() throws {
        var circle = try Circle(["ben": .writes])
        let (old, first) = (circle.verified, circle.lists[0])
        var reader = circle.reader()
        let before = try circle.ann
        let after = try Member("ann")
        let secrets = try circle.secrets.beginning(.random(32))
        let next = try first.list.next(
            readers: [after.listed(.writes), circle.member("ben").listed(.writes)],
            beginning: secrets.commitments.last)
        let signed = try SignedReaderList(next, signedBy: after.account)
        // The keys are not verified as ann's yet.
        #expect(reader.accept([signed], keys: old) == .refused(.otherOwnerKey))
        circle.members["ann"] = after
        let keys = circle.members.mapValues(\.keys)
        let new = VerifiedKeys({ keys[$0] }, past: { (_, id) in id == before.keys.id ? before.keys : nil })
        var copy = reader
        guard case .accepted = reader.accept([signed], keys: new) else {
            Issue.record("not taken")
            return
        }
        // A thief of the earlier key signs nothing new with it.
        let stolen = try SignedReaderList(
            first.list.next(readers: first.list.readers + [Member("eve").listed(.reads)]), signedBy: before.account)
        #expect(copy.accept([stolen], keys: new) == .refused(.otherOwnerKey))
        // Nor does the thief stop a device that has the owner's new list by a seeming fork.
        #expect(reader.accept([stolen], keys: new) == .refused(.otherOwnerKey))
        #expect(reader.fork == nil)
        // The newest list leads a new device to the older ones.
        var fresh = SharedBucketReader(bucket: circle.bucket)
        #expect(fresh.accept([first], keys: new) == .refused(.otherOwnerKey))
        guard case .accepted = fresh.accept([first, signed], keys: new) else {
            Issue.record("not taken")
            return
        }
    }

    @Test("lists of another bucket are refused")
    func others() throws {
        let circle = try Self.circle()
        var other = try Circle([:], bucket: "other")
        other.members = circle.members
        try other.change(to: [:], newEpoch: true)
        var reader = circle.reader()
        #expect(reader.accept(other.lists, keys: circle.verified) == .refused(.otherBucket))
    }
}
