import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// An attacker without any key, or a reader, names a list or an epoch that the owner has never made. Only the owner's
/// devices can tell that from a list that is withheld from them (decision 0067).
@Suite("Invented lists and epochs", .nonceWatch)
struct InventedListTests {
    private static let ann = 0, ben: Int = 1, cleo: Int = 2

    /// A list of the owner's bucket that the owner has not signed.
    private static func invented(_ circle: Circle, version: UInt64) throws -> ReaderList {
        try ReaderList(
            bucket: circle.bucket, version: version, previous: Digest256.of([1]),
            commitments: circle.secrets.commitments, readers: circle.newest.readers)
    }

    /// What an attacker with a login and without a key can make.
    private static func keyless(like honest: [UInt8], epoch: UInt32) -> [UInt8] {
        var bytes = SealedHeader.bytes(like: honest) + RandomBytes.make(156)
        bytes.replaceSubrange(2..<6, with: epoch.octets)
        return bytes
    }

    @Test(
        "an invented epoch or list holds all devices until the owner's snapshot; then all are equal, nothing lost",
        arguments: [false, true], [1, 2, 3] as [UInt64])
    func ended(isReader: Bool, seed: UInt64) throws {
        var world = try SharedWorld(
            seed: seed, Circle(["ben": .writes, "cleo": .reads, "dora": .writes], seed: seed))
        for user in ["ann", "ben", "cleo"] { try world.join(user) }
        try world.play(40, among: [Self.ann, Self.ben, Self.cleo])
        try world.settle([Self.ann, Self.ben, Self.cleo])
        let honest = try #require(world.server.stored.last { $0.kind == .operation }).bytes
        world.put(
            isReader
                ? try world.written(
                    by: "cleo", under: Self.invented(world.circle, version: 4_096), with: world.circle.secrets,
                    letter: 0x63)
                : Self.keyless(like: honest, epoch: 1_023))
        for one in [Self.ann, Self.ben] { try world.type(one) }
        for _ in 0..<8 { try world.send(Self.ben) }
        let hold: SharedHold = isReader ? .list(4_096) : .epoch(1_023)
        for one in [Self.ann, Self.ben, Self.cleo] {
            try world.receive(one, atMost: .max)
            try world.reread(one)
            #expect(world.devices[one].hold == hold)
            #expect(try (world.sealer(one).knowingNewest == nil) == (one != Self.ann))
        }
        #expect(throws: SharedOpenError.held(hold)) { try world.join("dora") }
        try world.reread(Self.ann, with: world.sealer(Self.ann).knowingNewest)
        #expect(world.devices[Self.ann].uncounted == [.noSuchList(isReader ? "cleo" : nil)])
        try world.compact(Self.ann)
        for one in [Self.ben, Self.cleo] { try world.reread(one) }
        try world.join("dora")
        try world.settle([Self.ann, Self.ben, Self.cleo, 3])
        try world.checkEqual([Self.ann, Self.ben, Self.cleo, 3])
        // A list and an epoch that the owner really makes are accepted as usual.
        try world.circle.change(to: ["ben": .writes, "dora": .writes], newEpoch: true)
        for one in [Self.ann, Self.ben, 3] { try world.refresh(one) }
        try world.mark(Self.ann)
        try world.play(30, among: [Self.ann, Self.ben, 3])
        try world.settle([Self.ann, Self.ben, 3])
        try world.checkEqual([Self.ann, Self.ben, 3])
        #expect(world.devices[3].object.object.log.list == 2)
    }

    @Test(
        "the owner's knowledge of the newest list refuses invented lists and epochs, and changes no other check"
    )
    func ownersWord() throws {
        let old = try Circle(["ben": .writes, "cleo": .reads])
        var circle = old
        let ann = try #require(try circle.sealer(of: "ann").knowingNewest)
        var forgery = try Forgery(circle)
        func look(_ sealed: [UInt8]) -> AuthoredSealer.Look { ann.look(at: sealed, kind: .operation, position: 0) }
        guard case .counts = try look(forgery.sealed()) else {
            Issue.record("ben's")
            return
        }
        // The inventor of a list is named if a reader of the newest list has signed it.
        forgery.list = try Self.invented(circle, version: 9)
        #expect(try look(forgery.sealed()) == .refused(.noSuchList("ben")))
        forgery.place = 2
        #expect(try look(forgery.sealed(by: "cleo")) == .refused(.noSuchList("cleo")))
        #expect(try look(forgery.sealed(by: "ann")) == .refused(.noSuchList(nil)), "under cleo's name")
        let snapshot = [1, 1, 0, 0, 3, 255] + RandomBytes.make(172)
        #expect(ann.look(at: snapshot, kind: .snapshot, position: 0) == .refused(.noSuchList(nil)))
        #expect(
            try circle.sealer(of: "ann").look(at: snapshot, kind: .snapshot, position: 0) == .held(.epoch(1_023)))
        // Unverified keys are still lacking.
        let own = try circle.ann.keys
        let alone = try AuthoredSealer(
            serverKey: "k", secrets: circle.secrets, lists: circle.reader(),
            keys: VerifiedKeys { $0 == "ann" ? own : nil },
            writer: AuthoredSealer.Writer(circle.ann.account, device: AuthorshipTests.device))
        let id = try circle.member("ben").keys.id
        #expect(
            try alone.knowingNewest?.look(at: Forgery(circle).sealed(), kind: .operation, position: 0)
                == .held(.keys(user: "ben", keyID: id)))
        // An owner's device that has not opened the secret of the newer list cannot tell.
        try circle.change(to: ["cleo": .reads], newEpoch: true)
        let early = try AuthoredSealer(
            serverKey: "k", secrets: old.secrets, lists: circle.reader(), keys: circle.verified,
            writer: AuthoredSealer.Writer(circle.ann.account, device: AuthorshipTests.device))
        #expect(early.knowingNewest == nil)
    }
}
