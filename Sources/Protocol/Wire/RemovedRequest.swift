/// `removed:JSON`: asks for removals, which an index does not list.
public struct RemovedRequest: Sendable, Equatable {
    /// The removals to list.
    public enum Scope: Sendable, Equatable {
        /// The removed objects of the bucket, in byte order of their keys, after this key.
        case bucket(after: String)
        /// The removals of one object, the newest first.
        case object(String)
    }

    /// The removals to list.
    public var scope: Scope
    /// Removals in the answer at most; nil: `Limits.removalsDefault`.
    public var limit: Int?

    /// Makes a request.
    public init(_ scope: Scope, limit: Int? = nil) {
        self.scope = scope
        self.limit = limit
    }

    /// Reads what is readable; a text that is not JSON asks for the bucket's first page.
    public init(parsing argument: ArraySlice<UInt8>) {
        let root = try? JSONDocument(parsing: argument).root
        if let key = root?["id"]?.looseText {
            scope = .object(key)
        } else {
            scope = .bucket(after: root?["after"]?.looseText ?? "")
        }
        limit = root?["limit"]?.looseInteger.map { Int(clamping: $0) }
    }

    /// `limit` within the bounds of an answer.
    public var boundedLimit: Int {
        guard let limit, limit > 0 else { return Limits.removalsDefault }
        return min(limit, Limits.removalsMax)
    }

    /// Writes the JSON object.
    public func write(to writer: inout JSONWriter) {
        var object = JSONObject()
        switch scope {
        case .bucket(let after): object["after"] = .string(after)
        case .object(let key): object["id"] = .string(key)
        }
        object["limit"] = limit.map { .number(JSONNumber(Int64($0))) }
        writer.write(object)
    }
}

/// `removed:JSON` from the server: the answer, with the scope of the request.
public struct RemovedPage: Sendable, Equatable {
    /// One removal.
    public struct Entry: Sendable, Equatable {
        /// `id`: the key of the object.
        public var key: String
        /// `v`: the version that the removal made.
        public var version: Version
        /// `t`: milliseconds since 1970 by the server's clock; nil when the log no longer has the change.
        public var timestamp: Int64?

        /// Makes an entry.
        public init(key: String, version: Version, timestamp: Int64?) {
            self.key = key
            self.version = version
            self.timestamp = timestamp
        }
    }

    /// The scope of the request.
    public var scope: RemovedRequest.Scope
    /// The removals on this page.
    public var entries: [Entry]
    /// The key after which the next page begins; nil on the last one.
    public var mark: String?

    /// Makes a page.
    public init(_ scope: RemovedRequest.Scope, entries: [Entry], mark: String? = nil) {
        self.scope = scope
        self.entries = entries
        self.mark = mark
    }

    /// Reads a page.
    ///
    /// - Throws: `shape` when the list or a part of an entry is missing.
    public init(_ node: JSONNode) throws(WireError) {
        guard let list = node["removed"], list.kind == .array else {
            throw .shape(command: "removed", problem: "removed")
        }
        if let key = node["id"]?.looseText {
            scope = .object(key)
        } else {
            scope = .bucket(after: node["after"]?.looseText ?? "")
        }
        entries = []
        for entry in list.elements {
            guard let key = entry["id"]?.looseText, let version = entry["v"]?.looseInteger else {
                throw .shape(command: "removed", problem: "an entry")
            }
            entries.append(Entry(key: key, version: version, timestamp: entry["t"]?.looseInteger))
        }
        mark = node["mark"]?.looseText
    }

    /// Writes the JSON object.
    public func write(to writer: inout JSONWriter) {
        switch scope {
        case .bucket(let after):
            writer.raw("{\"after\":")
            writer.write(string: after)
        case .object(let key):
            writer.raw("{\"id\":")
            writer.write(string: key)
        }
        writer.raw(",\"removed\":[")
        for (place, entry) in entries.enumerated() {
            writer.raw(place > 0 ? ",{\"id\":" : "{\"id\":")
            writer.write(string: entry.key)
            writer.raw(",\"v\":")
            writer.write(entry.version)
            if let timestamp = entry.timestamp {
                writer.raw(",\"t\":")
                writer.write(timestamp)
            }
            writer.raw("}")
        }
        writer.raw("]")
        if let mark {
            writer.raw(",\"mark\":")
            writer.write(string: mark)
        }
        writer.raw("}")
    }
}
