/// The argument of a client's `c`, before its names are checked (wire contract, 6.1).
///
/// A change with an invalid field is still a request: `problems` states why it must be refused, and the fields that
/// could be read identify the change to its author.
public struct ChangeRequest: Sendable, Equatable {
    /// What a change asks for.
    public enum Operation: Sendable, Equatable {
        /// `M`: change or create the object.
        case modify
        /// `-`: remove the object.
        case remove
        /// `EMPTY`: remove all objects; `id` is the bucket's name.
        case empty
        /// `DROP`: remove the bucket.
        case drop
        /// An unknown operation, as sent.
        case other(String)
    }

    /// The form in which `v` is kept; it is parsed as a diff when the change is decided.
    public typealias Diff = JSONFragment

    /// `id` as sent; empty when it is missing.
    public var key: String
    /// `ccid` as sent; empty when it is missing.
    public var ccid: String
    /// `o`: what the change asks for.
    public var operation: Operation
    /// `sv`, sent as a number or as a string; nil when absent.
    public var sv: Version?
    /// `v` as sent.
    public var diff: Diff?
    /// `d` as sent. It is parsed into a tree when the change is decided, once it is known to be small enough.
    public var object: JSONFragment?
    /// `whole`: `v` results from setting the object as a whole, so a member that other clients have meanwhile set to
    /// the same value is left as it is (docs/decisions/0086). Anything but `true` counts as absent.
    public var isWhole = false
    /// What is wrong with single fields, without any text of the user; the change is then answered with 400.
    public var problems: [String]

    /// Makes a request.
    public init(
        key: String, ccid: String, operation: Operation, sv: Version? = nil, diff: Diff? = nil,
        object: JSONFragment? = nil, problems: [String] = []
    ) {
        self.key = key
        self.ccid = ccid
        self.operation = operation
        self.sv = sv
        self.diff = diff
        self.object = object
        self.problems = problems
    }
}

extension ChangeRequest {
    /// Bytes that the message of this change takes in memory in addition to its text: many small members take four
    /// times as much.
    public var documentTapeBytes: Int { (diff ?? object)?.documentTapeBytes ?? 0 }

    /// Reads one change object. Never fails; see `problems`.
    public init(_ node: JSONNode) {
        self.init(key: "", ccid: "", operation: .other(""))
        guard node.kind == .object else {
            problems = ["the change is not an object"]
            return
        }
        let fields = ChangeFields(node)
        key = readName(fields.id, "id", bytesMax: Limits.entityKeyBytesMax)
        ccid = readName(fields.ccid, "ccid", bytesMax: Limits.changeIDBytesMax)
        if fields.isModification {
            operation = .modify
        } else {
            operation = .init(readName(fields.operation, "o", bytesMax: Self.operationBytesMax))
        }
        readVersion(fields.source)
        if let sent = fields.diff, !sent.isNull { diff = .node(sent) }
        if let sent = fields.object, !sent.isNull { object = .node(sent) }
        if let sent = fields.whole { isWhole = sent.bool == true }
    }

    /// Bytes of `o` that are read at most.
    private static let operationBytesMax = 32

    /// Reads a short text. A text that is too long in any escaping is not copied, and therefore not sent back either.
    private mutating func readName(_ sent: JSONNode?, _ field: String, bytesMax: Int) -> String {
        guard let sent, sent.kind == .string else {
            problems.append("no \(field)")
            return ""
        }
        guard sent.rawBytes.count <= bytesMax * Limits.jsonEscapeBytesMax + 2, let text = sent.string else {
            problems.append("\(field) is too long")
            return ""
        }
        return text
    }

    /// Reads `sv`. iOS clients store and send versions as strings; null and the empty string mean that there is no
    /// version.
    private mutating func readVersion(_ sent: JSONNode?) {
        guard let sent, !sent.isNull, sent.kind != .string || sent.rawBytes.count > 2 else { return }
        if let version = sent.looseInteger, version >= 0 {
            sv = version
        } else {
            problems.append("sv is not a version")
        }
    }

    /// The form of the argument of `c`, or of the body of a `changes` request.
    public enum Sent: Sendable, Equatable {
        /// A single change.
        case one(ChangeRequest)
        /// An array of changes; may be empty.
        case many([ChangeRequest])
    }

    /// Reads the argument of `c`, or the body of a `changes` request: one change object, or an array of them.
    ///
    /// JSON that does not parse still gives a request, with the names that could be found. An array of more than
    /// `Limits.changesPerMessageMax` gives a single request with this problem for all of them; the rest of it is not
    /// read.
    public static func parse(_ json: ArraySlice<UInt8>) -> Sent {
        let root: JSONNode
        do throws(JSONError) {
            root = try JSONDocument(parsing: json, elementsMax: Limits.changesPerMessageMax).root
        } catch {
            if error.kind == .tooManyElements { return .many([Self.tooMany]) }
            return .one(LenientChangeParser.request(from: json, error: error))
        }
        guard root.kind == .array else { return .one(ChangeRequest(root)) }
        return .many(root.elements.map { ChangeRequest($0) })
    }

    /// The request that replaces all changes of an array that is too long.
    private static let tooMany = ChangeRequest(
        key: "", ccid: "", operation: .other(""), problems: ["too many changes"])

    /// Writes the object as clients send it.
    public func write(to writer: inout JSONWriter) {
        writer.raw("{\"id\":")
        writer.write(string: key)
        writer.raw(",\"o\":")
        writer.write(string: operation.name)
        writer.raw(",\"ccid\":")
        writer.write(string: ccid)
        if let sv {
            writer.raw(",\"sv\":")
            writer.write(sv)
        }
        if let diff {
            writer.raw(",\"v\":")
            diff.write(to: &writer)
        }
        if let object {
            writer.raw(",\"d\":")
            object.write(to: &writer)
        }
        if isWhole { writer.raw(",\"whole\":true") }
        writer.raw("}")
    }
}

extension ChangeRequest.Operation {
    /// Reads `o`.
    public init(_ name: String) {
        self =
            if name.hasSameBytes(as: "M") {
                .modify
            } else if name.hasSameBytes(as: "-") {
                .remove
            } else if name.hasSameBytes(as: "EMPTY") {
                .empty
            } else if name.hasSameBytes(as: "DROP") {
                .drop
            } else {
                .other(name)
            }
    }

    /// `o` as sent.
    public var name: String {
        switch self {
        case .modify: "M"
        case .remove: "-"
        case .empty: "EMPTY"
        case .drop: "DROP"
        case .other(let name): name
        }
    }
}
