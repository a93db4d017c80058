/// The argument of a client's `c`, before its names are checked (wire contract, 6.1).
///
/// A change that is wrong in some field is still a request: `problems` says why it must be refused, and the fields that
/// could be read tell its author which of its changes that was.
public struct ChangeRequest: Sendable, Equatable {
    /// What a change asks for.
    public enum Operation: Sendable, Equatable {
        /// `M`
        case modify
        /// `-`
        case remove
        /// `EMPTY`: remove every object; `id` is the bucket's name.
        case empty
        /// `DROP`: remove the bucket.
        case drop
        case other(String)
    }

    /// The form in which `v` is kept: read as a diff by whoever decides the change.
    public typealias Diff = JSONFragment

    /// `id` as sent; empty when there was none.
    public var key: String
    /// `ccid` as sent; empty when there was none.
    public var ccid: String
    /// `o`
    public var operation: Operation
    /// `sv`, sent as a number or as a string; nil when absent.
    public var sv: Version?
    /// `v` as sent.
    public var diff: Diff?
    /// `d` as sent: made a tree by whoever decides the change, once it is known to be small enough.
    public var object: JSONFragment?
    /// `whole`: `v` comes from setting the object as a whole, so values that others have set to the same meanwhile are
    /// left as they are (docs/decisions/0086). Anything but `true` counts as absent.
    public var isWhole: Bool = false
    /// What was wrong with single fields, without what the user wrote; the change is then answered 400.
    public var problems: [String]

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
    /// Bytes that the message it came in takes in memory besides its text: many small members take four times as much.
    public var documentTapeBytes: Int { (diff ?? object)?.documentTapeBytes ?? 0 }

    /// Reads one change object. Never fails: see `problems`.
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

    /// Bytes of `o` that are looked at.
    private static let operationBytesMax = 32

    /// Reads a short text. One that is too long however it is escaped is not copied, and so not told back either.
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

    /// iOS keeps versions as strings and sends them so; null and the empty string mean that there is none.
    private mutating func readVersion(_ sent: JSONNode?) {
        guard let sent, !sent.isNull, sent.kind != .string || sent.rawBytes.count > 2 else { return }
        if let version = sent.looseInteger, version >= 0 {
            sv = version
        } else {
            problems.append("sv is not a version")
        }
    }

    /// What stood in the argument of `c`, or in the body of a `changes` request.
    public enum Sent: Sendable, Equatable {
        case one(ChangeRequest)
        /// An array of changes; may be empty.
        case many([ChangeRequest])
    }

    /// Reads the argument of `c`, or the body of a `changes` request: one change object, or an array of them.
    ///
    /// JSON that does not parse still gives a request, with the names that could be found. An array of more than
    /// `Limits.changesPerMessageMax` gives one request, which says so, for all; it is not read further than that.
    public static func parse(_ json: ArraySlice<UInt8>) -> Sent {
        let root: JSONNode
        do throws(JSONError) {
            root = try JSONDocument(parsing: json, elementsMax: Limits.changesPerMessageMax).root
        } catch {
            if error.kind == .tooManyElements { return .many([Self.tooMany]) }
            return .one(ChangeSalvage.request(from: json, error: error))
        }
        guard root.kind == .array else { return .one(ChangeRequest(root)) }
        return .many(root.elements.map { ChangeRequest($0) })
    }

    /// Stands for all changes of an array that is too long.
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

    /// `o` as it is sent.
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
