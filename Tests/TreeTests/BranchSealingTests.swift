import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// Roots of shared branches, their keys, and the keys of what is below them (treesystem 4.10; S8, S9).
@Suite("Sealing of shared branches", .nonceWatch)
struct BranchSealingTests {
    private func bytes(_ node: OpenedNode) -> [UInt8] { node.key.secret.withUnsafeBytes { Array($0) } }

    @Test("sharing writes the root only: key and salt stay, and a reader opens what was below before")
    func share() throws {
        let branch = try BranchCase(seed: 1)
        let photo = try branch.ann.node("photo", below: branch.root.childKeys)
        let shared = try branch.shared(["ben": "rw", "cleo": "r"])
        #expect(bytes(shared) == bytes(branch.root) && shared.record.epoch == 0)
        #expect(shared.metadata.name == branch.root.metadata.name)
        for name in ["ben", "cleo"] {
            let root = try branch.opened(shared.record, by: name)
            #expect(root.parent == .trunk(.home) && root.name == branch.root.name)
            let opener = NodeOpener(branch.ann.tree, identity: try branch.person(name))
            let read = try opener.open(photo.record, photo.id, below: root.childKeys)
            #expect(read.metadata.name == photo.metadata.name)
        }
        #expect(throws: NodeFault.self) { try branch.opened(shared.record, by: "dora") }
        // The owner needs no wrap of its own.
        #expect(shared.record.wraps.map(\.kind) == ["p", "u:ben", "u:cleo"])
    }

    @Test("a reader is added under the same key; the wraps of the others stay as they are")
    func add() throws {
        let branch = try BranchCase(seed: 2)
        let first = try branch.shared(["ben": "r"])
        let second = try branch.shared(["cleo": "rw"], first, version: 2)
        #expect(bytes(second) == bytes(first))
        #expect(second.record.wraps.first { $0.kind == "u:ben" } == first.record.wraps.first { $0.kind == "u:ben" })
        #expect(try branch.opened(second.record, by: "cleo").id == branch.root.id)
        var state = try branch.state(first)
        let list = try #require(second.record.shareList)
        #expect(state.judge(list, branch.key) == .believed)
        state.believe(list)
        #expect(state.list?.version == 2)
    }

    @Test("S9: removing a reader gives the root another key at once, and the earlier one opens what is below")
    func remove() throws {
        let branch = try BranchCase(seed: 3)
        let first = try branch.shared(["ben": "rw", "cleo": "r"])
        let old = try branch.ann.node("old", below: first.childKeys)
        let second = try branch.shared(["cleo": ""], first, version: 2)
        #expect(second.record.epoch == 1 && bytes(second) != bytes(first))
        #expect(second.record.wraps.map(\.kind) == ["p", "u:ben"])
        #expect(throws: NodeFault.self) { try branch.opened(second.record, by: "cleo") }
        #expect(try branch.state(first).judge(#require(second.record.shareList), branch.key) == .believed)
        // What was not written since hangs on the earlier key, for the reader that stays.
        let ben = NodeOpener(branch.ann.tree, identity: try branch.person("ben"))
        let root = try branch.opened(second.record, by: "ben")
        let read = try ben.open(old.record, old.id, below: root.childKeys)
        #expect(read.hangsOnEarlierKey)
        // Its next write gives it another key.
        let edited = try branch.ann.sealer.edit(
            read, NodeEdit(modified: 5), below: root.childKeys, replacing: 1, by: try branch.person("ben"))
        let after = try ben.open(edited.sent(), old.id, below: root.childKeys)
        #expect(after.record.epoch == 1 && !after.hangsOnEarlierKey && bytes(after) != bytes(old))
        #expect(after.metadata.childSalt == old.metadata.childSalt)
    }

    @Test("A12: a removed reader opens nothing that is written later, with every key that it had")
    func removedReader() throws {
        let branch = try BranchCase(seed: 4)
        let first = try branch.shared(["ben": "rw", "cleo": "r"])
        let folder = try branch.ann.node("folder", below: first.childKeys)
        let leaf = try branch.ann.node("leaf", below: folder.childKeys)
        // All that cleo has: her copies of the parents' keys from before.
        let cleo = NodeOpener(branch.ann.tree, identity: try branch.person("cleo"))
        let root = try branch.opened(first.record, by: "cleo")
        let cached = [
            root.childKeys, try cleo.open(folder.record, folder.id, below: root.childKeys).childKeys,
            leaf.childKeys,
        ]
        let second = try branch.shared(["cleo": ""], first, version: 2)
        // Ancestors first: the folder is written under the new key of the root, then what is below it.
        let owner = try branch.person("ann")
        let newFolder = try branch.ann.opener.open(
            branch.ann.sealer.edit(
                branch.ann.opener.open(folder.record, folder.id, below: second.childKeys), below: second.childKeys,
                replacing: 1, by: owner), folder.id, below: second.childKeys)
        let newLeaf = try branch.ann.sealer.edit(
            branch.ann.opener.open(leaf.record, leaf.id, below: newFolder.childKeys),
            NodeEdit(content: .inline(NodeContent(data: [1, 2, 3]))), below: newFolder.childKeys, replacing: 1,
            by: owner)
        let fresh = branch.ann.newID()
        let created = try branch.ann.sealer.create(
            NodeDraft(NodeName("fresh")), fresh, below: newFolder.childKeys, by: owner)
        for (record, id) in [
            (second.record, second.id), (newFolder.record, folder.id), (newLeaf, leaf.id), (created, fresh),
        ] {
            for keys in cached + [branch.ann.keys.parent(.inbox)] {
                #expect(throws: NodeFault.self) { try cleo.open(record, id, below: keys) }
                // Also with another parent's name on the record.
                var moved = record
                moved.parent = keys.parent
                #expect(throws: NodeFault.self) { try cleo.open(moved, id, below: keys) }
            }
            #expect(throws: NodeFault.self) { try cleo.openRoot(record, id) }
        }
        // The reader that stays opens all of it.
        let ben = NodeOpener(branch.ann.tree, identity: try branch.person("ben"))
        let bens = try branch.opened(second.record, by: "ben")
        let bensFolder = try ben.open(newFolder.record, folder.id, below: bens.childKeys)
        #expect(try ben.open(newLeaf, leaf.id, below: bensFolder.childKeys).inlineContent()?.data == [1, 2, 3])
        #expect(try ben.open(created, fresh, below: bensFolder.childKeys).metadata.name.text == "fresh")
    }

    @Test("keys of several epochs stay in the metadata, and a node that missed them all still opens")
    func epochs() throws {
        let branch = try BranchCase(seed: 5)
        var root = try branch.shared(["ben": "rw", "cleo": "r"])
        let first = try branch.ann.node("first", below: root.childKeys)
        for round in 0..<5 {
            root = try branch.shared(["cleo": round % 2 == 0 ? "" : "r"], root, version: Version(round + 2))
        }
        #expect(root.record.epoch == 3 && root.metadata.earlierKeys.map(\.epoch) == [2, 1, 0])
        #expect(try branch.ann.opener.open(first.record, first.id, below: root.childKeys).hangsOnEarlierKey)
        let read = try NodeMetadata(octets: root.metadata.octets)
        #expect(read == root.metadata)
    }

    @Test("a node has at most 64 earlier keys; a further epoch is refused and drops none")
    func manyEpochs() throws {
        let branch = try BranchCase(seed: 6)
        var root = try branch.shared(["ben": "rw"])
        for version in 0..<EarlierKey.countMax {
            let record = try branch.ann.sealer.share(
                root, ShareChange(renews: true), keys: branch.newest, below: branch.ann.home,
                replacing: Version(version + 2), by: branch.person("ann"))
            root = try branch.ann.opener.open(record, root.id, below: branch.ann.home)
        }
        #expect(throws: SealFault.tooManyKeys) {
            try branch.ann.sealer.share(
                root, ShareChange(renews: true), keys: branch.newest, below: branch.ann.home, replacing: 99,
                by: branch.person("ann"))
        }
    }

    @Test("the end of sharing leaves an ordinary node with another key, which no member has")
    func unshare() throws {
        let branch = try BranchCase(seed: 7)
        let shared = try branch.shared(["ben": "rw"])
        let child = try branch.ann.node("child", below: shared.childKeys)
        let record = try branch.ann.sealer.share(
            shared, ShareChange(isEnd: true), keys: [:], below: branch.ann.home, replacing: 2, by: branch.person("ann"))
        let ended = try branch.ann.opener.open(record.sent(), shared.id, below: branch.ann.home)
        #expect(ended.record.shareList == nil && ended.record.wraps.map(\.kind) == ["p"] && ended.record.epoch == 0)
        #expect(bytes(ended) != bytes(shared))
        #expect(try branch.ann.opener.open(child.record, child.id, below: ended.childKeys).hangsOnEarlierKey)
        let state = try branch.state(shared)
        #expect(state.judgeEnd(record, shared.id, branch.arrival(3, known: 2), branch.key) == .believed)
        // And it can be shared again, with a list that follows the last one and another key.
        let again = try branch.shared(["cleo": "r"], ended, version: 3)
        let (last, list) = (try #require(shared.record.shareList), try #require(again.record.shareList))
        #expect(list.version == 2 && list.epoch == 1 && list.previous == last.digest(at: branch.place))
        #expect(again.record.epoch == 1 && bytes(again) != bytes(ended))
        #expect(state.judge(list, branch.key) == .believed)
        #expect(try branch.ann.opener.open(child.record, child.id, below: again.childKeys).hangsOnEarlierKey)
        #expect(try branch.opened(again.record, by: "cleo").id == shared.id)
        #expect(throws: NodeFault.self) { try branch.opened(again.record, by: "ben") }
    }

    @Test("a member writes the root's content under the list that it has, and neither its name nor its key")
    func rootByMember() throws {
        let branch = try BranchCase(seed: 8)
        let shared = try branch.shared(["ben": "rw"])
        let ben = try branch.opened(shared.record, by: "ben")
        let edit = NodeEdit(content: .inline(NodeContent(data: [9])))
        let record = try branch.ann.sealer.editRoot(ben, edit, replacing: 2, by: branch.person("ben"))
        let read = try branch.ann.opener.open(record.sent(), shared.id, below: branch.ann.home)
        #expect(try read.inlineContent()?.data == [9])
        #expect(read.record.shareList == shared.record.shareList)
        #expect(throws: SealFault.badShare) {
            try branch.ann.sealer.editRoot(ben, NodeEdit(name: NodeName("x")), replacing: 2, by: branch.person("ben"))
        }
    }

    @Test("a member with a grant adds a reader and removes one: the owner finds the next key in a wrap of its own")
    func grant() throws {
        let branch = try BranchCase(seed: 9)
        let shared = try branch.shared(["ben": "rws", "cleo": "r"])
        let bens = try branch.opened(shared.record, by: "ben")
        let record = try branch.ann.sealer.share(
            bens, branch.change(["dora": "r"]), keys: branch.newest, below: nil, replacing: 2, by: branch.person("ben"))
        #expect(try branch.opened(record, by: "dora").id == shared.id)
        let list = try #require(record.shareList)
        #expect(try branch.state(shared).judge(list, branch.key) == .believed)
        #expect(throws: SealFault.badShare) {
            try branch.ann.sealer.share(
                bens, branch.change(["dora": "rws"]), keys: branch.newest, below: nil, replacing: 2,
                by: branch.person("ben"))
        }
        // Cleo is removed.
        let removed = try branch.ann.sealer.share(
            bens, branch.change(["cleo": ""]), keys: branch.newest, below: nil, replacing: 2, by: branch.person("ben")
        ).sent()
        #expect(removed.wraps.map(\.kind) == ["u:ann", "u:ben"] && removed.epoch == 1)
        #expect(try branch.state(shared).judge(#require(removed.shareList), branch.key) == .believed)
        #expect(throws: NodeFault.self) { try branch.opened(removed, by: "cleo") }
        let ann = NodeOpener(branch.ann.tree, identity: try branch.person("ann"))
        let owners = try ann.open(removed, shared.id, below: branch.ann.home)
        #expect(try bytes(owners) == bytes(branch.opened(removed, by: "ben")))
        // Another list of the member keeps that wrap; the owner's next record has the parent's again.
        let again = try branch.ann.sealer.share(
            branch.opened(removed, by: "ben"), branch.change(["dora": "r"]), keys: branch.newest, below: nil,
            replacing: 3, by: branch.person("ben"))
        #expect(again.wraps.map(\.kind) == ["u:ann", "u:ben", "u:dora"])
        let next = try branch.shared(["dora": "rw"], ann.open(again.sent(), shared.id, below: branch.ann.home))
        #expect(next.record.wraps.map(\.kind) == ["p", "u:ben", "u:dora"])
    }

    @Test("a grant goes on when its member has other keys: the member signs lists with those that the grant names")
    func rotatedGrant() throws {
        let branch = try BranchCase(seed: 12)
        let shared = try branch.shared(["ben": "rws"])
        let (old, next) = (try branch.person("ben"), try MessageCase.identity("ben", seed: 77))
        let ben = MessageIdentity(
            user: old.user, signing: next.signing, exchange: try #require(next.exchange(next.keys.id)),
            earlier: [(old.signing, try #require(old.exchange(old.keys.id)))])
        let root = try NodeOpener(branch.ann.tree, identity: ben).openRoot(shared.record, shared.id)
        let record = try branch.ann.sealer.share(
            root, branch.change(["dora": "r"]), keys: branch.newest, below: nil, replacing: 2, by: ben)
        let list = try #require(record.shareList)
        #expect(list.signature.keyID == old.keys.id && record.signature?.keyID == next.keys.id)
        #expect(try branch.state(shared).judge(list, branch.key) == .believed)
    }

    @Test(
        "S12: a deposit opens for the owner alone, under a name with its id, and is an ordinary node when it is moved")
    func deposit() throws {
        let branch = try BranchCase(seed: 13)
        let shared = try branch.shared(["ben": "WB", "cleo": "rw"])
        let (ben, id) = (try branch.person("ben"), branch.ann.newID())
        let draft = NodeDraft(try NodeName("report.pdf"), content: .inline(NodeContent(data: [1, 2])))
        let record = try branch.ann.sealer.deposit(
            draft, id, into: shared.id, for: branch.person("ann").keys, by: ben
        ).sent()
        let ann = NodeOpener(branch.ann.tree, identity: try branch.person("ann"))
        let opened = try ann.open(record, id, below: shared.childKeys)
        #expect(opened.name.text == "report (\(id.text.prefix(8))).pdf")
        #expect(try opened.inlineContent()?.data == [1, 2])
        for name in ["ben", "cleo", "dora"] {
            let other = NodeOpener(branch.ann.tree, identity: try branch.person(name))
            #expect(throws: NodeFault.self) { try other.open(record, id, below: shared.childKeys) }
        }
        let state = try branch.state(shared)
        let action = ShareAction.create(depth: 1, hasContent: true, others: 0)
        #expect(state.judge(record, id, action, branch.arrival(1), branch.key) == .believed)
        // Its author neither changes it nor opens what the owner has made of it.
        let edited = try branch.ann.sealer.edit(
            opened, NodeEdit(name: opened.name), below: shared.childKeys, replacing: 1, by: branch.person("ann")
        ).sent()
        let moved = try ann.open(edited, id, below: shared.childKeys)
        #expect(moved.name == opened.name && edited.wraps.map(\.kind) == ["p"])
    }

    @Test("SP5: nothing is wrapped for an account whose keys are not given, and not for the owner")
    func missingKeys() throws {
        let branch = try BranchCase(seed: 10)
        func share(_ change: ShareChange, _ names: [String]) throws -> NodeRecord {
            let users = try Set(names.map { try UserID($0) })
            return try branch.ann.sealer.share(
                branch.root, change, keys: branch.newest.filter { users.contains($0.key) }, below: branch.ann.home,
                replacing: 1, by: branch.person("ann"))
        }
        let both = try branch.change(["ben": "r", "cleo": "r"])
        #expect(throws: SealFault.missingKeys) { try share(both, ["ben"]) }
        #expect(try share(both, ["ben", "cleo"]).wraps.count == 3)
        #expect(throws: SealFault.badShare) { try share(branch.change(["ann": "rws"]), ["ann"]) }
    }

    @Test("a node that leaves an audience gets another key; a message gets one when it is shared")
    func leaving() throws {
        let branch = try BranchCase(seed: 11)
        let shared = try branch.shared(["ben": "rw"])
        let child = try branch.ann.node("child", below: shared.childKeys)
        let record = try branch.ann.sealer.edit(child, below: branch.ann.home, replacing: 1, renewing: true)
        let moved = try branch.ann.opener.open(record, child.id, below: branch.ann.home)
        #expect(bytes(moved) != bytes(child))
    }
}
