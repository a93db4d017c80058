public import ThicketProtocol

/// The answer to a batch.
public enum TreeBatchAnswer: Sendable, Hashable {
    /// All operations are made and on disk: `{"cv":…,"ops":[…]}`. `position` is that of the last change in the log of
    /// the caller's tree, or the newest one if the batch changed nothing there; results are in the order of the
    /// operations.
    case made(position: ChangeVersion, results: [TreeOperationResult])
    /// No operation is made.
    case refused(BatchRefusal)

    /// Reads the body of an answer.
    ///
    /// - Throws: `TreeCallFault` for every deviation, and for an answer that is not about the batch, such as that to a
    ///   token that is not valid.
    public init(parsing text: [UInt8]) throws(TreeCallFault) {
        let value = try CallObject.parse(text, bytesMax: Self.bytesMax, maxDepth: TreeLimits.batchDepthMax)
        guard value["error"] == nil else {
            self = .refused(try BatchRefusal(value))
            return
        }
        let object = try CallObject(value, ["cv", "ops"])
        var results = [TreeOperationResult]()
        for result in try object.list("ops") { results.append(try TreeOperationResult(result)) }
        guard !results.isEmpty, results.count <= TreeLimits.batchOperationsMax else { throw .badValue("ops") }
        self = .made(position: try object.position("cv"), results: results)
    }

    /// Bytes of an answer: `TreeLimits.batchOperationsMax` results, and the listed survivors.
    private static let bytesMax = 262_144

    /// The answer as JSON, in its written form.
    public var object: JSONObject {
        switch self {
        case .made(let position, let results):
            ["cv": .string(position.text), "ops": .array(results.map(\.json))]
        case .refused(let refusal): refusal.object
        }
    }
}

/// What one operation of a batch has done.
public enum TreeOperationResult: Sendable, Hashable {
    /// `put`, `copy` and `delete`: the node's version after it, `{"ev":…}`.
    case version(Version)
    /// `deleteTree` and `burn`: `{"removed":…,"left":…,"kept":[…],"more":…}`.
    case branch(BranchOutcome)

    init(_ value: JSONValue) throws(TreeCallFault) {
        guard value["ev"] == nil else {
            let object = try CallObject(value, ["ev"])
            self = .version(try object.number("ev", 1...TreeLimits.versionMax))
            return
        }
        self = .branch(try BranchOutcome(value))
    }

    var json: JSONValue {
        switch self {
        case .version(let version): ["ev": .version(version)]
        case .branch(let outcome): outcome.json
        }
    }
}

/// What the removal of a branch has left.
public struct BranchOutcome: Sendable, Hashable {
    /// Nodes that are removed.
    public var removed: Int
    /// Nodes that are kept, with those between them and the root, as far as the branch was visited.
    public var left: Int
    /// The first of them, at most `TreeLimits.survivorsListedMax`.
    public var kept: [NodeID]
    /// Whether the branch was too large: the same removal, in a batch with another id, removes more of it.
    public var hasMore: Bool

    /// An outcome.
    public init(removed: Int, left: Int, kept: [NodeID], hasMore: Bool) {
        (self.removed, self.left, self.kept, self.hasMore) = (removed, left, kept, hasMore)
    }

    init(_ value: JSONValue) throws(TreeCallFault) {
        let object = try CallObject(value, ["removed", "left", "kept", "more"])
        let counts = 0...TreeLimits.versionMax
        var kept = [NodeID]()
        for element in try object.list("kept") {
            guard let node = element.stringValue.flatMap(NodeID.init(text:)) else { throw .badValue("kept") }
            kept.append(node)
        }
        let left = Int(try object.number("left", counts))
        guard kept.count <= min(left, TreeLimits.survivorsListedMax) else { throw .badValue("kept") }
        self.init(
            removed: Int(try object.number("removed", counts)), left: left, kept: kept, hasMore: try object.flag("more")
        )
    }

    var json: JSONValue {
        [
            "removed": .count(removed), "left": .count(left), "kept": .array(kept.map { .string($0.text) }),
            "more": .bool(hasMore),
        ]
    }
}
