import Testing
import ThicketCrypto
import ThicketProtocol

@testable import ThicketTreeShape

/// What a server permits in a shared branch (treesystem 4.8, rules 5, 6, 8 and 9): every set of letters against every
/// operation, and what lists and moves must not do.
@Suite("Writes into shared branches")
struct BranchCheckTests {
    private static let everySet = (1...UInt8.max).map { SharePermissions(rawValue: $0) }
    private static let root = BranchModel.id(10)

    private func denial(_ letters: SharePermissions, _ action: ShareAction) -> TreeRefusal? {
        ShareRight(isOwner: false, permissions: letters).denial(of: action).map { .notPermitted($0) }
    }

    @Test("S7: every set of letters against creating, changing and removing, by the rights that the letters give")
    func matrix() throws {
        for letters in Self.everySet {
            let model = try BranchModel.shared(with: letters)
            let reads = letters.contains(.read)
            for content in [false, true] {
                // A deposit has its own form of wraps: the tests below have it.
                if reads {
                    #expect(
                        try model.refusal(30, content: content)
                            == denial(letters, .create(depth: 1, hasContent: content, others: 1)), "\(letters)")
                    #expect(
                        try model.refusal(11, content: content)
                            == denial(letters, .change(isRoot: false, depth: 1, hasContent: content)), "\(letters)")
                }
                // Below its own node a member without r writes, too: it knows that node's key.
                #expect(
                    try model.refusal(30, below: .node(BranchModel.id(12)), content: content)
                        == denial(letters, .create(depth: 2, hasContent: content, others: 1)), "\(letters)")
                #expect(
                    try model.refusal(12, content: content)
                        == denial(letters, .change(isRoot: false, depth: 1, hasContent: content)), "\(letters)")
            }
            #expect(try model.removal(12) == denial(letters, .remove(isRoot: false, isOwn: true)), "\(letters)")
            let others = denial(letters, .remove(isRoot: false, isOwn: false))
            #expect(try model.removal(11) == (reads ? others : .nodeMissing), "\(letters)")
            let root = try model.removal(10)
            #expect(root == (reads ? .notPermitted(.noWrite) : .nodeMissing), "\(letters)")
        }
    }

    @Test("the owner does everything in a branch, with a signature")
    func owner() throws {
        let model = try BranchModel.shared(with: .read)
        let change = BranchChange(before: Self.root, after: Self.root, creator: try UserID("ben"))
        #expect(try model.put(12, by: "ann") == .success(change))
        #expect(try model.put(30, by: "ann") == .success(BranchChange(after: Self.root)))
        for number in [10, 11, 12, 30] {
            #expect(try model.refusal(number, by: "ann", PutProof()) == .badSignature, "\(number)")
        }
        for number in [1, 2, 40] {
            let parent = number == 40 ? NodeParent.trunk(.home) : nil
            #expect(try model.put(number, below: parent, by: "ann", PutProof()) == .success(BranchChange()), "private")
        }
        for number in [10, 11, 13] { #expect(try model.removal(number, by: "ann") == nil) }
    }

    @Test("A9: a stranger, and a member of another branch, is refused with one word whatever it names")
    func strangers() throws {
        let model = try BranchModel.shared(with: .all)
        for number in [1, 2, 10, 11, 20, 21, 30, 99] {
            #expect(try model.refusal(number, by: "dora") == .notPermitted(.noRead), "\(number)")
            #expect(try model.removal(number, by: "dora") == .notPermitted(.noRead), "\(number)")
        }
        // The branch that the member names has no list, or does not exist.
        for root in [1, 11, 99] {
            let check = BranchCheck(.member(try UserID("ben"), root: BranchModel.id(root)), in: model.place)
            let record = try model.made(.node(BranchModel.id(root)), 30)
            let verdict = check.put(record, at: BranchModel.id(30), replacing: 0, BranchModel.signed, in: model)
            #expect(verdict == .failure(.notPermitted(.noRead)), "\(root)")
        }
    }

    @Test("A9: a member does not see outside of its branch: what exists there is answered as what does not")
    func outside() throws {
        let model = try BranchModel.shared(with: .all)
        for number in [1, 2, 20, 21, 99] {
            #expect(try model.removal(number) == .nodeMissing, "\(number)")
            #expect(try model.refusal(number, below: .node(Self.root)) { $0.base = 1 } == .nodeMissing, "\(number)")
            #expect(try model.refusal(30, below: .node(BranchModel.id(number))) == .parentMissing, "\(number)")
            // A move out.
            #expect(try model.refusal(11, below: .node(BranchModel.id(number))) == .parentMissing, "\(number)")
        }
        for number in [1, 2, 20, 21] {
            #expect(try model.refusal(number, below: .node(Self.root)) { $0.base = 0 } == .repeated, "no version")
        }
        #expect(try model.refusal(11, below: .trunk(.home)) == .parentMissing)
        #expect(try model.refusal(11) { $0.base = 0 } == .stale(current: 1), "inside it is an ordinary conflict")
    }

    @Test("a member changes neither place nor name nor burn time of the root, and drops neither its list nor a key")
    func root() throws {
        let model = try BranchModel.shared(with: .all)
        #expect(try model.refusal(10) == nil)
        #expect(try model.refusal(10, content: true) == nil)
        #expect(try model.refusal(10, below: .node(BranchModel.id(1))) == .notPermitted(.noWrite))
        #expect(try model.refusal(10, below: .node(BranchModel.id(12))) == .notPermitted(.noWrite))
        #expect(try model.refusal(10) { $0.tag = try model.made(.trunk(.home), 77).tag } == .notPermitted(.noWrite))
        #expect(try model.refusal(10) { $0.burnTime = 5 } == .notPermitted(.noWrite))
        #expect(try model.refusal(10) { $0.shareList = nil } == .notPermitted(.noShare))
        let sealed = [1] + [UInt8](repeating: 9, count: TreeLimits.parentWrapBytes - 1)
        let others = [RecordWrap(.parent, sealed: sealed)]
        #expect(try model.refusal(10) { $0.wraps = others } == .notPermitted(.noShare), "the owner's key")
        #expect(try BranchModel.shared(with: .read).refusal(10) == .notPermitted(.noWrite))
    }

    @Test(
        "A10: a member with w does not change the list; one with s does, with the owner's grant and its own signature")
    func memberLists() throws {
        let grant = ShareList.Grant(
            try UserID("ben"), keyID: "k-ben", fromEpoch: 0, ownerKeyID: "k-ann", signature: [])
        for letters in [SharePermissions.readWrite, .all] {
            for grants in [[], [grant]] {
                let model = try BranchModel.shared(with: letters, grants: grants)
                let before = model.records[Self.root]?.shareList
                let members: [String: SharePermissions] = ["ben": letters, "cleo": .readWrite, "dora": .read]
                let next = try model.list(members, on: 10, after: before, by: "ben")
                let expected: TreeRefusal? =
                    !letters.contains(.share)
                    ? .notPermitted(.noShare) : grants.isEmpty ? .badShareList(.noGrant) : nil
                #expect(try model.refusal(10) { $0.shareList = next } == expected)
                // A list that another account has signed.
                let owners = try model.list(members, on: 10, after: before)
                #expect(try model.refusal(10) { $0.shareList = owners } == .notPermitted(.noShare))
                // A list that raises its author's letters.
                let raised = try model.list(["ben": letters, "cleo": .all], on: 10, after: before, by: "ben")
                #expect(try model.refusal(10) { $0.shareList = raised } != nil)
            }
        }
    }

    @Test("A10: a list that is forged, replayed or skips one is refused, also from the owner")
    func ownerLists() throws {
        let model = try BranchModel.shared(with: .readWrite)
        let before = try #require(model.records[Self.root]?.shareList)
        let next = try model.list(["ben": .read, "cleo": .readWrite], on: 10, after: before)
        #expect(try model.refusal(10, by: "ann") { $0.shareList = next } == nil)
        let unsigned = PutProof(isSigned: true, listFault: .notSigned)
        #expect(try model.refusal(10, by: "ann", unsigned) { $0.shareList = next } == .badShareList(.notSigned))
        #expect(try model.refusal(10, by: "ann", unsigned) == nil, "the list that is stored was verified before")
        for list in [
            try model.list(["ben": .all], on: 10),
            try model.list(["ben": .read], on: 10, after: next), try model.list(["ben": .read], on: 11, after: before),
        ] {
            #expect(try model.refusal(10, by: "ann") { $0.shareList = list } == .badShareList(.notNext))
        }
        #expect(
            try model.refusal(11, by: "ann") { $0.shareList = before } == .nestedShareList, "copied to another node")
        // The end of sharing.
        #expect(try model.put(10, by: "ann") { $0.shareList = nil } == .success(BranchChange(before: Self.root)))
    }

    @Test("a list is below home, and neither above nor below another one; nor does a move make it so")
    func nested() throws {
        let model = try BranchModel.shared(with: .readWrite)
        func share(_ number: Int, below parent: NodeParent? = nil) throws -> TreeRefusal? {
            let list = try model.list(["cleo": .read], on: number)
            return try model.refusal(number, below: parent, by: "ann") { $0.shareList = list }
        }
        #expect(try share(2) == nil)
        #expect(try share(30, below: .trunk(.home)) == nil)
        for number in [11, 13, 21] { #expect(try share(number) == .nestedShareList, "below one") }
        #expect(try share(1) == .nestedShareList, "above one")
        for trunk in [Trunk.prefs, .inbox, .outbox] { #expect(try share(30, below: .trunk(trunk)) == .nestedShareList) }
        // Moves.
        for parent in [NodeParent.node(Self.root), .node(BranchModel.id(11)), .trunk(.outbox), .trunk(.prefs)] {
            #expect(try model.refusal(20, below: parent, by: "ann") == .nestedShareList, "a root")
            #expect(try model.refusal(1, below: parent, by: "ann") == .nestedShareList, "a node above one")
        }
        #expect(
            try model.put(20, below: .trunk(.home), by: "ann")
                == .success(
                    BranchChange(before: BranchModel.id(20), after: BranchModel.id(20))))
        #expect(try model.put(2, below: .trunk(.outbox), by: "ann") == .success(BranchChange()))
        #expect(try model.refusal(13, by: "cleo") { $0.shareList = try model.list([:], on: 13) } == .nestedShareList)
    }

    @Test("a tree has 1,000 lists")
    func count() throws {
        var model = try BranchModel()
        for number in 1...TreeLimits.shareListsMax {
            try model.add(number, below: .trunk(.home), list: model.list([:], on: number))
        }
        try model.add(2_000, below: .trunk(.home))
        let list = try model.list(["ben": .read], on: 2_000)
        #expect(try model.refusal(2_000, by: "ann") { $0.shareList = list } == .tooManyShareLists)
        #expect(try model.refusal(7, by: "ann") == nil)
    }

    @Test("moves in, within and out: the audiences before and after, and the creator while the node stays")
    func moves() throws {
        let model = try BranchModel.shared(with: .readWrite)
        let ben = try UserID("ben")
        #expect(try model.put(2, below: .node(Self.root), by: "ann") == .success(BranchChange(after: Self.root)))
        #expect(
            try model.put(12, below: .trunk(.home), by: "ann", PutProof()) == .success(BranchChange(before: Self.root)))
        let within = BranchChange(before: Self.root, after: Self.root, creator: ben)
        #expect(try model.put(12, below: .node(BranchModel.id(11)), by: "cleo") == .success(within))
        #expect(
            try model.put(12, below: .node(BranchModel.id(20)), by: "ann")
                == .success(
                    BranchChange(before: Self.root, after: BranchModel.id(20))))
        #expect(try model.put(30, by: "ben") == .success(BranchChange(after: Self.root, creator: ben)))
    }

    @Test("U permits one child of the root, and another once that is gone")
    func oneChild() throws {
        var model = try BranchModel.shared(with: [.read, .oneChild, .burnOwn])
        #expect(try model.refusal(30) == .notPermitted(.noWrite))
        model.records[BranchModel.id(12)] = nil
        #expect(try model.refusal(30) == nil)
        #expect(try model.refusal(31, below: .node(BranchModel.id(11))) == .notPermitted(.noWrite), "the root's only")
    }

    @Test("S12: a deposit is wrapped for the owner under the tag of its id; its author sees nothing else")
    func deposits() throws {
        let model = try BranchModel.shared(with: .deposit)
        let owner = model.place.owner
        func wrap(for user: UserID) -> RecordWrap {
            RecordWrap(.user(user, keyID: "k"), sealed: [1] + [UInt8](repeating: 0, count: KeyWrap.bytesCount - 1))
        }
        func deposit(_ change: (inout NodeRecord) throws -> Void = { _ in }) throws -> TreeRefusal? {
            try model.refusal(30) { record in
                (record.wraps, record.tag) = ([wrap(for: owner)], NodeTag(inInbox: BranchModel.id(30)))
                try change(&record)
            }
        }
        #expect(try deposit() == nil)
        #expect(try deposit { $0.wraps = [wrap(for: try UserID("dora"))] } == .notPermitted(.noWrite))
        #expect(try deposit { $0.wraps.append(wrap(for: try UserID("dora"))) } == .notPermitted(.noWrite))
        #expect(try deposit { $0.tag = try model.made(.trunk(.home), 1).tag } == .notPermitted(.noWrite))
        #expect(try model.refusal(30) == .notPermitted(.noWrite), "it does not have the root's key")
        #expect(try model.refusal(30, below: .node(BranchModel.id(12))) == nil, "an attachment of its own deposit")
        #expect(try model.refusal(30, below: .node(BranchModel.id(11))) == .parentMissing)
        #expect(try model.refusal(12) == .notPermitted(.noWrite), "written once")
        #expect(try model.refusal(12) { $0.base = 0 } == .repeated, "a repetition does not learn the version")
        #expect(try model.refusal(11) == .nodeMissing)
        #expect(try model.removal(12) == nil && model.removal(11) == .nodeMissing)
        // A new node of every other member has the key under its parent's.
        let reader = try BranchModel.shared(with: .readWrite)
        #expect(try reader.refusal(30) { $0.wraps = [wrap(for: owner)] } == .notPermitted(.noWrite))
        #expect(try reader.refusal(30) { $0.wraps.append(wrap(for: try UserID("dora"))) } == .notPermitted(.noWrite))
        #expect(try reader.refusal(11) { $0.wraps.append(wrap(for: try UserID("dora"))) } == .notPermitted(.noWrite))
    }
}
