public import ThicketTree

/// Bounds of merges.
public enum MergeLimits {
    /// Bytes of a content, its header included, up to which contents are merged: each of the three sides.
    public static let contentBytesMax = 1 << 20
    /// Bytes of all contents that are kept as bases of waiting changes. Changes beyond are not merged: they wait for
    /// the app when another device has changed the content too.
    public static let basesBytesMax = 64 << 20
    /// Merges that run at a time in one tree.
    public static let runningMax = 4
}

/// A content that knows how two changes of it become one: an app's own rule in place of that for JSON.
///
/// The values are pure: `merged` is called outside of transactions, perhaps more than once for the same contents, and
/// never on the tree's thread. Its laws: for two equal sides, that side; for a side that is equal to the base, the
/// other one. What only one side has changed must be in the result. `ThreeWay` has the parts of which most rules are
/// made.
///
/// ```swift
/// struct Recipe: Mergeable {
///     var title: String
///     var tags: [String]
///
///     static func merged(base: Recipe, local: Recipe, remote: Recipe) -> Recipe {
///         Recipe(
///             title: ThreeWay.value(base.title, local.title, remote.title),
///             tags: ThreeWay.set(base.tags, local.tags, remote.tags))
///     }
///     …
/// }
/// ```
public protocol Mergeable: Sendable {
    /// Reads a content.
    ///
    /// - Throws: for a content that is not one of this kind: then nothing is merged, and the change waits for the app.
    init(merging content: NodeContent) throws
    /// The content with this value.
    var mergedContent: NodeContent { get throws }
    /// What two devices made of one value, as one value.
    ///
    /// - Parameters:
    ///   - base: what both were made from.
    ///   - local: this device's, which wins where only one can stay.
    ///   - remote: that of the other device.
    /// - Throws: where the result cannot hold both; then nothing is merged, and the change waits for the app.
    static func merged(base: Self, local: Self, remote: Self) throws -> Self
}

/// How the content of a node is merged when this device and another one have changed it.
public struct MergeRule: Sendable {
    /// What a merge gives.
    struct Outcome: Sendable, Equatable {
        var content: NodeContent
        /// Whether the content lacks something that the other device has changed.
        var lacksChanges = false
    }

    /// nil: contents are not merged.
    let merge: (@Sendable (_ base: NodeContent, _ local: NodeContent, _ remote: NodeContent) throws -> Outcome)?

    /// Contents are never merged: the change of this device waits for the app (`TreeConflict.data`).
    public static let none = MergeRule(merge: nil)

    /// JSON is merged by members, elements and characters (`JSONMerge`). Other contents are not, and neither are two
    /// changes of which only one can stay, such as two numbers: then the content of this device, with all changes of
    /// the other one that fit, waits for the app.
    public static let json = MergeRule { try JSONContents.merged(base: $0, local: $1, remote: $2) }

    /// As `json`; where only one change can stay, this device's does, and nothing waits. The other one is lost.
    public static let jsonKeepingLocal = MergeRule {
        Outcome(content: try JSONContents.merged(base: $0, local: $1, remote: $2).content)
    }

    private init(merge: (@Sendable (NodeContent, NodeContent, NodeContent) throws -> Outcome)?) { self.merge = merge }

    /// The rule of an app's type.
    public init<Content: Mergeable>(_ type: Content.Type) {
        merge = { base, local, remote in
            let merged = try Content.merged(
                base: Content(merging: base), local: Content(merging: local), remote: Content(merging: remote))
            return Outcome(content: try merged.mergedContent)
        }
    }
}
