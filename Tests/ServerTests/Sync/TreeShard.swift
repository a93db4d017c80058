import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// Records that have the form of records; nothing in them is sealed.
enum NodeText {
    static func id(_ number: Int) -> NodeID { NodeID(UInt128(number)) }

    static func key(_ number: Int) -> String { id(number).text }

    static func record(
        _ parent: NodeParent, _ name: String, base: Version = 0, fill: UInt8 = 0
    ) throws -> NodeRecord {
        let wrap = RecordWrap(.parent, sealed: [1] + [UInt8](repeating: fill, count: TreeLimits.parentWrapBytes - 1))
        let metadata: Int = SealedMessage.extraBytes + TreeLimits.metadataStep
        return NodeRecord(
            parent: parent, tag: try NodeTag(of: Array(name.utf8), salt: []), epoch: 0, wraps: [wrap],
            commitment: [UInt8](repeating: 2, count: NodeKey.bytesCount),
            metadata: [1] + [UInt8](repeating: fill, count: metadata - 1), base: base)
    }
}

extension Answer {
    /// A refusal by a tree.
    static func refused(_ reason: RefusalReason, current: Version? = nil) -> Answer {
        var answer = Answer.error(reason.code.rawValue)
        (answer.reason, answer.current) = (reason.rawValue, current)
        return answer
    }
}

/// A shard whose bucket is a tree.
extension TestShard {
    static func tree(
        _ memory: Memory = .warm, store: (any Store)? = nil, _ adjust: (inout ShardSettings) -> Void = { _ in }
    ) throws -> TestShard {
        let shard = try TestShard(memory, store: store, name: BucketMode.treeName, adjust)
        shard.choose(.tree)
        return shard
    }

    /// A record as a device sends it in `d`.
    func writing(
        _ number: Int, below parent: NodeParent = .trunk(.home), _ name: String, sv: Version = 0, ccid: String? = nil
    ) throws -> SubmittedChange {
        try submission(
            NodeText.key(number), sv: sv == 0 ? nil : sv,
            d: .object(try NodeText.record(parent, name, base: sv).object), ccid: ccid)
    }

    func removing(_ number: Int, sv: Version?, ccid: String? = nil) throws -> SubmittedChange {
        try submission(NodeText.key(number), .remove, sv: sv, ccid: ccid)
    }

    @discardableResult
    func write(
        _ number: Int, below parent: NodeParent = .trunk(.home), _ name: String, sv: Version = 0
    ) throws -> Answer { try group([writing(number, below: parent, name, sv: sv)]).first ?? Answer() }

    @discardableResult
    func remove(_ number: Int, sv: Version?) throws -> Answer {
        try group([removing(number, sv: sv)]).first ?? Answer()
    }

    /// A chain of nodes 1, 2, … below home.
    func writeChain(_ count: Int) throws {
        try group(
            (1...count).map { number in
                try writing(number, below: number == 1 ? .trunk(.home) : .node(NodeText.id(number - 1)), "n")
            })
    }

    /// The place of a node as the store has it.
    func place(_ number: Int) throws -> NodePlace? {
        let reader: any StoreReader = try store.makeReader()
        return try reader.bucket(bucket).flatMap { try reader.place(of: NodeText.id(number), in: $0.row) }
    }

    /// The stored record with stamps.
    func record(_ number: Int) throws -> NodeRecord? {
        try stored(NodeText.key(number))?.objectValue.map { try NodeRecord($0, from: .server) }
    }
}

extension NodeParent {
    static func child(_ number: Int) -> NodeParent { .node(NodeText.id(number)) }
}
