import Testing
import ThicketCrypto
import ThicketTestSupport

@testable import ThicketSharing

@Suite("What a device knows of a bucket's readers")
struct SharedBucketReaderTests {
    /// Three lists: one more reader, then one fewer.
    private static func circle() throws -> Circle {
        var circle: Circle = try Circle(["ben": .writes])
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        try circle.change(to: ["cleo": .reads], newEpoch: true)
        return circle
    }

    @Test("lists are taken one by one or together, and each step tells who came and who went")
    func steps() throws {
        let circle: Circle = try Self.circle()
        var reader: SharedBucketReader = .init(bucket: circle.bucket)
        #expect(reader.newest == nil && reader.version == 0 && reader.list(1) == nil)
        var told: [SharedBucketReader.Step] = []
        for list: SignedReaderList in circle.lists {
            guard case .accepted(let step) = reader.accept([list], keys: circle.verified) else {
                Issue.record("not taken")
                return
            }
            told.append(step)
        }
        #expect(told.map(\.from) == [nil, 1, 2] && told.map(\.to) == [1, 2, 3])
        #expect(told.map(\.beganEpoch) == [true, false, true])
        #expect(told.map { $0.added.map(\.user) } == [["ann", "ben"], ["cleo"], []])
        #expect(told.map { $0.removed.map(\.user) } == [[], [], ["ben"]])
        #expect(reader == circle.reader() && reader.newest?.list == circle.newest)
        #expect(reader.accept(circle.lists, keys: circle.verified) == .known)
        #expect(reader.accept([], keys: circle.verified) == .known)
        #expect(reader.list(2) == circle.lists[1].list && reader.list(4) == nil && reader.list(0) == nil)
    }

    @Test("an older list is not taken by a device that has seen a newer one; a new device cannot tell")
    func older() throws {
        let circle: Circle = try Self.circle()
        var reader: SharedBucketReader = circle.reader()
        #expect(reader.accept(Array(circle.lists[..<2]), keys: circle.verified) == .older(2))
        #expect(reader.accept([circle.lists[0]], keys: circle.verified) == .older(1))
        #expect(reader.version == 3)
        // What a new device is shown it takes: ben stands in it, and nothing here says that he is removed.
        var new: SharedBucketReader = .init(bucket: circle.bucket)
        guard case .accepted = new.accept(Array(circle.lists[..<2]), keys: circle.verified) else {
            Issue.record("not taken")
            return
        }
        #expect(new.newest?.list.reader("ben") != nil)
    }

    @Test("what lies between is asked for, and nothing is taken until it is shown")
    func gaps() throws {
        let circle: Circle = try Self.circle()
        var reader: SharedBucketReader = .init(bucket: circle.bucket)
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

    @Test("two lists of one version: told with both, and nothing is taken or sealed any more")
    func forks() throws {
        let circle: Circle = try Self.circle()
        let other: SignedReaderList = try circle.signed(
            circle.lists[0].list.next(readers: circle.lists[0].list.readers + [Member("dora").listed(.reads)]))
        let evidence: ForkedLists = .init(own: circle.lists[1], other: other)
        var reader: SharedBucketReader = circle.reader()
        #expect(reader.accept([circle.lists[0], other], keys: circle.verified) == .forked(evidence))
        #expect(reader.accept(circle.lists, keys: circle.verified) == .forked(evidence))
        // The next one of a list that was never shown here says the same.
        var later: SharedBucketReader = .init(bucket: circle.bucket)
        _ = later.accept(Array(circle.lists[..<2]), keys: circle.verified)
        let next: SignedReaderList = try circle.signed(other.list.next(readers: other.list.readers))
        #expect(
            later.accept([next], keys: circle.verified) == .forked(ForkedLists(own: circle.lists[1], other: next)))
        #expect(try SharedBucketReader(saved: later.saved, keys: circle.verified) == later)
        let sealer: AuthoredSealer = try .init(
            serverKey: "k", secrets: circle.secrets, lists: reader, keys: circle.verified,
            writer: AuthoredSealer.Writer(circle.ann.account, device: .init(repeating: 1, count: 8)))
        #expect(!sealer.maySeal)
        #expect(sealer.look(at: [], kind: .operation, position: 0) == .held(.forked))
    }

    @Test("a contradiction that the owner has not signed proves nothing: refused, and the device goes on")
    func unsignedForks() throws {
        let circle: Circle = try Self.circle()
        let list: ReaderList = try circle.lists[0].list.next(
            readers: circle.lists[0].list.readers + [Member("dora").listed(.reads)])
        let unsigned: SignedReaderList = try .init(parsing: list.bytes + circle.lists[1].signature)
        let next: SignedReaderList = try .init(
            parsing: list.next(readers: list.readers).bytes + circle.lists[1].signature)
        var reader: SharedBucketReader = circle.reader()
        #expect(reader.accept([unsigned], keys: circle.verified) == .refused(.badSignature))
        #expect(reader.fork == nil)
        var older: SharedBucketReader = .init(bucket: circle.bucket)
        _ = older.accept(Array(circle.lists[..<2]), keys: circle.verified)
        #expect(older.accept([next], keys: circle.verified) == .refused(.badSignature))
        guard case .accepted = older.accept(circle.lists, keys: circle.verified) else {
            Issue.record("not taken")
            return
        }
    }

    @Test(
        "the owner's key replaced: lists of another key are refused; after a true change the owner's new list is taken")
    func ownersKey() throws {
        var circle: Circle = try Circle(["ben": .writes])
        let (old, first): (VerifiedKeys, SignedReaderList) = (circle.verified, circle.lists[0])
        var reader: SharedBucketReader = circle.reader()
        let before: Member = try circle.ann
        let after: Member = try Member("ann")
        let secrets: BucketSecrets = try circle.secrets.beginning(.random(32))
        let next: ReaderList = try first.list.next(
            readers: [after.listed(.writes), circle.member("ben").listed(.writes)],
            beginning: secrets.commitments.last)
        let signed: SignedReaderList = try .init(next, signedBy: after.account)
        // As long as nobody has verified that these are ann's keys.
        #expect(reader.accept([signed], keys: old) == .refused(.otherOwnerKey))
        circle.members["ann"] = after
        let keys: [String: PublicKeys] = circle.members.mapValues(\.keys)
        let new: VerifiedKeys = .init({ keys[$0] }, past: { (_, id) in id == before.keys.id ? before.keys : nil })
        var copy: SharedBucketReader = reader
        guard case .accepted = reader.accept([signed], keys: new) else {
            Issue.record("not taken")
            return
        }
        // Whoever has stolen the key of before signs nothing new with it.
        let stolen: SignedReaderList = try .init(
            first.list.next(readers: first.list.readers + [Member("eve").listed(.reads)]), signedBy: before.account)
        #expect(copy.accept([stolen], keys: new) == .refused(.otherOwnerKey))
        // Nor stops a device that has the owner's new list, as if the owner had signed two.
        #expect(reader.accept([stolen], keys: new) == .refused(.otherOwnerKey))
        #expect(reader.fork == nil)
        // A new device is led by the newest list to the older ones.
        var fresh: SharedBucketReader = .init(bucket: circle.bucket)
        #expect(fresh.accept([first], keys: new) == .refused(.otherOwnerKey))
        guard case .accepted = fresh.accept([first, signed], keys: new) else {
            Issue.record("not taken")
            return
        }
    }

    @Test("another bucket's lists are not this one's")
    func others() throws {
        let circle: Circle = try Self.circle()
        var other: Circle = try Circle([:], bucket: "other")
        other.members = circle.members
        try other.change(to: [:], newEpoch: true)
        var reader: SharedBucketReader = circle.reader()
        #expect(reader.accept(other.lists, keys: circle.verified) == .refused(.otherBucket))
    }
}
