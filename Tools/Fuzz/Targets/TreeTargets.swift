import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A record of a node: one that is accepted is written so that it is read again, and opens for no foreign key.
public func fuzzTreeRecord(_ bytes: [UInt8]) {
    guard let record = try? NodeRecord(parsing: bytes, from: .server) else {
        precondition((try? NodeRecord(parsing: bytes, from: .device)) == nil, "a device may write less than a server")
        return
    }
    let text = record.object.serialized()
    precondition(text.count <= TreeLimits.recordBytesMax + TreeLimits.stampBytesMax, "records are bounded")
    precondition((try? NodeRecord(parsing: text, from: .server)) == record, "what is written is read")
    precondition(record.wraps.count <= TreeLimits.wrapsMax, "wraps are bounded")
    for trunk in Trunk.allCases {
        precondition(
            (try? TreeScene.opener.open(record, NodeID(1), below: TreeScene.strangeKeys.parent(trunk))) == nil,
            "it opens for no foreign key")
    }
}

/// The body of a batch: one that is accepted is written so that it is read again.
public func fuzzTreeBatch(_ bytes: [UInt8]) {
    let batch: TreeBatch
    do throws(BatchFault) { batch = try TreeBatch(parsing: bytes) } catch {
        // A refusal has a form of its own, which a client reads.
        let refusal = TreeBatchAnswer.refused(BatchRefusal(error))
        precondition((try? TreeBatchAnswer(parsing: refusal.object.serialized())) == refusal, "a refusal is read")
        return
    }
    precondition((1...TreeLimits.batchOperationsMax).contains(batch.operations.count), "batches are bounded")
    precondition((try? TreeBatch(parsing: batch.object.serialized())) == batch, "what is written is read")
}

/// The answer to a batch.
public func fuzzTreeAnswer(_ bytes: [UInt8]) {
    guard let answer = try? TreeBatchAnswer(parsing: bytes) else { return }
    precondition((try? TreeBatchAnswer(parsing: answer.object.serialized())) == answer, "what is written is read")
}

/// A question for children: as a body, and as the parameters of an address.
public func fuzzTreeQuery(_ bytes: [UInt8]) {
    if let query = try? ChildrenQuery(parsing: bytes) {
        precondition(query.parents.count * query.limit <= TreeLimits.childrenMax, "an answer is bounded")
        precondition((try? ChildrenQuery(parsing: query.object.serialized())) == query, "what is written is read")
    }
    let pairs = String(decoding: bytes, as: UTF8.self).split(separator: "&").map {
        $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    }
    func value(_ name: StaticString) -> String? { pairs.first { $0[0] == "\(name)" && $0.count == 2 }?[1] }
    guard let query = try? ChildrenQuery(value) else { return }
    precondition(query.parents.count == 1 && query.limit <= TreeLimits.childrenMax, "an answer is bounded")
}

/// A page of children: one that is accepted is written so that it is read again.
public func fuzzTreePage(_ bytes: [UInt8]) {
    guard let page = try? ChildrenPage(parsing: bytes) else { return }
    precondition((try? ChildrenPage(parsing: page.object.serialized())) == page, "what is written is read")
}

/// The clear metadata of a node, from a device of a newer version or with a fault.
public func fuzzTreeMetadata(_ bytes: [UInt8]) {
    guard let metadata = try? NodeMetadata(octets: SecureBytes(copying: bytes)) else { return }
    precondition(
        (try? NodeMetadata(octets: metadata.octets))?.octets == metadata.octets, "what is written is read")
}

/// The header of a content, and the range of an answer with a part of a blob.
public func fuzzTreeContent(_ bytes: [UInt8]) {
    if let header = try? ContentHeader(octets: bytes) {
        precondition(header.octets == bytes, "a header has one form")
    }
    guard let range = HTTPBlobTransport.contentRange(String(decoding: bytes, as: UTF8.self)) else { return }
    precondition(range.first < range.total, "a range is inside of its blob")
}

/// The two trees of these targets: one whose records are in the corpus, and one with other keys.
enum TreeScene {
    static let place: TreePlace = {
        guard let app = try? AppID("notes"), let user = try? UserID("ann") else { preconditionFailure("both are ids") }
        return TreePlace(app: app, owner: user)
    }()
    static let keys = TreeKeys(secret: SecureBytes(copying: (0..<32).map { UInt8($0) }), tree: place)
    static let strangeKeys = TreeKeys(secret: SecureBytes(copying: [UInt8](repeating: 9, count: 32)), tree: place)
    static let contentKey = try? ContentKey(
        .aes256GCM, key: SecureBytes(copying: [UInt8](repeating: 5, count: 32)),
        dataID: [UInt8](repeating: 7, count: 16))
    static let opener = NodeOpener(place)
    /// Names of the nodes in the corpus: nothing else may be shown.
    static let names: Set<String> = ["a", "b", "c", "d", "e"]
}
