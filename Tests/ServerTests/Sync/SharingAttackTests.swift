import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

@Suite("Shared branches: attacks by accounts")
struct SharingAttackTests {
    private let people: TestDirectory

    init() throws { people = try TestDirectory(TestShard.ann, "ben", "cleo", "dora") }

    /// Ann shares node 10, with 11 below it, with ben; node 1 is private, and 20 is the root of cleo's branch.
    private func shared(_ letters: String = "rw", sharers: [String] = []) throws -> TestShard {
        let shard = try TestShard.tree(.disk)
        try shard.make(1, TestShard.put(1, "n1"), TestShard.put(10, "n10"), TestShard.put(20, "n20"))
        let list = try people.list(["ben": letters], on: 10, sharers: sharers)
        let reply = try shard.make(
            2, people, people.put(10, sv: 1, list: list), people.put(11, below: 10),
            people.put(20, sv: 1, list: people.list(["cleo": "rw"], on: 20)))
        #expect(reply.results.count == 3, "\(reply)")
        return shard
    }

    @Test("A9: a stranger gets one answer: of a branch, a missing one, a missing node, and a tree without lists")
    func strangers() throws {
        let shard = try shared()
        var (replies, id) = ([BatchReply](), 100)
        for (name, root) in [("dora", 10), ("dora", 1), ("dora", 77), ("ben", 20), ("cleo", 10), ("ben", 11)] {
            for operation in try [
                people.put(30, by: name, below: root), people.put(11, by: name, below: 10, sv: 1),
                TestShard.delete(11, sv: 1), TestShard.delete(77, sv: 1),
                TestShard.deleteTree(10, sv: 2, unknown: true),
            ] {
                id += 1
                replies.append(try shard.make(id, by: name, in: root, people, operation))
            }
        }
        let empty = try TestShard.tree(.disk)
        replies.append(try empty.make(1, by: "dora", in: 10, people, people.put(30, by: "dora", below: 10)))
        let plain = try TestShard(.disk, name: BucketMode.treeName)
        replies.append(try plain.make(1, by: "dora", in: 10, people, people.put(30, by: "dora", below: 10)))
        for reply in replies {
            #expect(reply.reason == .permission && reply.code == 401, "\(reply)")
            #expect(reply.refused?.detail == replies[0].refused?.detail)
        }
        #expect(try shard.numbers() == [1, 10, 11, 20])
    }

    @Test("A9: a member reaches nothing outside of its branch, and no other tree through it")
    func outside() throws {
        let shard = try shared()
        #expect(try shard.make(3, by: "ben", in: 10, people, TestShard.delete(1, sv: 1)).reason == .nodeMissing)
        #expect(
            try shard.make(4, by: "ben", in: 10, people, TestShard.deleteTree(20, sv: 2, unknown: true)).reason
                == .nodeMissing)
        let out = try people.put(11, by: "ben", sv: 1)
        #expect(try shard.make(5, by: "ben", in: 10, people, out).reason == .parentMissing)
        let into = try people.put(12, by: "ben", below: 20)
        #expect(try shard.make(6, by: "ben", in: 10, people, into).reason == .parentMissing)
        let over = try people.put(1, by: "ben", below: 10)
        let reply = try shard.make(7, by: "ben", in: 10, people, over)
        #expect(reply.reason == .repeated && reply.refused?.tree?.current == nil)
        let copy = try people.copy(2, from: "ben", to: "dora")
        #expect(try shard.make(8, by: "ben", in: 10, people, copy).reason == .blocked)
        #expect(
            try shard.make(9, by: "ben", in: 10, people, .burn(NodeText.id(2), to: UserID("dora"))).reason
                == .nodeMissing)
        #expect(try shard.make(10, by: "ben", in: 10, people, TestShard.delete(10, sv: 2)).reason == .permission)
        #expect(try shard.numbers() == [1, 10, 11, 20])
    }

    @Test("A8: a record in a branch is signed by its author, with its newest keys, for this tree")
    func signatures() throws {
        let shard = try shared()
        let older = try TestDirectory(TestShard.ann, "ben")
        guard case .put(let node, _, var unsigned) = try people.put(30, by: "ben", below: 10) else { return }
        unsigned.signature = nil
        let forged: [TreeOperation] = [
            .put(node, source: 0, unsigned), try people.put(30, by: "cleo", below: 10),
            try people.put(30, by: "mallory", below: 10), try older.put(30, by: "ben", below: 10),
            try people.put(30, by: TestShard.ann, below: 10),
        ]
        for (index, operation) in forged.enumerated() {
            let reply = try shard.make(100 + index, by: "ben", in: 10, people, operation)
            #expect(reply.reason == .signature && reply.code == 401 && reply.operation == 0, "\(index)")
        }
        // A server without a key log verifies nothing.
        #expect(try shard.make(200, by: "ben", in: 10, nil, people.put(30, by: "ben", below: 10)).reason == .signature)
        #expect(try shard.make(201, nil, people.put(30, below: 10)).reason == .signature)
        // The owner's own records, too; ben's record is not the owner's.
        #expect(try shard.make(202, people, people.put(30, by: "ben", below: 10)).reason == .signature)
        #expect(try shard.make(203, TestShard.put(30, below: .child(10), "n30")).reason == .signature)
    }

    @Test("A10: a list that is forged, for another root, replayed, without a grant, or raising letters is refused")
    func lists() throws {
        let shard = try shared("rws", sharers: ["ben"])
        let before = try #require(try shard.list(on: 10))
        var forged = try people.list(["ben": "rws"], on: 10, after: before, sharers: ["ben"])
        forged.members[0].permissions = .read
        var grantless = try people.list(["ben": "rws"], on: 10, after: before, by: "cleo", sharers: ["ben"])
        #expect(grantless.grants.count == 1)
        let stranger = grantless
        grantless.grants[0].signature = [UInt8](repeating: 1, count: 64)
        var id = 100
        func ann(
            _ list: ShareList, on root: Int = 10, below parent: Int? = nil, sv: Version = 2
        ) throws -> RefusalReason? {
            id += 1
            return try shard.make(id, people, people.put(root, below: parent, sv: sv, list: list)).reason
        }
        #expect(try ann(forged) == .shareList)
        #expect(try ann(grantless) == .shareList)
        #expect(try ann(stranger) == .shareList)
        #expect(try ann(people.list(["ben": "r"], on: 20, after: before)) == .shareList, "for another root")
        #expect(try ann(before, on: 1, sv: 1) == .shareList, "copied to another node")
        #expect(try ann(before, on: 11, below: 10, sv: 1) == .nestedList)
        // What ben may change: readers. Not letters of those that share, nor the grants.
        func ben(_ list: ShareList) throws -> RefusalReason? {
            id += 1
            return try shard.make(id, by: "ben", in: 10, people, people.put(10, by: "ben", sv: 2, list: list)).reason
        }
        let grants = ["ben"]
        for members in [["ben": "rwsB"], ["ben": "rws", "cleo": "rws"]] {
            #expect(
                try ben(people.list(members, on: 10, after: before, by: "ben", sharers: grants)) == .shareList,
                "\(members)")
        }
        #expect(try ben(people.list(["ben": "rws"], on: 10, after: before, by: "ben")) == .shareList, "no grant in it")
        let wide = ["ben": "rws", "cleo": "rw"]
        let good = try people.list(wide, on: 10, after: before, by: "ben", sharers: grants)
        #expect(try ben(good) == nil)
        // The list from before, once more.
        #expect(try shard.make(300, people, people.put(10, sv: 3, list: before)).reason == .shareList)
        #expect(try shard.list(on: 10) == good)
    }

    @Test("A10: a member without s writes the root with its list as it is, and with no other one")
    func memberLists() throws {
        let shard = try shared("rw")
        let before = try #require(try shard.list(on: 10))
        #expect(
            try shard.make(3, by: "ben", in: 10, people, people.put(10, by: "ben", sv: 2, list: before)).results
                == [.version(3)])
        let own = try people.list(["ben": "rws"], on: 10, after: before, by: "ben")
        #expect(
            try shard.make(4, by: "ben", in: 10, people, people.put(10, by: "ben", sv: 3, list: own)).reason
                == .permission)
        #expect(try shard.make(5, by: "ben", in: 10, people, people.put(10, by: "ben", sv: 3)).reason == .permission)
        let sub = try people.list(["ben": "rws"], on: 11, by: "ben")
        #expect(
            try shard.make(6, by: "ben", in: 10, people, people.put(11, by: "ben", below: 10, sv: 1, list: sub)).reason
                == .nestedList)
        #expect(try shard.list(on: 10) == before)
    }

    @Test("A12: a removed member writes nothing from the answer to its removal on")
    func removed() throws {
        let shard = try shared()
        let before = try #require(try shard.list(on: 10))
        // Its reader's key goes with another epoch only.
        let lazy = try people.list(["cleo": "r"], on: 10, after: before)
        #expect(try shard.make(3, people, people.put(10, sv: 2, list: lazy)).reason == .shareList)
        let next = try people.list(["cleo": "r"], on: 10, after: before, epoch: 1)
        #expect(try shard.make(4, people, people.put(10, sv: 2, list: next)).results == [.version(3)])
        for operation in try [
            people.put(12, by: "ben", below: 10), people.put(11, by: "ben", below: 10, sv: 1),
            TestShard.delete(11, sv: 1),
            people.put(10, by: "ben", sv: 3, list: before),
        ] {
            #expect(try shard.make(5, by: "ben", in: 10, people, operation).reason == .permission)
        }
        #expect(
            try shard.make(6, by: "cleo", in: 10, people, people.put(12, by: "cleo", below: 10)).reason == .permission)
    }

    @Test("A22: a member's record names a blob that the member has uploaded, or that its node has")
    func blobs() throws {
        let store = MemoryStore()
        let shard = try TestShard.tree(.warm, store: store)
        let ledger = try store.makeBlobLedger()
        func upload(_ name: String) throws -> BlobID {
            let id = BlobID.random()
            let upload = BlobUpload(
                id: id, app: shard.bucket.app, user: try UserID(name), length: ModelTree.blobLength, partBytes: 1 << 20,
                begun: 1)
            let quota = BlobQuota(userBytesMax: 1 << 40, appBytesMax: 1 << 40, uploadsMax: 9)
            #expect(try ledger.begin(upload, within: quota) == .accepted)
            #expect(try ledger.complete(id, proof: [1], now: 1))
            return id
        }
        let (anns, inside, bens) = (try upload(TestShard.ann), try upload(TestShard.ann), try upload("ben"))
        func content(_ blob: BlobID) -> (inout NodeRecord) -> Void {
            { $0.data = .blob(DataID(7), length: UInt64(ModelTree.blobLength), blob: blob) }
        }
        try shard.make(1, TestShard.put(1, "n1", blob: anns), TestShard.put(10, "n10"))
        try shard.make(
            2, people, people.put(10, sv: 1, list: people.list(["ben": "rw"], on: 10)),
            people.put(11, below: 10, content(inside)))
        func ben(_ id: Int, _ number: Int, sv: Version = 0, _ blob: BlobID) throws -> BatchReply {
            let put = try people.put(number, by: "ben", below: 10, sv: sv, content(blob))
            return try shard.make(id, by: "ben", in: 10, people, put)
        }
        #expect(try ben(3, 12, anns).reason == .blobMissing, "a private blob of the owner")
        #expect(try ben(4, 12, inside).reason == .blobMissing)
        #expect(try ben(5, 11, sv: 1, anns).reason == .blobMissing)
        #expect(try ben(6, 11, sv: 1, inside).results == [.version(2)], "it is there already")
        #expect(try ben(7, 12, bens).results == [.version(1)])
        #expect(try ben(8, 11, sv: 2, bens).results == [.version(3)])
    }
}
