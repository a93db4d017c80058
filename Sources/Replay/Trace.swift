import ThicketProtocol

/// A recorded typing session, keystroke by keystroke: for each edit its author and which edits the author had seen.
///
/// The format is that of the public collection josephg/editing-traces. Positions count Unicode code points.
public struct Trace: Sendable, Equatable {
    /// Replaces `deleted` code points at `position` by `inserted`.
    public struct Patch: Sendable, Equatable {
        /// Code points from the start.
        public var position: Int
        /// How many code points are deleted.
        public var deleted: Int
        /// The inserted text.
        public var inserted: String
        /// A patch of these values.
        public init(position: Int, deleted: Int, inserted: String) {
            self.position = position
            self.deleted = deleted
            self.inserted = inserted
        }
    }

    /// Consecutive patches by one person, relative to the text that results from merging the parents.
    public struct Transaction: Sendable, Equatable {
        /// The author's number, from 0.
        public var agent: Int
        /// Indexes of transactions; in a sequential trace always the previous one.
        public var parents: [Int]
        /// The patches in their order.
        public var patches: [Patch]
        /// A transaction of these values.
        public init(agent: Int, parents: [Int], patches: [Patch]) {
            self.agent = agent
            self.parents = parents
            self.patches = patches
        }
    }

    /// Several people type at the same time (else: one after another).
    public var isConcurrent: Bool
    /// The text before the first transaction.
    public var startContent: String
    /// The text after the last transaction.
    public var endContent: String
    /// Number of authors.
    public var agentCount: Int
    /// The transactions; parents precede their children.
    public var transactions: [Transaction]

    /// A trace of these values, which are not checked.
    public init(
        isConcurrent: Bool, startContent: String, endContent: String, agentCount: Int, transactions: [Transaction]
    ) {
        self.isConcurrent = isConcurrent
        self.startContent = startContent
        self.endContent = endContent
        self.agentCount = agentCount
        self.transactions = transactions
    }

    /// Patches of all transactions.
    public var patchCount: Int { transactions.reduce(0) { $0 + $1.patches.count } }
}

/// Why a trace file could not be read.
public enum TraceError: Error, Equatable, CustomStringConvertible {
    /// The file cannot be opened or read.
    case notReadable(path: String)
    /// The data is not valid gzip; the value names the fault.
    case notGzip(String)
    /// The text is not JSON; the value names the fault.
    case notJSON(String)
    /// A member is missing or invalid.
    case field(String)
    /// A transaction contradicts the rest of the trace.
    case transaction(index: Int, problem: String)

    /// The reason as a sentence.
    public var description: String {
        switch self {
        case .notReadable(let path): "cannot read the trace '\(path)': is the path right?"
        case .notGzip(let problem): "the trace is not a whole gzip file: \(problem)"
        case .notJSON(let problem): "the trace is not JSON: \(problem)"
        case .field(let name): "the trace's field '\(name)' is missing or of another type"
        case .transaction(let index, let problem): "transaction \(index) of the trace: \(problem)"
        }
    }
}

extension Trace {
    /// Reads the JSON text of a trace.
    public init(json: [UInt8]) throws(TraceError) {
        let document: JSONDocument
        do {
            document = try JSONDocument(parsing: json)
        } catch {
            throw .notJSON("\(error)")
        }
        let root = document.root
        guard let end = root["endContent"]?.string else { throw .field("endContent") }
        guard let rows = root["txns"] else { throw .field("txns") }
        let isConcurrent = root["kind"]?.string == "concurrent"
        let agents = isConcurrent ? Int(root["numAgents"]?.int64 ?? 0) : 1
        guard (1...64).contains(agents) else { throw .field("numAgents") }
        var transactions = [Transaction]()
        for row in rows.elements {
            transactions.append(
                try Trace.transaction(row, index: transactions.count, isConcurrent: isConcurrent, agents: agents))
        }
        self.init(
            isConcurrent: isConcurrent, startContent: root["startContent"]?.string ?? "", endContent: end,
            agentCount: agents, transactions: transactions)
    }

    private static func transaction(
        _ row: JSONNode, index: Int, isConcurrent: Bool, agents: Int
    ) throws(TraceError) -> Transaction {
        var patches = [Patch]()
        for patch in row["patches"]?.elements.map({ $0 }) ?? [] {
            let parts: [JSONNode] = patch.elements.map { $0 }
            guard parts.count == 3, let position = parts[0].int64, let deleted = parts[1].int64,
                let inserted: String = parts[2].string, position >= 0, deleted >= 0
            else { throw .transaction(index: index, problem: "a patch is not [position, deleted, text]") }
            patches.append(Patch(position: Int(position), deleted: Int(deleted), inserted: inserted))
        }
        guard isConcurrent else {
            return Transaction(agent: 0, parents: index == 0 ? [] : [index - 1], patches: patches)
        }
        let parents = row["parents"]?.elements.compactMap { $0.int64.map(Int.init) } ?? []
        guard parents.allSatisfy({ (0..<index).contains($0) }) else {
            throw .transaction(index: index, problem: "a parent does not precede it")
        }
        guard let agent = row["agent"]?.int64, (0..<Int64(agents)).contains(agent) else {
            throw .transaction(index: index, problem: "its agent is unknown")
        }
        return Transaction(agent: Int(agent), parents: parents, patches: patches)
    }

    /// The JSON text of this trace, in the same format.
    public func json() -> [UInt8] {
        let rows: [JSONValue] = transactions.map { row in
            let patches: [JSONValue] = row.patches.map {
                .array([
                    .number(JSONNumber(Int64($0.position))), .number(JSONNumber(Int64($0.deleted))),
                    .string($0.inserted),
                ])
            }
            var pairs: [(key: String, value: JSONValue)] = [("patches", .array(patches))]
            if isConcurrent {
                pairs.append(("agent", .number(JSONNumber(Int64(row.agent)))))
                pairs.append(("parents", .array(row.parents.map { .number(JSONNumber(Int64($0))) })))
            }
            return .object(JSONObject(pairs))
        }
        var pairs = [(key: String, value: JSONValue)]()
        if isConcurrent {
            pairs.append(("kind", .string("concurrent")))
            pairs.append(("numAgents", .number(JSONNumber(Int64(agentCount)))))
        } else {
            pairs.append(("startContent", .string(startContent)))
        }
        pairs.append(("endContent", .string(endContent)))
        pairs.append(("txns", .array(rows)))
        return JSONValue.object(JSONObject(pairs)).serialized()
    }
}
