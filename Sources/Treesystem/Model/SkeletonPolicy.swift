/// How much of a tree a new device reads.
public enum SkeletonPolicy: Sendable, Hashable {
    /// All nodes.
    case full
    /// The nodes of this many levels below the trunks, from 1; the children of others are read when they are asked for
    /// (`Treesystem.load`). A device that was full stays full.
    case lazy(depth: Int)

    var depth: Int? { if case .lazy(let depth) = self { max(1, depth) } else { nil } }
}
