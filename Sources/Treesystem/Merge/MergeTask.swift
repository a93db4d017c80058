import ThicketTree
import ThicketTreeShape

/// What the tree wants done about contents that are merged.
package enum MergeAction: Sendable, Equatable {
    /// Read the base of a node from the cache, and keep it; report `ContentMerges.keep`.
    case keepBase(NodeID)
    /// Merge the contents of a node; report `ContentMerges.adopt`, `refuse` or `postpone`.
    case merge(NodeID)

    static func start(_ action: MergeAction, _ tree: isolated Treesystem) {
        switch action {
        case .keepBase(let node): MergeJob.keepBase(of: node, tree)
        case .merge(let node): MergeJob.merge(node, tree)
        }
    }
}

/// A merge that is to be made: contents, or where they are. A class, as `MergeContents`.
final class MergeTask: Sendable {
    /// Where a content is.
    enum Source: Sendable {
        case content(NodeContent)
        /// In a file with all its chunks, if this device has it.
        case sealed(ContentSpool)
        case none

        init(_ base: MergeBase) {
            self = base.content.map { .content($0) } ?? base.plan.map { .sealed($0) } ?? .none
        }

        /// Whether both name the same version.
        static func == (left: Source, right: Source) -> Bool {
            switch (left, right) {
            case (.content(let left), .content(let right)): left == right
            case (.sealed(let left), .sealed(let right)): left.id == right.id
            case (.none, .none): true
            default: false
            }
        }
    }

    /// A content that waits here.
    struct Own: Sendable {
        let operation: OperationID
        let source: Source

        static func == (left: Own, right: Own) -> Bool {
            left.operation == right.operation && left.source == right.source
        }
    }

    let node: Node
    let path: TreePath
    let base: Source
    /// The version of the other device's content.
    let theirs: DataID
    /// That content; nil for one in a blob.
    let theirContent: NodeContent?
    /// What waits here, each made from the one before, the first one from the base.
    let own: [Own]

    init(
        node: Node, path: TreePath, base: Source, theirs: DataID, theirContent: NodeContent?, own: [Own]
    ) {
        (self.node, self.path, self.base, self.theirs) = (node, path, base, theirs)
        (self.theirContent, self.own) = (theirContent, own)
    }
}

/// The contents of a merge, and what became of them. Pure.
///
/// A class, so that it is one word: see `ContentChange`.
final class MergeContents: Sendable {
    let base: NodeContent
    /// What waits here, each made from the one before, the first one from the base.
    let own: [NodeContent]
    let theirs: NodeContent
    let rule: MergeRule

    init(base: NodeContent, own: [NodeContent], theirs: NodeContent, rule: MergeRule) {
        (self.base, self.own, self.theirs, self.rule) = (base, own, theirs, rule)
    }

    /// Merges all that waits, one after the other.
    ///
    /// - Returns: nil when the rule does not merge them.
    var merged: MergedContents? {
        guard let merge = rule.merge else { return nil }
        var (before, other) = (base, theirs)
        var (contents, lacksChanges) = ([NodeContent](), false)
        for content in own {
            guard let outcome = try? merge(before, content, other) else { return nil }
            contents.append(outcome.content)
            lacksChanges = lacksChanges || outcome.lacksChanges
            (before, other) = (content, outcome.content)
        }
        return MergedContents(contents, lacksChanges: lacksChanges)
    }
}

/// What a rule made of each content that waits here. A class, as `MergeContents`.
final class MergedContents: Sendable {
    let contents: [NodeContent]
    /// Whether one lacks something that the other device has changed.
    let lacksChanges: Bool

    init(_ contents: [NodeContent], lacksChanges: Bool) {
        (self.contents, self.lacksChanges) = (contents, lacksChanges)
    }
}

/// What a merge made of each of its contents.
final class MergeResult: Sendable {
    enum Content: Sendable {
        /// The other device's content, without anything of this device.
        case theirs
        /// For the record.
        case held(NodeContent)
        /// In a sealed file.
        case spooled(SpoolRecord)
    }

    let contents: [Content]
    /// Whether one lacks something that the other device has changed.
    let lacksChanges: Bool

    init(_ contents: [Content], lacksChanges: Bool) { (self.contents, self.lacksChanges) = (contents, lacksChanges) }
}
