import ThicketCommandLine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Which nodes `thicket tree find` prints.
struct NodeFilter: Sendable {
    private let pattern: String?
    private let kind: NodeText.Kind?
    private let bytesMin: UInt64?
    private let isPending: Bool

    init(_ call: Call) throws(Failure) {
        pattern = call.value("name")
        isPending = call.flag("pending")
        if let text = call.value("type") {
            guard let kind = NodeText.Kind(rawValue: text) else {
                throw Failure("--type is file, folder or both, not '\(Screen.safe(text))'", .usage)
            }
            self.kind = kind
        } else {
            kind = nil
        }
        if let text = call.value("larger") {
            guard let bytes = Self.bytes(text) else {
                throw Failure("--larger is a size such as 500, 20K, 3M or 1G, not '\(Screen.safe(text))'", .usage)
            }
            bytesMin = bytes
        } else {
            bytesMin = nil
        }
    }

    /// `20K` is 20 × 1,024.
    static func bytes(_ text: String) -> UInt64? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard let number = UInt64(digits), number < 1 << 40 else { return nil }
        switch text.dropFirst(digits.count) {
        case "": return number
        case "K": return number << 10
        case "M": return number << 20
        case "G": return number << 30
        default: return nil
        }
    }

    func accepts(_ text: NodeText) -> Bool {
        if let kind, text.kind != kind { return false }
        if isPending, !text.node.isPending { return false }
        if let bytesMin, (text.size ?? 0) <= bytesMin { return false }
        guard let pattern else { return true }
        return fnmatch(pattern, text.node.name.text, 0) == 0
    }
}

/// The nodes that changed last.
struct NewestNodes: Sendable {
    private let limit: Int
    /// Descending by time.
    private(set) var sorted = [NodeText]()

    init(limit: Int) { self.limit = limit }

    /// A node that the server does not have yet is the newest.
    private static func time(_ text: NodeText) -> Int64 {
        text.node.version == 0 ? .max : text.node.changed ?? .min
    }

    mutating func add(_ text: NodeText) {
        let time = Self.time(text)
        if sorted.count == limit, let last = sorted.last, Self.time(last) >= time { return }
        let place = sorted.firstIndex { Self.time($0) < time } ?? sorted.endIndex
        sorted.insert(text, at: place)
        if sorted.count > limit { sorted.removeLast() }
    }
}
