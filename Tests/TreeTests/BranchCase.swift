import Testing
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

@testable import ThicketTree
@testable import ThicketTreeShape

/// Ann's tree with a folder that she shares with others, with keys from a seed.
struct BranchCase {
    let ann: TreeCase
    let people: [UserID: MessageIdentity]
    let place: ShareList.Place
    let root: OpenedNode

    init(seed: UInt64) throws {
        ann = try TreeCase(seed: seed, owner: "ann")
        var people = [UserID: MessageIdentity]()
        for (number, name) in ["ann", "ben", "cleo", "dora"].enumerated() {
            people[try UserID(name)] = try MessageCase.identity(name, seed: UInt8(number) + 1)
        }
        self.people = people
        root = try ann.node("album", below: ann.home)
        place = ShareList.Place(ann.tree, root: root.id)
    }

    func person(_ name: String) throws -> MessageIdentity { try #require(people[UserID(name)]) }

    /// Verified keys of all accounts, by their id.
    func key(_ user: UserID, _ keyID: String) -> BranchState.KnownKey {
        guard let keys = people[user]?.keys, keys.id == keyID else { return .absent }
        return .verified(keys.identity)
    }

    /// Newest keys of all accounts.
    var newest: [UserID: PublicKeys] { people.mapValues(\.keys) }

    func change(_ letters: [String: String]) throws -> ShareChange {
        var members = [UserID: SharePermissions]()
        for (name, text) in letters { members[try UserID(name)] = SharePermissions(text: text) ?? [] }
        return ShareChange(members)
    }

    /// The root with a changed list, as the owner reads it again.
    func shared(
        _ letters: [String: String], _ node: OpenedNode? = nil, version: Version = 1, by author: String = "ann"
    ) throws -> OpenedNode {
        let node = node ?? root
        let record = try ann.sealer.share(
            node, change(letters), keys: newest, below: author == "ann" ? ann.home : nil, replacing: version,
            by: person(author))
        return try ann.opener.open(record.sent(), node.id, below: ann.home)
    }

    /// The root as a member opens it.
    func opened(_ record: NodeRecord, by name: String) throws -> OpenedNode {
        try NodeOpener(ann.tree, identity: person(name)).openRoot(record.sent(), root.id)
    }

    /// A state that believes the list of a root.
    func state(_ node: OpenedNode) throws -> BranchState {
        var state = BranchState(place)
        let list = try #require(node.record.shareList)
        #expect(state.judge(list, key) == .believed)
        state.believe(list)
        return state
    }

    func arrival(_ version: Version, known: Version = 0, isListed: Bool = false) -> BranchState.Arrival {
        BranchState.Arrival(version: version, known: known, isListed: isListed, isFromBefore: false)
    }
}
