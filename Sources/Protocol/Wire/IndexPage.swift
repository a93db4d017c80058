/// One page of a bucket's objects, most recently changed first (wire contract, section 5).
public struct IndexPage: Sendable, Equatable {
    /// One object.
    public struct Entry: Sendable, Equatable {
        /// `id`: the key of the object.
        public var key: EntityKey
        /// `v`: its version.
        public var version: Version
        /// `d`: the object, only when data was asked for.
        public var data: JSONFragment?

        /// Makes an entry.
        public init(key: EntityKey, version: Version, data: JSONFragment? = nil) {
            self.key = key
            self.version = version
            self.data = data
        }
    }

    /// The cv at which the index scan began; the same on all its pages, and never empty.
    public var current: ChangeVersion
    /// The objects on this page.
    public var entries: [Entry]
    /// Where the next page begins; nil on the last one.
    public var mark: String?
    /// `count`: objects in the whole index scan; optional, for progress displays.
    public var count: Int64?

    /// Makes a page.
    public init(current: ChangeVersion, entries: [Entry], mark: String? = nil, count: Int64? = nil) {
        self.current = current
        self.entries = entries
        self.mark = mark
        self.count = count
    }

    /// Writes the page as JSON; `mark` is left out on the last one.
    public func write(to writer: inout JSONWriter) {
        writer.raw("{\"current\":")
        writer.write(string: current.text)
        writer.raw(",\"index\":[")
        for (place, entry) in entries.enumerated() {
            writer.raw(place > 0 ? ",{\"id\":" : "{\"id\":")
            writer.write(string: entry.key.text)
            writer.raw(",\"v\":")
            writer.write(entry.version)
            if let data = entry.data {
                writer.raw(",\"d\":")
                data.write(to: &writer)
            }
            writer.raw("}")
        }
        writer.raw("]")
        if let mark {
            writer.raw(",\"mark\":")
            writer.write(string: mark)
        }
        if let count {
            writer.raw(",\"count\":")
            writer.write(count)
        }
        writer.raw("}")
    }

    /// Reads a page; an empty or null mark counts as absent.
    ///
    /// - Throws: `WireError` when anything is missing: an index that lacks one of its entries would make the client
    ///   delete objects.
    public init(_ node: JSONNode) throws(WireError) {
        guard let current = node["current"]?.looseText.flatMap({ try? ChangeVersion($0) }) else {
            throw .shape(command: "i", problem: "current")
        }
        guard let index = node["index"], index.kind == .array else {
            throw .shape(command: "i", problem: "index")
        }
        self.current = current
        entries = []
        entries.reserveCapacity(index.count)
        for entry in index.elements { entries.append(try Entry(entry)) }
        mark = node["mark"]?.looseText.flatMap { $0.isEmpty ? nil : $0 }
        count = node["count"]?.looseInteger
    }
}

extension IndexPage.Entry {
    init(_ node: JSONNode) throws(WireError) {
        guard let key = node["id"]?.string.flatMap({ try? EntityKey($0) }) else {
            throw .shape(command: "i", problem: "id")
        }
        guard let version: Version = node["v"]?.looseInteger, version > 0 else {
            throw .shape(command: "i", problem: "v")
        }
        self.init(key: key, version: version, data: node["d"].flatMap { $0.isNull ? nil : .node($0) })
    }
}
