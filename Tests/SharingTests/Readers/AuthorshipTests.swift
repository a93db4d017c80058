import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// Ann owns the bucket, ben writes, cleo reads. Each of them, the server, and an outsider try to insert something.
@Suite("Authorship in a shared bucket", .nonceWatch)
struct AuthorshipTests {
    static let device = [UInt8](repeating: 1, count: 8)
    static let incarnation = [UInt8](repeating: 5, count: 16)

    private static func circle() throws -> Circle { try Circle(["ben": .writes, "cleo": .reads]) }

    private static func look(
        _ circle: Circle, _ sealed: [UInt8], at key: String = "k"
    ) throws -> AuthoredSealer.Look {
        let look = try circle.sealer(of: "ann", key: key).look(
            at: sealed, kind: .operation, position: 0)
        // All readers judge it alike.
        for user in ["ben", "cleo"] where circle.newest.reader(user) != nil {
            #expect(try circle.sealer(of: user, key: key).look(at: sealed, kind: .operation, position: 0) == look)
        }
        return look
    }

    @Test("an operation sealed by a writer of the list counts for every reader, under the writer's name")
    func counts() throws {
        let circle = try Self.circle()
        let forgery = try Forgery(circle)
        let ben = Author(reader: circle.newest.readers[1], device: Self.device, list: 1)
        let text = try forgery.text
        #expect(
            try Self.look(circle, forgery.sealed()) == .counts(ben, id: forgery.id, clear: text), "made by the test")
        let sealer = try circle.sealer(of: "ben")
        let sealed = sealer.seal(
            text, kind: .operation, id: forgery.id, position: 0, nonce: RandomBytes.make(12))
        #expect(try Self.look(circle, sealed) == .counts(ben, id: forgery.id, clear: text))
        #expect(try circle.sealer(of: "cleo").open(sealed, kind: .operation, position: 0)?.clear == text)
        #expect(ben.reader.user == "ben")
    }

    @Test("an operation of a read-only member, under another member's name, of a vacant place or unsigned is refused")
    func others() throws {
        let circle = try Self.circle()
        var forgery = try Forgery(circle)
        // Another member under ben's name; and the owner, which may write, but not as ben.
        for user in ["cleo", "ann"] {
            #expect(try Self.look(circle, forgery.sealed(by: user)) == .refused(.badSignature("ben")))
        }
        // Cleo under her own name: her signature is good, her right is not.
        forgery.place = 2
        forgery.author = Authorship.authorID(keyID: try circle.member("cleo").keys.id, device: Self.device)
        #expect(try Self.look(circle, forgery.sealed(by: "cleo")) == .refused(.mayNotWrite("cleo")))
        #expect(try Self.look(circle, forgery.sealed()) == .refused(.badSignature("cleo")))
        // A place in the list that no reader has.
        for place in [3, 65_535] {
            forgery.place = place
            #expect(try Self.look(circle, forgery.sealed(by: "cleo")) == .refused(.notAReader))
        }
        // Without an author: a value sealed as in a private bucket, and empty or too short ones.
        for clear in [try forgery.text, [], [1], .init(repeating: 1, count: Authorship.bytesCount - 1)] {
            #expect(try Self.look(circle, forgery.raw(clear)) == .refused(.unsigned))
        }
    }

    @Test("the server's inventions do not open: its own bytes, of other keys, of another object")
    func server() throws {
        let circle = try Self.circle()
        var forgery = try Forgery(circle)
        let sealed = try forgery.sealed()
        #expect(try Self.look(circle, sealed, at: "l") == .refused(.doesNotOpen))
        #expect(try Self.look(circle, []) == .refused(.doesNotOpen))
        #expect(try Self.look(circle, .init(repeating: 2, count: 178)) == .refused(.doesNotOpen))
        forgery.secrets = try .init(of: circle.bucket, secret: .random(32))
        #expect(try Self.look(circle, forgery.sealed()) == .refused(.doesNotOpen))
        #expect(
            try circle.sealer(of: "cleo").look(at: sealed, kind: .snapshot, position: 0) == .refused(.doesNotOpen))
        for changed in sealed.flipped where changed[..<22] == sealed[..<22] {
            #expect(try circle.sealer(of: "cleo").open(changed, kind: .operation, position: 0) == nil)
        }
    }

    @Test("an authorship or its text with any bit flipped does not count if a member seals it again")
    func flipped() throws {
        let circle = try Self.circle()
        let forgery = try Forgery(circle)
        let cleo = try circle.sealer(of: "cleo")
        let opened = try #require(
            circle.secrets.keys().sealer(serverKey: "k").open(forgery.sealed(), kind: .operation, position: 0)
        ).clear
        for (bit, changed) in opened.flipped.enumerated() {
            switch cleo.look(at: try forgery.raw(changed), kind: .operation, position: 0) {
            case .refused: break
            // The version of a list that does not exist yet: the device waits, and accepts nothing.
            case .held(.list): #expect((8..<72).contains(bit), "bit \(bit)")
            case .held, .counts: Issue.record("bit \(bit)")
            }
        }
        guard case .counts = cleo.look(at: try forgery.raw(opened), kind: .operation, position: 0) else {
            Issue.record("the same again")
            return
        }
    }

    @Test("a signature is bad for another object, bucket, operation, kind or text")
    func moved() throws {
        let circle = try Self.circle()
        let honest = try Forgery(circle)
        var forgeries = [Forgery](repeating: honest, count: 5)
        forgeries[0].saidKey = "l"
        forgeries[1].saidBucket = try SharedBucket(owner: "ann", app: "notes", bucket: "other")
        forgeries[2].saidID = .init(repeating: 0, count: 16)
        forgeries[3].saidKind = .snapshot
        forgeries[4].saidText = try honest.text + [0x20]
        for (number, forgery) in forgeries.enumerated() {
            #expect(try Self.look(circle, forgery.sealed()) == .refused(.badSignature("ben")), "\(number)")
        }
    }

    @Test("an operation under another account's device id, or naming another list than is signed, is refused")
    func devices() throws {
        let circle = try Self.circle()
        var forgery = try Forgery(circle)
        forgery.author = Authorship.authorID(keyID: try circle.ann.keys.id, device: Self.device)
        #expect(try Self.look(circle, forgery.sealed()) == .refused(.otherDevice("ben")))
        forgery = try .init(circle)
        for list in [0, 2, 1 << 50] {
            forgery.listNamed = list
            #expect(try Self.look(circle, forgery.sealed()) == .refused(.otherList))
        }
        // Nor under rules of the future; if the named list is the signed one, the log decides about the operation.
        for list in [0, 2, 4_096] {
            forgery.other = Array(#"{"t":2,"l":\#(list)}"#.utf8)
            if list == 0 { forgery.other = Array(#"{"t":2}"#.utf8) }
            #expect(try Self.look(circle, forgery.sealed()) == .refused(.otherList))
        }
        forgery.other = Array(#"{"t":2,"l":1}"#.utf8)
        guard case .counts = try Self.look(circle, forgery.sealed()) else {
            Issue.record("newer rules of ben's")
            return
        }
    }

    @Test("an operation of another list or epoch than it names is refused; one of a future list is held")
    func lists() throws {
        let old = try Self.circle()
        var circle = old
        try circle.change(to: ["cleo": .reads, "dora": .writes], newEpoch: true)
        // Ben is removed. What he wrote under his list counts at its position.
        let before = try Forgery(old)
        guard case .counts(let ben, _, _) = try Self.look(circle, before.sealed()) else {
            Issue.record("what was written before is ben's")
            return
        }
        #expect(ben.list == 1 && ben.reader.user == "ben")
        // He names the new list, in his old place or dora's; under the old epoch, since he has no other.
        var late = try Forgery(circle)
        late.secrets = old.secrets
        for place in [1, 2] {
            late.place = place
            #expect(try Self.look(circle, late.sealed()) == .refused(.otherEpoch))
        }
        // An invented list, under the old epoch: no future list is of a past epoch.
        let mine = try ReaderList(
            bucket: circle.bucket, version: 9, previous: Digest256.of([1]), commitments: old.secrets.commitments,
            readers: old.newest.readers)
        late.list = mine
        #expect(try Self.look(circle, late.sealed()) == .refused(.otherEpoch))
        // Another list of an existing version.
        late.list = try old.newest.next(readers: old.newest.readers, beginning: Digest256.of([2]))
        #expect(try Self.look(circle, late.sealed()) == .refused(.otherList))
        // Dora's operation, for a device that has not seen her list: the device waits, and does not discard it.
        var doras = try Forgery(circle)
        doras.place = 2
        doras.author = Authorship.authorID(keyID: try circle.member("dora").keys.id, device: Self.device)
        let sealed = try doras.sealed(by: "dora")
        guard case .counts = try Self.look(circle, sealed) else {
            Issue.record("dora writes")
            return
        }
        let cleo = try old.sealer(of: "cleo")
        #expect(cleo.look(at: sealed, kind: .operation, position: 0) == .held(.epoch(1)))
        let late_ = try AuthoredSealer(
            serverKey: "k", secrets: old.secrets, lists: circle.reader(), keys: circle.verified, writer: nil)
        #expect(late_.look(at: sealed, kind: .operation, position: 0) == .held(.secret(1)))
        let none = try AuthoredSealer(
            serverKey: "k", secrets: circle.secrets, lists: circle.reader(), keys: VerifiedKeys { _ in nil },
            writer: nil)
        let id = try circle.member("dora").keys.id
        #expect(none.look(at: sealed, kind: .operation, position: 0) == .held(.keys(user: "dora", keyID: id)))
    }

    @Test(
        "a snapshot is refused under a newer list than its author's, and at position 0 without its author's list"
    )
    func snapshots() throws {
        let circle = try Self.circle()
        let name = try circle.secrets.keys().serverKey(of: "note")
        let sealer = try circle.sealer(of: "ben", key: name)
        let log = SealedLog(
            place: sealer.place, appKey: "note", incarnation: Self.incarnation, object: ["t": "x"])
        var clear = try #require(
            JSONValue(parsing: SealedSnapshot.clearBytes(of: log), maxDepth: 600).objectValue)
        func look(_ text: [UInt8], at position: Int = 0) throws -> AuthoredSealer.Look {
            let sealed = sealer.seal(
                text, kind: .snapshot, id: RandomBytes.make(16), position: position, nonce: RandomBytes.make(12))
            return try circle.sealer(of: "cleo", key: name).look(at: sealed, kind: .snapshot, position: position)
        }
        for (list, position): (JSONValue?, Int) in [(.none, 7), (.some(1), 7), (.some(1), 0)] {
            clear["l"] = list
            guard case .counts(let author, _, _) = try look(JSONValue.object(clear).serialized(), at: position) else {
                Issue.record("ben's")
                return
            }
            #expect(author.reader.user == "ben")
        }
        clear.remove("l")
        #expect(try look(JSONValue.object(clear).serialized()) == .refused(.otherList), "it begins before all lists")
        clear["l"] = 2
        #expect(try look(JSONValue.object(clear).serialized()) == .refused(.otherList))
        #expect(try look([0x7B]) == .refused(.otherList))
    }

    @Test("a device seals only with the right to write in the newest list and with its secret")
    func sealing() throws {
        let old = try Self.circle()
        var circle = old
        #expect(try circle.sealer(of: "ann").maySeal && circle.sealer(of: "ben").maySeal)
        #expect(try !circle.sealer(of: "cleo").maySeal)
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: true)
        // Ben knows the new list, and has not opened its secret yet.
        let writer = try AuthoredSealer.Writer(circle.member("ben").account, device: Self.device)
        let early = try AuthoredSealer(
            serverKey: "k", secrets: old.secrets, lists: circle.reader(), keys: circle.verified, writer: writer)
        #expect(!early.maySeal)
        #expect(try circle.sealer(of: "ben").maySeal)
        try circle.change(to: ["ben": .reads, "cleo": .reads], newEpoch: false)
        #expect(try !circle.sealer(of: "ben").maySeal)
        #expect(throws: SharingError.outOfBounds) {
            _ = try AuthoredSealer.Writer(circle.ann.account, device: [1, 2])
        }
        #expect(throws: SharingError.otherBucket) {
            _ = try AuthoredSealer(
                serverKey: "k", secrets: Circle([:], bucket: "other").secrets, lists: circle.reader(),
                keys: circle.verified, writer: nil)
        }
    }

    @Test("a sealer cannot be made with a secret to which the list does not commit")
    func otherSecrets() throws {
        let circle = try Self.circle()
        #expect(throws: SharingError.notCommitted(epoch: 0)) {
            _ = try AuthoredSealer(
                serverKey: "k", secrets: BucketSecrets(of: circle.bucket, secret: .random(32)), lists: circle.reader(),
                keys: circle.verified, writer: nil)
        }
    }

    @Test(
        "an object seals nothing with a writer that is not its author, since it would not count; the edit stays")
    func otherWriter() throws {
        let circle = try Self.circle()
        let sealer = try circle.sealer(of: "ben")
        let ben = Authorship.authorID(keyID: try circle.member("ben").keys.id, device: Self.device)
        let log = SealedLog(
            place: sealer.place, appKey: "note", incarnation: Self.incarnation, object: ["t": "x"])
        for (author, isSealed) in [(ben, true), (.init(rawValue: 1), false)] {
            var object = SharedObject(SealedObject(author: author, log: log))
            try object.edit(ObjectDiff([(key: "n", operation: .insert(1))]), with: sealer)
            let made = object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
            #expect((made != nil) == isSealed && object.object.hasEdits)
        }
    }

    @Test("one typed character is at most 640 bytes on the wire in a shared bucket, whatever the object's size")
    func oneCharacter() throws {
        let circle = try Self.circle()
        let name = try circle.secrets.keys().serverKey(of: "note")
        let typing = TextDelta([.retain(9_999_999), .insert([0x61])])
        let text = SealedOperation(
            base: 999_999, head: try #require(Head(RandomBytes.make(16))), incarnation: .max,
            author: .init(rawValue: .max), list: 4_096,
            content: .edit(try Edit(.object(ObjectDiff([(key: "content", operation: .text(typing))]))))
        ).clearBytes()
        let sealed = try circle.sealer(of: "ben", key: name).seal(
            text, kind: .operation, id: RandomBytes.make(16), position: 0, nonce: RandomBytes.make(12))
        var writer = JSONWriter()
        ChangeRequest(
            key: name, ccid: String(repeating: "0", count: 32), operation: .modify, sv: 1_000_000,
            diff: .value(SealedEntity.insertion(Base64.encodeURL(sealed)).json)
        ).write(to: &writer)
        #expect(writer.bytes.count + "0:c:".utf8.count <= 640, "\(writer.bytes.count)")
    }
}
