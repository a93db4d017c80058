/// One element of the server's `c:[…]` (wire contract, 6.2).
public enum ChangeEvent: Sendable, Equatable {
    /// A change that is part of the bucket's log now.
    case applied(AppliedChange)
    /// A change of this client that was not taken.
    case refused(RefusedChange)

    /// Writes the element.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .applied(let change): change.write(to: &writer)
        case .refused(let change): change.write(to: &writer)
        }
    }
}

/// A change in the order of the bucket's log; the sender's own is its acknowledgement.
public struct AppliedChange: Sendable, Equatable {
    public enum Operation: Sendable, Equatable { case modify, remove }

    /// As the author's `init` gave it: some clients know their own changes by it.
    public var clientID: String
    public var cv: ChangeVersion
    /// `id`
    public var key: EntityKey
    public var operation: Operation
    /// `v`; nil for removals.
    public var diff: JSONFragment?
    /// The version this applies to; nil when the object is new, and for removals.
    public var sv: Version?
    /// The version after it.
    public var ev: Version
    /// Every change that went into this one.
    public var ccids: [String]

    public init(
        clientID: String, cv: ChangeVersion, key: EntityKey, operation: Operation, diff: JSONFragment? = nil,
        sv: Version? = nil, ev: Version, ccids: [String]
    ) {
        self.clientID = clientID
        self.cv = cv
        self.key = key
        self.operation = operation
        self.diff = diff
        self.sv = sv
        self.ev = ev
        self.ccids = ccids
    }

    /// Writes the element. A removal has neither `v` nor `sv`; an `sv` of 0 is left out.
    public func write(to writer: inout JSONWriter) {
        writer.raw("{\"clientid\":")
        writer.write(string: clientID)
        writer.raw(",\"cv\":")
        writer.write(string: cv.text)
        writer.raw(",\"id\":")
        writer.write(string: key.text)
        switch operation {
        case .remove:
            writer.raw(",\"o\":\"-\"")
        case .modify:
            writer.raw(",\"o\":\"M\",\"v\":")
            if let diff { diff.write(to: &writer) } else { writer.raw("{}") }
            if let sv, sv > 0 {
                writer.raw(",\"sv\":")
                writer.write(sv)
            }
        }
        writer.raw(",\"ev\":")
        writer.write(ev)
        writer.raw(",\"ccids\":")
        writer.write(strings: ccids)
        writer.raw("}")
    }
}

/// A change that was not taken, told to its author only.
public struct RefusedChange: Sendable, Equatable {
    public var clientID: String
    /// `id` as the author wrote it, valid or not.
    public var key: String
    /// One of `ErrorCode`, or a number that a newer server knows.
    public var error: Int
    public var ccids: [String]

    public init(clientID: String, key: String, error: Int, ccids: [String]) {
        self.clientID = clientID
        self.key = key
        self.error = error
        self.ccids = ccids
    }

    /// The number as one that we know.
    public var code: ErrorCode? { ErrorCode(rawValue: error) }

    /// Writes the element; `error` is always a number (wire contract, 1.6).
    public func write(to writer: inout JSONWriter) {
        writer.raw("{\"clientid\":")
        writer.write(string: clientID)
        writer.raw(",\"id\":")
        writer.write(string: key)
        writer.raw(",\"error\":")
        writer.write(Int64(error))
        writer.raw(",\"ccids\":")
        writer.write(strings: ccids)
        writer.raw("}")
    }
}

extension ChangeEvent {
    /// Reads one element. Numbers may be strings, as in one example of the public notes.
    ///
    /// - Throws: when something is missing without which the change cannot be applied: a client that skipped such an
    ///   element would hold a wrong copy without knowing.
    public init(_ node: JSONNode) throws(WireError) {
        let clientID = node["clientid"]?.looseText ?? ""
        let ccids = node["ccids"]?.elements.compactMap(\.looseText) ?? []
        if let error = node["error"] {
            guard let number = error.looseInteger else { throw .shape(command: "c", problem: "error") }
            let key = node["id"]?.looseText ?? ""
            self = .refused(
                RefusedChange(clientID: clientID, key: key, error: Int(number), ccids: ccids))
            return
        }
        guard let key = node["id"]?.string.flatMap({ try? EntityKey($0) }) else {
            throw .shape(command: "c", problem: "id")
        }
        guard let cv = node["cv"]?.looseText.flatMap({ try? ChangeVersion($0) }) else {
            throw .shape(command: "c", problem: "cv")
        }
        guard let ev: Version = node["ev"]?.looseInteger, ev > 0 else { throw .shape(command: "c", problem: "ev") }
        let sv: Version? = node["sv"]?.looseInteger.flatMap { $0 > 0 ? $0 : nil }
        switch node["o"]?.string.map({ ChangeRequest.Operation($0) }) {
        case .modify?:
            guard let diff = node["v"], diff.kind == .object else {
                throw .shape(command: "c", problem: "v")
            }
            self = .applied(
                AppliedChange(
                    clientID: clientID, cv: cv, key: key, operation: .modify, diff: .node(diff), sv: sv, ev: ev,
                    ccids: ccids))
        case .remove?:
            self = .applied(
                AppliedChange(clientID: clientID, cv: cv, key: key, operation: .remove, sv: sv, ev: ev, ccids: ccids))
        default:
            throw .shape(command: "c", problem: "o")
        }
    }
}
