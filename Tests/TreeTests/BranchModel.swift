import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

/// A tree in memory with shared branches: nodes by number, each with its record.
struct BranchModel: BranchView {
    static let owner = "ann"
    let place: TreePlace
    var records = [NodeID: NodeRecord]()

    init() throws { place = TreePlace(app: try AppID("notes"), owner: try UserID(Self.owner)) }

    var listRoots: Set<NodeID> { Set(records.filter { $0.value.shareList != nil }.keys) }
    func record(of node: NodeID) -> NodeRecord? { records[node] }
    func version(of node: NodeID) -> Version { records[node].map { $0.base + 1 } ?? 0 }
    func parent(of node: NodeID) -> NodeParent? { records[node]?.parent }
    func children(of parent: NodeID) -> [NodeRecord] { records.values.filter { $0.parent == .node(parent) } }
    func hasChild(of parent: NodeID, by user: UserID) -> Bool {
        children(of: parent).contains { $0.stamps.sender == user }
    }
    func child(of parent: NodeParent, tagged tag: NodeTag) -> NodeID? {
        records.first { $0.value.parent == parent && $0.value.tag == tag }?.key
    }
    func height(of node: NodeID, upTo bound: Int) -> Int {
        records.filter { $0.value.parent == .node(node) }.keys.map { 1 + height(of: $0, upTo: bound) }.max() ?? 0
    }

    static func id(_ number: Int) -> NodeID { NodeID(UInt128(number)) }

    /// A record with the form of one; nothing in it is sealed.
    func made(_ parent: NodeParent, _ number: Int, content: Bool = false) throws -> NodeRecord {
        let wrap = RecordWrap(.parent, sealed: [1] + [UInt8](repeating: 0, count: TreeLimits.parentWrapBytes - 1))
        var record = NodeRecord(
            parent: parent, tag: try NodeTag(of: Array("n\(number)".utf8), salt: []), epoch: 0, wraps: [wrap],
            commitment: [UInt8](repeating: 2, count: NodeKey.bytesCount), base: version(of: Self.id(number)))
        if content { record.data = .blob(DataID(UInt128(7)), length: 100, blob: BlobID(UInt128(8))) }
        return record
    }

    /// Puts a node into the tree, without checks.
    mutating func add(_ number: Int, below parent: NodeParent, from sender: String? = nil, list: ShareList? = nil)
        throws
    {
        var record = try made(parent, number)
        record.shareList = list
        record.stamps.sender = try sender.map { try UserID($0) }
        records[Self.id(number)] = record
    }

    /// A list with one member, which nothing has signed.
    func list(
        _ members: [String: SharePermissions], on root: Int, after before: ShareList? = nil, by author: String = owner
    ) throws -> ShareList {
        ShareList(
            version: (before?.version ?? 0) + 1, epoch: 0, commitment: [UInt8](repeating: 2, count: 32),
            members: try members.sorted { $0.key < $1.key }.map {
                ShareList.Member(try UserID($0.key), $0.value, keyID: "k-" + $0.key)
            },
            grants: before?.grants ?? [], previous: before?.digest(at: ShareList.Place(place, root: Self.id(root))),
            signature: try RecordSignature(
                author: UserID(author), keyID: "k-" + author, octets: [UInt8](repeating: 0, count: 64)))
    }

    /// The tree of the tests: 1 is private with 2 below it; 10 is a root with 11 (the owner's), 12 (ben's) with 13
    /// (cleo's) below it; 20 is the root of another branch with 21.
    static func shared(with letters: SharePermissions, grants: [ShareList.Grant] = []) throws -> BranchModel {
        var model = try BranchModel()
        try model.add(1, below: .trunk(.home))
        try model.add(2, below: .node(id(1)))
        var list = try model.list(["ben": letters, "cleo": .readWrite], on: 10)
        list.grants = grants
        try model.add(10, below: .trunk(.home), list: list)
        try model.add(11, below: .node(id(10)))
        try model.add(12, below: .node(id(10)), from: "ben")
        try model.add(13, below: .node(id(12)), from: "cleo")
        try model.add(20, below: .node(id(1)), list: model.list(["cleo": .all], on: 20))
        try model.add(21, below: .node(id(20)))
        return model
    }

    func check(_ user: String) throws -> BranchCheck {
        let user = try UserID(user)
        return BranchCheck(user == place.owner ? .owner : .member(user, root: Self.id(10)), in: place)
    }

    static let signed = PutProof(isSigned: true, listFault: nil)

    /// The verdict of a put by a user; the record is changed before.
    func put(
        _ number: Int, below parent: NodeParent? = nil, by user: String = "ben", content: Bool = false,
        _ proof: PutProof = signed, _ change: (inout NodeRecord) throws -> Void = { _ in }
    ) throws -> BranchCheck.Verdict {
        let known = records[Self.id(number)]
        var record = try made(parent ?? known?.parent ?? .node(Self.id(10)), number, content: content)
        record.shareList = known?.shareList
        try change(&record)
        return try check(user).put(record, at: Self.id(number), replacing: record.base, proof, in: self)
    }

    func refusal(
        _ number: Int, below parent: NodeParent? = nil, by user: String = "ben", content: Bool = false,
        _ proof: PutProof = signed, _ change: (inout NodeRecord) throws -> Void = { _ in }
    ) throws -> TreeRefusal? {
        guard case .failure(let refusal) = try put(number, below: parent, by: user, content: content, proof, change)
        else { return nil }
        return refusal
    }

    func removal(_ number: Int, by user: String = "ben") throws -> TreeRefusal? {
        guard case .failure(let refusal) = try check(user).removal(of: Self.id(number), in: self) else { return nil }
        return refusal
    }
}
