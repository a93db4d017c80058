/// A client's answer to `index`: what it holds of a bucket, for fault analysis. The server does not depend on it, and
/// some clients never answer.
public struct IndexState: Sendable, Equatable {
    /// An object that the client holds, and its version.
    public struct Entry: Sendable, Equatable {
        /// `id`: the key of the object.
        public var key: String
        /// `v`: its version; nil when it is missing or not a number.
        public var version: Version?

        /// Makes an entry.
        public init(key: String, version: Version?) {
            self.key = key
            self.version = version
        }
    }

    /// A change that the client has sent and that the server has not answered.
    public struct Pending: Sendable, Equatable {
        /// `id`: the key of the object.
        public var key: String
        /// `sv`: the version to which the change applies.
        public var sv: Version?
        /// `ccid`: the identifier of the change; empty when it is missing.
        public var ccid: String

        /// Makes a pending change.
        public init(key: String, sv: Version?, ccid: String) {
            self.key = key
            self.sv = sv
            self.ccid = ccid
        }
    }

    /// The cv up to which the client has read.
    public var current: String?
    /// The objects that the client holds.
    public var index: [Entry]
    /// Changes sent and not answered: `pending`, or `pendings` from iOS clients.
    public var pending: [Pending]
    /// Any further information of the client.
    public var extra: JSONValue?

    /// Makes a state.
    public init(current: String? = nil, index: [Entry] = [], pending: [Pending] = [], extra: JSONValue? = nil) {
        self.current = current
        self.index = index
        self.pending = pending
        self.extra = extra
    }

    /// Reads what is readable; a text that is not JSON gives an empty state.
    public init(parsing argument: ArraySlice<UInt8>) {
        self.init()
        guard let root = try? JSONDocument(parsing: argument).root else { return }
        current = root["current"]?.looseText
        index =
            (root["index"]?.elements).map { elements in
                elements.compactMap { entry in
                    entry["id"]?.looseText.map { Entry(key: $0, version: entry["v"]?.looseInteger) }
                }
            } ?? []
        pending =
            ((root["pending"] ?? root["pendings"])?.elements).map { elements in
                elements.compactMap { entry in
                    guard let key = entry["id"]?.looseText else { return nil }
                    return Pending(key: key, sv: entry["sv"]?.looseInteger, ccid: entry["ccid"]?.looseText ?? "")
                }
            } ?? []
        extra = root["extra"].flatMap { $0.isNull ? nil : $0.value }
    }

    /// Writes the object as JSON, with the changes under `pending`.
    public func write(to writer: inout JSONWriter) {
        var object = JSONObject()
        object["current"] = current.map(JSONValue.string)
        object["index"] = .array(
            index.map { entry in
                var pair: JSONObject = ["id": .string(entry.key)]
                pair["v"] = entry.version.map { .number(JSONNumber($0)) }
                return .object(pair)
            })
        object["pending"] = .array(
            pending.map { change in
                var pair: JSONObject = ["id": .string(change.key)]
                pair["sv"] = change.sv.map { .number(JSONNumber($0)) }
                pair["ccid"] = .string(change.ccid)
                return .object(pair)
            })
        object["extra"] = extra
        writer.write(object)
    }
}
