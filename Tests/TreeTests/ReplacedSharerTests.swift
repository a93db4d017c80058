import Testing
import ThicketKeyLog
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// Members with `s` that have replaced their keys (SP5; decision 0067): their lists go on under the grant that they
/// have, and name the new keys only where the key log has them.
@Suite("Lists of members that have replaced their keys", .nonceWatch)
struct ReplacedSharerTests {
    /// Ben, with the letter `s`, has other keys than his grant names; Dora has the letter too.
    private struct World {
        let branch: BranchCase
        let shared: OpenedNode
        let old: MessageIdentity
        let ben: MessageIdentity
        /// What the key log has of Ben beside the keys of his grant.
        var logged: [MessageIdentity]

        init(_ seed: UInt64) throws {
            branch = try BranchCase(seed: seed)
            shared = try branch.shared(["ben": "rws", "cleo": "r", "dora": "rws"])
            old = try branch.person("ben")
            let next = try MessageCase.identity("ben", seed: 77)
            ben = MessageIdentity(
                user: old.user, signing: next.signing, exchange: try #require(next.exchange(next.keys.id)),
                earlier: [(old.signing, try #require(old.exchange(old.keys.id)))])
            logged = [ben]
        }

        func key(_ user: UserID, _ keyID: String) -> BranchState.KnownKey {
            if let keys = logged.first(where: { $0.user == user && $0.keys.id == keyID })?.keys {
                return .verified(keys.identity)
            }
            return branch.key(user, keyID)
        }

        var newest: [UserID: PublicKeys] { branch.newest.merging([ben.user: ben.keys]) { $1 } }

        /// Ben removes Cleo.
        func removal() throws -> NodeRecord {
            let root = try NodeOpener(branch.ann.tree, identity: ben).openRoot(shared.record, shared.id)
            return try branch.ann.sealer.share(
                root, branch.change(["cleo": ""]), keys: newest, below: nil, replacing: 2, by: ben
            ).sent()
        }

        func state() throws -> BranchState { try branch.state(shared) }

        /// A list signed by a member with the keys of its grant.
        func signed(_ list: ShareList, by name: String = "ben") throws -> ShareList {
            let author = try branch.person(name)
            var list = list
            list.signature = try RecordSignature(pending: author.user, keyID: author.keys.id)
            list.signature = try RecordSignature(
                author: author.user, keyID: author.keys.id,
                octets: author.signing.signature(of: list.form(at: branch.place)))
            return list
        }
    }

    @Test("a member that has replaced its keys begins an epoch under its grant, and its new keys open it")
    func epoch() throws {
        let world = try World(31)
        let record = try world.removal()
        let list = try #require(record.shareList)
        #expect(list.epoch == 1 && list.signature.keyID == world.old.keys.id)
        #expect(list.member(world.ben.user)?.keyID == world.ben.keys.id && list.replacedSharers.count == 1)
        #expect(list.grants == world.shared.record.shareList?.grants)
        #expect(try world.state().judge(list, world.key) == .believed)
        // Also at a device that knows no list yet.
        #expect(BranchState(world.branch.place).judge(list, world.key) == .believed)
        let root = try NodeOpener(world.branch.ann.tree, identity: world.ben).openRoot(record, world.shared.id)
        #expect(root.record.epoch == 1)
        #expect(throws: NodeFault.self) {
            try NodeOpener(world.branch.ann.tree, identity: world.old).openRoot(record, world.shared.id)
        }
    }

    @Test("A10: such a list is not believed before the key log shows the new keys, and never if it has none such")
    func unknown() throws {
        var world = try World(32)
        let list = try #require(try world.removal().shareList)
        let keys = world.key
        let waits = BranchState.Verdict.waits(world.ben.user, keyID: world.ben.keys.id)
        let asks: BranchState.Keys = { user, keyID in keyID == world.ben.keys.id ? .unknown : keys(user, keyID) }
        #expect(try world.state().judge(list, asks) == waits)
        world.logged = []
        #expect(try world.state().judge(list, world.key) == .refused(.unknownKeys))
        #expect(BranchState(world.branch.place).judge(list, world.key) == .refused(.unknownKeys))
        #expect(throws: ShareListError.unknownSharer) {
            try list.checkSignatures(at: world.branch.place) { user, keyID in
                if case .verified(let key) = world.key(user, keyID) { key } else { nil }
            }
        }
    }

    @Test("A10: a member that replaces keys in a list changes neither grants nor which members share")
    func bounds() throws {
        let world = try World(33)
        let honest = try #require(try world.removal().shareList)
        let cleo = ShareList.Member(try UserID("cleo"), .all, keyID: try world.branch.person("cleo").keys.id)
        let changes: [(inout ShareList) -> Void] = [
            { $0.members.insert(cleo, at: 1) },
            { $0.members.removeLast() },
            { $0.members[1].permissions = .readWrite },
            { $0.grants.removeLast() },
            { $0.grants[0].keyID = world.ben.keys.id },
        ]
        for (number, change) in changes.enumerated() {
            var list = honest
            change(&list)
            let verdict = try world.state().judge(world.signed(list), world.key)
            guard case .refused(.list(let fault)) = verdict else {
                Issue.record("change \(number): \(verdict)")
                continue
            }
            #expect([.beyondGrant, .noGrant].contains(fault), "change \(number)")
        }
        #expect(try world.state().judge(world.signed(honest), world.key) == .believed)
        // New keys are no grant: Ben signs no list with them.
        var other = honest
        other.signature = try RecordSignature(pending: world.ben.user, keyID: world.ben.keys.id)
        other.signature = try RecordSignature(
            author: world.ben.user, keyID: world.ben.keys.id,
            octets: world.ben.signing.signature(of: other.form(at: world.branch.place)))
        #expect(try world.state().judge(other, world.key) == .refused(.list(.noGrant)))
    }

    @Test("other keys of a member that shares need another epoch, and so does each step that a device has missed")
    func sameEpoch() throws {
        let world = try World(34)
        let before = try #require(world.shared.record.shareList)
        var list = before
        (list.version, list.previous) = (2, before.digest(at: world.branch.place))
        list.members[0].keyID = world.ben.keys.id
        #expect(try world.state().judge(world.signed(list), world.key) == .refused(.list(.badEpoch)))
        list.version = 3
        #expect(try world.state().judge(world.signed(list), world.key) == .refused(.list(.badEpoch)))
    }

    @Test("the owner's next list gives a grant to the newest keys that it has looked up, whatever a list names")
    func granted() throws {
        let world = try World(35)
        let (branch, record) = (world.branch, try world.removal())
        let ann = NodeOpener(branch.ann.tree, identity: try branch.person("ann"))
        let root = try ann.open(record, world.shared.id, below: branch.ann.home)
        let change = try branch.change(["cleo": "r"])
        #expect(change.accounts(after: record.shareList, [:]) == [world.ben.user, try UserID("cleo")])
        func next(_ keys: [UserID: PublicKeys]) throws -> ShareList {
            try #require(
                try branch.ann.sealer.share(
                    root, change, keys: keys, below: branch.ann.home, replacing: 3, by: branch.person("ann")
                ).shareList)
        }
        let list = try next(world.newest)
        #expect(list.epoch == 1 && list.replacedSharers.isEmpty)
        #expect(list.grants.map(\.keyID) == [world.ben.keys.id, try branch.person("dora").keys.id])
        // A list that names earlier keys of Ben, which others may have, does not lead to a grant for them.
        let third = try MessageCase.identity("ben", seed: 78)
        let newer = try next(world.newest.merging([third.user: third.keys]) { $1 })
        #expect(newer.epoch == 2 && newer.grants.first?.keyID == third.keys.id)
        #expect(throws: SealFault.missingKeys) { try next(world.newest.filter { $0.key != world.ben.user }) }
    }
}
