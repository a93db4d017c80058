import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// Records and lists of shared branches, signed as devices sign them.
extension TestDirectory {
    func keyID(_ name: String) throws -> String {
        newestKeys(of: try UserID(name), in: try AppID(Self.app))?.id ?? "none"
    }

    func place(_ root: Int) throws -> ShareList.Place {
        ShareList.Place(
            TreePlace(app: try AppID(Self.app), owner: try UserID(TestShard.ann)), root: NodeText.id(root))
    }

    /// A list, signed by its author.
    ///
    /// - Parameters:
    ///   - members: letters by name.
    ///   - root: the root that is signed.
    ///   - sharers: members with a grant of ann.
    func list(
        _ members: [String: String], on root: Int, after before: ShareList? = nil, by author: String = TestShard.ann,
        epoch: UInt32 = 0, sharers: [String] = []
    ) throws -> ShareList {
        let place = try place(root)
        var grants = [ShareList.Grant]()
        for name in sharers.sorted() {
            var grant = ShareList.Grant(
                try UserID(name), keyID: try keyID(name), fromEpoch: 0, ownerKeyID: try keyID(TestShard.ann),
                signature: [])
            grant.signature = try key(of: TestShard.ann)?.signature(of: ShareList.grantForm(grant, at: place)) ?? []
            grants.append(grant)
        }
        var list = ShareList(
            version: (before?.version ?? 0) + 1, epoch: epoch,
            commitment: [UInt8](repeating: UInt8(epoch + 2), count: NodeKey.bytesCount),
            members: try members.sorted { $0.key < $1.key }.map { member in
                ShareList.Member(
                    try UserID(member.key), SharePermissions(text: member.value) ?? [], keyID: try keyID(member.key))
            },
            grants: grants, previous: before?.digest(at: place),
            signature: try RecordSignature(pending: UserID(author), keyID: keyID(author)))
        if let key = try key(of: author) {
            list.signature = try RecordSignature(
                author: UserID(author), keyID: keyID(author), octets: key.signature(of: list.form(at: place)))
        }
        return list
    }

    /// A put into ann's tree, signed by its author.
    ///
    /// - Parameter parent: nil for home.
    func put(
        _ number: Int, by author: String = TestShard.ann, below parent: Int? = nil, sv: Version = 0,
        list: ShareList? = nil, epoch: UInt32 = 0, _ change: (inout NodeRecord) throws -> Void = { _ in }
    ) throws -> TreeOperation {
        let node = NodeText.id(number)
        var record = try NodeText.record(parent.map { .child($0) } ?? .trunk(.home), "n\(number)", base: sv)
        record.epoch = epoch
        if let list {
            (record.shareList, record.epoch, record.commitment) = (list, list.epoch, list.commitment)
            let sealed = [1] + [UInt8](repeating: 3, count: KeyWrap.bytesCount - 1)
            record.wraps += list.members.filter { $0.permissions.contains(.read) }.map {
                RecordWrap(.user($0.user, keyID: $0.keyID), sealed: sealed)
            }
        }
        try change(&record)
        record.signature = try RecordSignature(pending: UserID(author), keyID: keyID(author))
        if let key = try key(of: author) { try RecordSignature.sign(&record, node, in: try place(0).tree, with: key) }
        return .put(node, source: sv, record)
    }
}

/// Batches of members in a branch of ann's tree.
extension TestShard {
    func batch(
        _ id: Int, by name: String, in root: Int, _ operations: [TreeOperation], _ directory: TestDirectory?
    ) throws -> SubmittedChange {
        let batch = TreeBatch(id: BatchID(UInt128(id)), operations)
        var request = try TreeBatchRequest(parsing: JSONValue.object(batch.object).serialized())
        request.member = TreeBatchRequest.Member(try UserID(name), root: NodeText.id(root))
        let check = CopyCheck(
            request: request, caller: try UserID(name), owner: bucket.user, app: bucket.app, directory: directory)
        return SubmittedChange(
            origin: ChangeOrigin(connection: 2, channel: 0), bucket: bucket, clientID: try ClientID("web"),
            library: .other, canWrite: true,
            request: ChangeRequest(key: batch.id.text, ccid: batch.id.text, operation: .modify),
            now: 5_000 + Int64(id), batch: request.isReady ? request : check.checked())
    }

    @discardableResult
    func make(
        _ id: Int, by name: String, in root: Int, _ directory: TestDirectory?, _ operations: TreeOperation...
    ) throws -> BatchReply {
        try send(batch(id, by: name, in: root, operations, directory)).first ?? BatchReply()
    }

    /// The newest changes of the log, from the first or from the one after a position.
    func log(after position: GlobalID = 0) throws -> [ChangeRecord] {
        let reader = try store.makeReader()
        guard let bucket = try reader.bucket(bucket), bucket.head > 0 else { return [] }
        return try reader.changes(
            in: bucket.row, after: position, upTo: bucket.head, limit: 1_000, byteLimit: 1 << 22)?.changes ?? []
    }

    /// The list on a node, as the store has it.
    func list(on number: Int) throws -> ShareList? { try record(number)?.shareList }
}
