/// One element of the server's `c:[…]` (wire contract, 6.2).
public enum ChangeEvent: Sendable, Equatable {
    /// A change that is part of the bucket's log now.
    case applied(AppliedChange)
    /// A change of this client that the server refused.
    case refused(RefusedChange)

    /// Writes the element as JSON.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .applied(let change): change.write(to: &writer)
        case .refused(let change): change.write(to: &writer)
        }
    }
}

/// A change in the order of the bucket's log. For its author it is the acknowledgement.
public struct AppliedChange: Sendable, Equatable {
    /// What the change does to the object.
    public enum Operation: Sendable, Equatable { case modify, remove }

    /// `clientid` of the author's `init`; some clients recognise their own changes by it.
    public var clientID: String
    /// `cv`: the position of the change in the bucket's log.
    public var cv: ChangeVersion
    /// `id`: the key of the object.
    public var key: EntityKey
    /// `o`: what the change does to the object.
    public var operation: Operation
    /// `v`: the diff; nil for removals.
    public var diff: JSONFragment?
    /// The version to which the change applies; nil when the object is new, and for removals.
    public var sv: Version?
    /// The version after the change.
    public var ev: Version
    /// The ccids of all changes that are combined in this one.
    public var ccids: [String]

    /// Makes a change.
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

    /// Writes the element as JSON. A removal has neither `v` nor `sv`; an `sv` of 0 is left out.
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

/// A change that the server refused, reported to its author only.
public struct RefusedChange: Sendable, Equatable {
    /// `clientid` of the author's `init`.
    public var clientID: String
    /// `id` as the author wrote it, valid or not.
    public var key: String
    /// One of `ErrorCode`, or the code of a newer server.
    public var error: Int
    /// The ccids of the refused change.
    public var ccids: [String]

    /// Makes a refusal.
    public init(clientID: String, key: String, error: Int, ccids: [String]) {
        self.clientID = clientID
        self.key = key
        self.error = error
        self.ccids = ccids
    }

    /// The code, if this version knows it.
    public var code: ErrorCode? { ErrorCode(rawValue: error) }

    /// Writes the element as JSON; `error` is always a number (wire contract, 1.6).
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
    /// - Throws: `WireError` when a member is missing that is needed to apply the change: a client that skipped the
    ///   element would have a wrong copy without noticing.
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
