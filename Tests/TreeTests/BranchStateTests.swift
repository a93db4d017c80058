import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// Which lists and records of a shared branch a device believes (SP4, SP5; A10).
@Suite("What is believed of a shared branch", .nonceWatch)
struct BranchStateTests {
    /// A list that is changed by a server, without the keys to sign it.
    private func judged(_ branch: BranchCase, _ change: (inout ShareList) throws -> Void) throws -> BranchState.Verdict
    {
        let first = try branch.shared(["ben": "rw", "cleo": "r"])
        let second = try branch.shared(["dora": "r"], first, version: 2)
        var list = try #require(second.record.shareList)
        try change(&list)
        return try branch.state(first).judge(list, branch.key)
    }

    @Test("A10: a reader that the server adds, letters that it raises and an owner among the members are refused")
    func forgedLists() throws {
        let branch = try BranchCase(seed: 20)
        let dora = try branch.person("dora").keys.id
        #expect(try judged(branch) { _ in } == .believed)
        let changes: [(inout ShareList) throws -> Void] = [
            { list in list.members[0].permissions = .all },
            { list in list.members.removeLast() },
            { list in list.members.append(ShareList.Member(try UserID("zed"), .read, keyID: dora)) },
            { list in list.members[1].keyID = dora },
            { list in
                list.grants = [] + list.grants; list.epoch += 1
            },
            { list in list.commitment[0] ^= 1 },
            { list in list.version = 3 },
        ]
        for change in changes { #expect(try judged(branch, change) == .refused(.list(.notSigned))) }
        #expect(
            try judged(branch) { list in
                list.members.insert(ShareList.Member(try UserID("ann"), .read, keyID: dora), at: 0)
            } == .refused(.list(.ownerListed)))
    }

    @Test("A10: a list of a stranger, and one of a member without the owner's grant, are refused")
    func strangers() throws {
        let branch = try BranchCase(seed: 21)
        let first = try branch.shared(["ben": "rw"])
        for name in ["ben", "dora"] {
            let person = try branch.person(name)
            var list = try #require(first.record.shareList)
            (list.version, list.previous) = (2, list.digest(at: branch.place))
            list.members.append(ShareList.Member(try UserID("dora"), .all, keyID: try branch.person("dora").keys.id))
            list.signature = try RecordSignature(pending: person.user, keyID: person.keys.id)
            list.signature = try RecordSignature(
                author: person.user, keyID: person.keys.id,
                octets: person.signing.signature(of: list.form(at: branch.place)))
            #expect(try branch.state(first).judge(list, branch.key) == .refused(.list(.noGrant)))
            // Nor does a device believe it that knows no list yet.
            #expect(BranchState(branch.place).judge(list, branch.key) == .refused(.list(.noGrant)))
        }
    }

    @Test("A10: an older list, and a second one of one version, are refused and named")
    func rollback() throws {
        let branch = try BranchCase(seed: 22)
        let first = try branch.shared(["ben": "rw", "cleo": "r"])
        let second = try branch.shared(["cleo": ""], first, version: 2)
        let other = try branch.shared(["dora": "r"], first, version: 2)
        let state = try branch.state(second)
        #expect(try state.judge(#require(first.record.shareList), branch.key) == .refused(.olderList))
        #expect(try state.judge(#require(other.record.shareList), branch.key) == .refused(.forkedList))
        #expect(try state.judge(#require(second.record.shareList), branch.key) == .believed)
    }

    @Test("a device that was away believes the newest list without those between; a member's only within its grant")
    func skipped() throws {
        let branch = try BranchCase(seed: 23)
        let first = try branch.shared(["ben": "rws", "cleo": "r"])
        var last = first
        for (version, change) in [["cleo": ""], ["cleo": "rw"], ["dora": "r"]].enumerated() {
            last = try branch.shared(change, last, version: Version(version + 2))
        }
        let state = try branch.state(first)
        #expect(try state.judge(#require(last.record.shareList), branch.key) == .believed)
        let bens = try branch.shared(["dora": "rw"], last, version: 5, by: "ben")
        #expect(try state.judge(#require(bens.record.shareList), branch.key) == .believed)
        // The owner has taken the right to share from ben; the device has not seen that.
        let ended = try branch.shared(["ben": "rw"], bens, version: 6)
        #expect(try state.judge(#require(ended.record.shareList), branch.key) == .believed)
    }

    @Test("keys that are not looked up yet are asked for; an account without such keys is refused")
    func unknownKeys() throws {
        let branch = try BranchCase(seed: 24)
        let list = try #require(try branch.shared(["ben": "r"]).record.shareList)
        let ann = try branch.person("ann")
        let state = BranchState(branch.place)
        #expect(state.judge(list) { _, _ in .unknown } == .waits(ann.user, keyID: ann.keys.id))
        #expect(state.judge(list) { _, _ in .absent } == .refused(.unknownKeys))
        // A5: keys of another account under the owner's name.
        let forged = try branch.person("dora").keys.identity
        #expect(state.judge(list) { _, _ in .verified(forged) } == .refused(.list(.notSigned)))
    }

    // MARK: - Records

    private struct Written {
        let branch: BranchCase
        let state: BranchState
        let root: OpenedNode

        init(_ seed: UInt64, _ letters: [String: String]) throws {
            branch = try BranchCase(seed: seed)
            root = try branch.shared(letters)
            state = try branch.state(root)
        }

        func record(_ name: String, by author: String?) throws -> (id: NodeID, record: NodeRecord) {
            let id = branch.ann.newID()
            let identity = try author.map { try branch.person($0) }
            let draft = NodeDraft(try NodeName(name), content: .inline(NodeContent(data: [1])))
            return (
                id, try branch.ann.sealer.create(draft, id, below: root.childKeys, by: identity).sent()
            )
        }

        func verdict(
            _ id: NodeID, _ record: NodeRecord, _ arrival: BranchState.Arrival, depth: Int = 1
        ) -> BranchState.Verdict {
            let action: ShareAction =
                arrival.known == 0
                ? .create(depth: depth, hasContent: record.data != nil, others: 0)
                : .change(isRoot: false, depth: depth, hasContent: record.data != nil)
            return state.judge(record, id, action, arrival, branch.key)
        }
    }

    @Test("SP4: each record inside a branch is signed by the owner or by a member that the list permits to write it")
    func authors() throws {
        let written = try Written(25, ["ben": "rw", "cleo": "r", "dora": "rW"])
        for (author, expected) in [
            ("ann", BranchState.Verdict.believed), ("ben", .believed), ("dora", .believed),
            ("cleo", .refused(.notPermitted(.noWrite))),
        ] {
            let (id, record) = try written.record("a", by: author)
            #expect(written.verdict(id, record, written.branch.arrival(1)) == expected, "\(author)")
        }
        // What dora has written once she does not write again.
        let (id, _) = try written.record("b", by: "dora")
        var (_, record) = try written.record("b", by: nil)
        record.base = 1
        let node = OpenedNode(
            tree: written.branch.ann.tree, id: id, record: record, metadata: written.root.metadata,
            key: written.root.key)
        let again = try written.branch.ann.sealer.edit(
            node, below: written.root.childKeys, replacing: 1, by: written.branch.person("dora"))
        #expect(
            written.verdict(id, again, written.branch.arrival(2, known: 1)) == .refused(.notPermitted(.noWrite)))
    }

    @Test("a record without signature is believed only where it may be from before the branch was shared")
    func unsigned() throws {
        let written = try Written(26, ["ben": "rw"])
        let (id, record) = try written.record("a", by: nil)
        let branch = written.branch
        #expect(written.verdict(id, record, branch.arrival(1)) == .refused(.unsigned))
        #expect(written.verdict(id, record, branch.arrival(2, known: 1)) == .refused(.unsigned))
        #expect(written.verdict(id, record, branch.arrival(2, known: 1, isListed: true)) == .refused(.unsigned))
        #expect(written.verdict(id, record, branch.arrival(4, isListed: true)) == .believed)
        let before = BranchState.Arrival(version: 2, known: 1, isListed: true, isFromBefore: true)
        #expect(written.verdict(id, record, before) == .believed)
        // The server says that a member wrote it.
        var stamped = record
        stamped.stamps.sender = try UserID("ben")
        #expect(written.verdict(id, stamped, branch.arrival(4, isListed: true)) == .refused(.unsigned))
    }

    @Test("A4: an earlier record, shown again as a newer version, is refused")
    func replayed() throws {
        let written = try Written(27, ["ben": "rw"])
        let (id, record) = try written.record("a", by: "ben")
        let branch = written.branch
        #expect(written.verdict(id, record, branch.arrival(1)) == .believed)
        #expect(written.verdict(id, record, branch.arrival(3, known: 2)) == .refused(.replayed))
        #expect(written.verdict(id, record, branch.arrival(5, isListed: true)) == .believed)
    }

    @Test("A10: each changed byte of a record by a member is refused")
    func changed() throws {
        let written = try Written(28, ["ben": "rw", "cleo": "rw"])
        let (id, record) = try written.record("a", by: "ben")
        let branch = written.branch
        #expect(written.verdict(id, record, branch.arrival(1)) == .believed)
        let changes: [(inout NodeRecord) throws -> Void] = [
            { $0.metadata[20] ^= 1 },
            { $0.parent = .node(NodeID(4)) },
            { $0.epoch = 1 },
            { $0.burnTime = 5 },
            { $0.data = nil },
            { $0.wraps = [RecordWrap(.parent, sealed: [1] + [UInt8](repeating: 0, count: 60))] },
        ]
        for change in changes {
            var forged = record
            try change(&forged)
            #expect(written.verdict(id, forged, branch.arrival(1)) == .refused(.badSignature))
        }
        // The stamp of a node that Cleo has created: whose record it is, the signature says.
        var cleos = record
        cleos.stamps.sender = try UserID("cleo")
        #expect(written.verdict(id, cleos, branch.arrival(1)) == .believed)
        var other = record
        other.signature = try RecordSignature(
            author: try UserID("cleo"), keyID: try branch.person("cleo").keys.id,
            octets: #require(record.signature).octets)
        #expect(written.verdict(id, other, branch.arrival(1)) == .refused(.badSignature))
        // Another node of that record.
        #expect(written.verdict(NodeID(9), record, branch.arrival(1)) == .refused(.badSignature))
    }

    @Test("A10: a removed member writes nothing more; what it wrote before is believed by a device that reads it later")
    func removedMember() throws {
        let written = try Written(29, ["ben": "rw", "cleo": "rw"])
        let (id, record) = try written.record("a", by: "cleo")
        let branch = written.branch
        // Also the end of the letter w begins another epoch.
        for letters in ["", "r"] {
            let next = try branch.shared(["cleo": letters], written.root, version: 2)
            let state = try branch.state(next)
            let action = ShareAction.create(depth: 1, hasContent: true, others: 0)
            #expect(
                state.judge(record, id, action, branch.arrival(1), branch.key) == .refused(.notPermitted(.noWrite)))
            #expect(state.judge(record, id, action, branch.arrival(1, isListed: true), branch.key) == .believed)
            // Under the new key also a device that reads it for the first time refuses it.
            let late = try branch.ann.sealer.create(
                NodeDraft(NodeName("late")), id, below: next.childKeys, by: branch.person("cleo"))
            #expect(
                state.judge(late, id, action, branch.arrival(1, isListed: true), branch.key)
                    == .refused(.notPermitted(.noWrite)))
        }
    }

    @Test("A10: only the owner ends sharing")
    func ends() throws {
        let written = try Written(30, ["ben": "rws"])
        let branch = written.branch
        var bare = written.root.record
        (bare.shareList, bare.signature) = (nil, nil)
        let arrival = branch.arrival(3, known: 2)
        #expect(written.state.judgeEnd(bare, written.root.id, arrival, branch.key) == .refused(.listMissing))
        bare.base = 2
        for (author, expected) in [("ben", BranchState.Verdict.refused(.listMissing)), ("ann", .believed)] {
            let person = try branch.person(author)
            bare.signature = try RecordSignature(pending: person.user, keyID: person.keys.id)
            try RecordSignature.sign(&bare, written.root.id, in: branch.ann.tree, with: person.signing)
            #expect(written.state.judgeEnd(bare, written.root.id, arrival, branch.key) == expected)
        }
    }
}
