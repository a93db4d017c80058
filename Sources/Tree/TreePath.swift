public import ThicketTreeShape

/// A place in a tree: a trunk, and the names of the nodes from it down. Never a joined text: a name may contain `/`.
///
/// Two paths are equal if their names have the same bytes; `isSame` also ignores case.
public struct TreePath: Sendable, Hashable {
    /// The trunk at which the path begins.
    public let trunk: Trunk
    /// The names below it, the outermost first; empty for the trunk itself.
    public let names: [NodeName]

    /// A path of names that were checked.
    public init(_ trunk: Trunk, names: [NodeName] = []) { (self.trunk, self.names) = (trunk, names) }

    /// A path of names.
    ///
    /// - Throws: `NodeName.Fault` for the first text that is not a name.
    public init(_ trunk: Trunk, _ names: [String]) throws(NodeName.Fault) {
        var checked = [NodeName]()
        checked.reserveCapacity(names.count)
        for name in names { checked.append(try NodeName(name)) }
        self.init(trunk, names: checked)
    }

    /// The path of a child.
    public func appending(_ name: NodeName) -> TreePath { TreePath(trunk, names: names + [name]) }

    /// The path of a child.
    ///
    /// - Throws: `NodeName.Fault` for a text that is not a name.
    public func appending(_ name: String) throws(NodeName.Fault) -> TreePath { appending(try NodeName(name)) }

    /// The path of the parent; nil for a trunk.
    public var parent: TreePath? { isTrunk ? nil : TreePath(trunk, names: names.dropLast()) }
    /// The last name; nil for a trunk.
    public var name: NodeName? { names.last }
    /// Whether the path has no names.
    public var isTrunk: Bool { names.isEmpty }
    /// Levels below the trunk; 0 for the trunk. A tree has at most `TreeLimits.depthMax`.
    public var depth: Int { names.count }

    /// Whether both paths lead to the same node: the same trunk, and names that are the same by `NodeName.isSame`.
    public func isSame(as other: TreePath) -> Bool {
        trunk == other.trunk && depth == other.depth && zip(names, other.names).allSatisfy { $0.isSame(as: $1) }
    }
}

extension TreePath: CustomStringConvertible {
    /// Why a text is not the displayed form of a path.
    public enum DisplayFault: Error, Sendable, Hashable, CustomStringConvertible {
        /// It does not begin with the name of a trunk.
        case noTrunk
        /// `\` is followed by another character than `/` and `\`, or is the last one.
        case badEscape
        /// A name is not one; `//` and a `/` at the end contain an empty one.
        case badName(NodeName.Fault)

        /// A sentence without content of the text.
        public var description: String {
            switch self {
            case .noTrunk: "a path begins with \(Trunk.allCases.map(\.rawValue).joined(separator: ", "))"
            case .badEscape: #"\ in a path is followed by / or \"#
            case .badName(let fault): fault.description
            }
        }
    }

    private static let separator: UInt8 = 0x2F
    private static let escape: UInt8 = 0x5C

    /// The path for people: trunk and names joined by `/`; `/` and `\` in names have a `\` in front.
    public var description: String {
        var text = Array(trunk.rawValue.utf8)
        for name in names {
            text.append(Self.separator)
            for byte in name.text.utf8 {
                if byte == Self.separator || byte == Self.escape { text.append(Self.escape) }
                text.append(byte)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads what `description` writes. Only for a command line or a text that a user types: code makes paths of names.
    ///
    /// - Throws: `DisplayFault`.
    public init(display text: String) throws(DisplayFault) {
        var parts: [[UInt8]] = [[]]
        var isEscaped = false
        for byte in text.utf8 {
            if isEscaped {
                guard byte == Self.separator || byte == Self.escape else { throw .badEscape }
                parts[parts.count - 1].append(byte)
                isEscaped = false
            } else if byte == Self.escape {
                isEscaped = true
            } else if byte == Self.separator {
                parts.append([])
            } else {
                parts[parts.count - 1].append(byte)
            }
        }
        guard !isEscaped else { throw .badEscape }
        guard let trunk = Trunk(rawValue: String(decoding: parts[0], as: UTF8.self)) else { throw .noTrunk }
        var names = [NodeName]()
        for part in parts.dropFirst() {
            do throws(NodeName.Fault) { names.append(try NodeName(octets: part)) } catch { throw .badName(error) }
        }
        self.init(trunk, names: names)
    }
}
