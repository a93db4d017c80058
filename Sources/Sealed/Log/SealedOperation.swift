import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The clear form of a sealed operation: `{"b":…,"h":"…","n":"…","a":"…","x":…}`, compact.
public struct SealedOperation: Sendable, Equatable {
    /// What the author did.
    public enum Content: Sendable, Equatable {
        /// An edit of the object at the base.
        case edit(Edit)
        /// `"-"`: the object is deleted.
        case tombstone
        /// An edit that cannot be read. It keeps its position and its author, and never fits.
        case unreadable
    }

    /// `b`: position of the newest operation that the author had applied.
    public var base: Int
    /// `h`: the chain's head at the base.
    public var head: Head
    /// `n`: the beginning of the incarnation id.
    public var incarnation: UInt64
    /// `a`: the author.
    public var author: AuthorID
    /// `l`: version of the list of readers under which it was written; absent, and 0, where the bucket is not shared by
    /// accounts.
    public var list: Int
    /// `x`: what the author did.
    public var content: Content

    /// An operation; `list` is 0 where the bucket is not shared by accounts.
    public init(base: Int, head: Head, incarnation: UInt64, author: AuthorID, list: Int = 0, content: Content) {
        self.base = base
        self.head = head
        self.incarnation = incarnation
        self.author = author
        self.list = list
        self.content = content
    }

    /// Why a clear text is not a known operation.
    public enum ReadingError: Error, Equatable, Sendable {
        /// It is not an operation: it does not count, for every reader alike.
        case malformed
        /// `t` names unknown rules: a reader of the log stops here.
        case unknownRules
    }

    /// The edit of the whole object; nil when it cannot be read.
    public var edit: Edit? {
        switch content {
        case .edit(let edit): edit
        case .tombstone: .remove()
        case .unreadable: nil
        }
    }

    /// The compact text.
    public func clearBytes() -> [UInt8] {
        var writer = JSONWriter(reservingBytes: 256)
        writer.raw("{\"b\":")
        writer.raw(Array(String(base).utf8))
        writer.raw(",\"h\":")
        writer.write(string: head.text)
        writer.raw(",\"n\":")
        writer.write(string: Base64.encodeURL(incarnation.bigEndianBytes))
        writer.raw(",\"a\":")
        writer.write(string: author.text)
        if list > 0 {
            writer.raw(",\"l\":")
            writer.raw(Array(String(list).utf8))
        }
        writer.raw(",\"x\":")
        switch content {
        case .edit(let edit):
            if case .object(let diff) = edit.operation { diff.write(to: &writer) } else { writer.raw("{}") }
        case .tombstone: writer.raw("\"-\"")
        case .unreadable: writer.raw("{}")
        }
        writer.raw("}")
        return writer.bytes
    }

    /// Reads a clear text. Unknown members are ignored.
    /// - Throws: `ReadingError`.
    public init(clear bytes: [UInt8]) throws(ReadingError) {
        guard let document: JSONDocument = try? .init(parsing: bytes, maxDepth: SealedLimits.clearDepthMax),
            document.root.kind == .object
        else { throw .malformed }
        let root = document.root
        if let rules = root["t"], rules.int64 != 1 { throw .unknownRules }
        guard let base = root["b"]?.int64, base >= 0, base < 1 << 53,
            let head = root["h"]?.string.flatMap(Head.init(text:)),
            let name = root["n"]?.string, let incarnation = Base64.decodeURL(Array(name.utf8)[...]),
            incarnation.count == 8,
            let author = root["a"]?.string.flatMap(AuthorID.init(text:)),
            let list = Self.list(root["l"]), let content = root["x"].flatMap(Self.content)
        else { throw .malformed }
        self.init(
            base: Int(base), head: head, incarnation: incarnation.reduce(0) { $0 << 8 | UInt64($1) }, author: author,
            list: list, content: content)
    }

    /// The version of a list of readers in an operation or snapshot: 0 where none is named, nil for an invalid version.
    static func list(_ node: JSONNode?) -> Int? {
        guard let node else { return 0 }
        guard let version = node.int64, (1..<1 << 53).contains(version) else { return nil }
        return Int(version)
    }

    /// The version of a list of readers named in the clear text of an operation or snapshot, of these rules or newer
    /// ones; 0 where none is named. nil: the text is not an object, or the version is invalid.
    public static func list(clear bytes: [UInt8]) -> Int? {
        guard let root = try? JSONDocument(parsing: bytes, maxDepth: SealedLimits.clearDepthMax).root,
            root.kind == .object
        else { return nil }
        return list(root["l"])
    }

    private static func content(_ node: JSONNode) -> Content? {
        if node.kind == .string { return node.string?.utf8.elementsEqual("-".utf8) == true ? .tombstone : nil }
        guard node.kind == .object else { return nil }
        guard let diff: ObjectDiff = try? .init(node), let edit: Edit = try? .init(.object(diff)) else {
            return .unreadable
        }
        return .edit(edit)
    }
}
