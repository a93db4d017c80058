import ThicketTree
import ThicketTreeShape

/// A content that the app handed over, sorted by what can be done with it now.
enum GivenContent {
    /// In the operation's row, which is durable.
    case local(LocalContent)
    /// Made when it is needed; lost when the program ends before.
    case promise(NodeSections)
    /// Sealed into a spool file at once.
    case spool(NodeSections)

    /// - Parameter sections: nil: the app is asked late, if it can be asked.
    init(_ sections: NodeSections?, canAsk: Bool) {
        guard let sections else {
            self = .local(canAsk ? .ask : .none)
            return
        }
        let parts = [sections.metadata, sections.thumbnail, sections.data].map { $0 ?? .none }
        if parts.contains(where: \.isPromise) {
            self = .promise(sections)
        } else if let bytes = Self.bytes(parts) {
            let content = NodeContent(metadata: bytes[0], thumbnail: bytes[1], data: bytes[2])
            let isInline = (try? ContentSpool(content, random: .system))?.isInline == true
            self = parts.allSatisfy(\.isNone) ? .local(.none) : isInline ? .local(.held(content)) : .spool(sections)
        } else if case .file(let path) = parts[2], parts[0].isNone, parts[1].isNone {
            self = .local(.source(path: path))
        } else {
            self = .spool(sections)
        }
    }

    private static func bytes(_ parts: [NodeData]) -> [[UInt8]]? {
        var all = [[UInt8]]()
        for part in parts {
            switch part {
            case .none: all.append([])
            case .bytes(let bytes): all.append(bytes)
            case .file, .sealedFile, .promise: return nil
            }
        }
        return all
    }
}

extension NodeData {
    fileprivate var isNone: Bool { if case .none = self { true } else { false } }
    fileprivate var isPromise: Bool { if case .promise = self { true } else { false } }
}
