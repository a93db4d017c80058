/// A change's `v` with everything that can be known of it before its object is: for changes so large that whoever decides
/// them is to have little left to do.
public final class ReadDiff: Sendable {
    /// `v` as it came.
    public let node: JSONNode
    /// What it is if it only sets keys and is written as ours are; nil for any other.
    public let setting: SettingDiff?
    /// The diff, or why it is none.
    public let diff: Result<ObjectDiff, DiffError>

    /// Bytes that it holds, roughly: the text, its index, and the values made of it.
    public var memory: Int { node.rawBytes.count + node.words * Self.bytesOfWord }

    /// A word of the index, and what is made of the value that it stands for.
    private static let bytesOfWord: Int = 48

    public init(_ node: JSONNode) {
        self.node = node
        setting = SettingDiff(node)
        diff = Result { () throws(DiffError) in try ObjectDiff(node) }
    }
}

extension ObjectDiff {
    /// Reads a change's `v`, in whichever form it is at hand.
    public init(_ fragment: JSONFragment) throws(DiffError) {
        switch fragment {
        case .node(let node): try self.init(node)
        case .diff(let read): self = try read.diff.get()
        case .value, .bytes: try self.init(fragment.value)
        }
    }
}

extension JSONFragment {
    /// A change's `v` as its sender wrote it, when it only sets keys and is written as our own writer would.
    public var setting: (diff: SettingDiff, node: JSONNode)? {
        switch self {
        case .node(let node): SettingDiff(node).map { ($0, node) }
        case .diff(let read): read.setting.map { ($0, read.node) }
        case .value, .bytes: nil
        }
    }

    /// The same with a change's `v` read as a diff.
    public var readAsDiff: JSONFragment {
        if case .node(let node) = self { return .diff(ReadDiff(node)) }
        return self
    }
}
