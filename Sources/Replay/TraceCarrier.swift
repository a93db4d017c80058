import ThicketProtocol

/// Maps each transaction of a concurrent trace from the view in which it was recorded to the text that its author's
/// client shows when it is typed, which may contain more.
///
/// Two views per author: *recorded* (the text of the transaction's parents, counted in code points) and *seen* (the
/// client's text, counted in UTF-16 units). Both show parts of one order of characters, so the mapping is exact.
public struct TraceCarrier: Sendable {
    /// An edit of the client's text: at `position` (UTF-16 units) delete `deleted` units, insert `inserted`.
    public struct Edit: Sendable, Equatable {
        /// UTF-16 units from the start of the client's text.
        public let position: Int
        /// How many UTF-16 units are deleted.
        public let deleted: Int
        /// The inserted text.
        public let inserted: String
        /// The left neighbour in the recorded view has been deleted from the client's text. Without the mark, a text
        /// that another author inserts into that gap would have the same position, and the order would depend on
        /// arrival.
        public var isBehindGone = false

        /// The edit as a delta of a text of `length` units.
        func delta(length: Int) -> TextDelta {
            var delta = TextDelta([.retain(position), .delete(deleted)])
            delta.insert(Array(inserted.utf16), isBehindGone: isBehindGone)
            delta.retain(length - position - deleted)
            return delta
        }
    }

    private enum Step {
        case insert(CharacterOrder.Character)
        case delete(CharacterOrder.Character)
    }

    private let trace: Trace
    private var order: CharacterOrder
    private var steps: [[Step]]
    /// Transactions by author, in the order in which they were made.
    public let byAgent: [[Int]]
    /// What each transaction's author had seen of every author, as counts of transactions, without the transaction
    /// itself.
    private let parentClocks: [[Int]]
    private var recordedClock: [[Int]]
    private var seenClock: [[Int]]

    /// - Throws: `TraceError.transaction` when one person's transactions are not a chain.
    public init(_ trace: Trace) throws(TraceError) {
        self.trace = trace
        let agents = trace.agentCount
        var byAgent = [[Int]](repeating: [], count: agents)
        var clocks = [[Int]]()
        for (index, row) in trace.transactions.enumerated() {
            var clock = [Int](repeating: 0, count: agents)
            for parent in row.parents {
                var seen = clocks[parent]
                seen[trace.transactions[parent].agent] += 1
                for agent in 0..<agents { clock[agent] = max(clock[agent], seen[agent]) }
            }
            guard clock[row.agent] == byAgent[row.agent].count else {
                throw .transaction(index: index, problem: "its author had not seen all of the author's own edits")
            }
            byAgent[row.agent].append(index)
            clocks.append(clock)
        }
        self.byAgent = byAgent
        parentClocks = clocks
        steps = .init(repeating: [], count: trace.transactions.count)
        let zero = [Int](repeating: 0, count: agents)
        recordedClock = .init(repeating: zero, count: agents)
        seenClock = .init(repeating: zero, count: agents)
        order = CharacterOrder(
            countsUTF16: .init(repeating: false, count: agents) + .init(repeating: true, count: agents))
        var last: CharacterOrder.Character?
        for scalar in trace.startContent.unicodeScalars {
            let made = order.insert(scalar, after: last, by: 0, in: 0)
            for view in 0..<order.viewCount { order.show(made, in: view) }
            last = made
        }
    }

    /// How many transactions of each person its author must see before `transaction` is typed.
    public func needs(_ transaction: Int) -> [Int] { parentClocks[transaction] }

    /// Ranges of `agent`'s transactions that need nothing new from others, so that they can be typed alone.
    ///
    /// - Returns: index of the first transaction among the agent's, and the number of consecutive ones; longest first.
    public func stretchesAlone(of agent: Int) -> [(start: Int, count: Int)] {
        var found = [(start: Int, count: Int)]()
        var last = [Int]()
        for (place, row) in byAgent[agent].enumerated() {
            var others = parentClocks[row]
            others[agent] = 0
            if others == last, !found.isEmpty {
                found[found.count - 1].count += 1
            } else {
                found.append((place, 1))
            }
            last = others
        }
        return found.sorted { $0.count > $1.count }
    }

    /// What `agent`'s client shows by now, as counts of every author's transactions.
    public func seen(by agent: Int) -> [Int] { seenClock[agent] }

    /// Length of what `agent`'s client shows by now, in UTF-16 units.
    public func seenLength(of agent: Int) -> Int { order.length(of: trace.agentCount + agent) }

    /// The text that `agent`'s client must show by now if every merge was right.
    public func expectedText(of agent: Int) -> String { order.text(of: trace.agentCount + agent) }

    /// `agent`'s client shows `count` transactions of `other` from now on.
    public mutating func saw(agent: Int, other: Int, count: Int) {
        guard count > seenClock[agent][other], count <= byAgent[other].count else { return }
        for row in byAgent[other][seenClock[agent][other]..<count] { play(row, in: trace.agentCount + agent) }
        seenClock[agent][other] = count
    }

    /// The edits that type `transaction` into its author's client now, one after another.
    ///
    /// The author's client must show everything that `needs` names; the transaction counts as seen by it afterwards.
    public mutating func type(_ transaction: Int) -> [Edit] {
        let row = trace.transactions[transaction]
        advanceRecorded(of: row.agent, to: parentClocks[transaction])
        var edits = [Edit]()
        for patch in row.patches {
            delete(patch, of: transaction, edits: &edits)
            insert(patch, of: transaction, edits: &edits)
        }
        recordedClock[row.agent][row.agent] += 1
        seenClock[row.agent][row.agent] += 1
        return edits
    }

    private mutating func delete(
        _ patch: Trace.Patch, of transaction: Int, edits: inout [Edit]
    ) {
        let agent = trace.transactions[transaction].agent
        let seen = trace.agentCount + agent
        for _ in 0..<patch.deleted {
            guard let character = order.character(at: patch.position, in: agent) else { break }
            if order.isShown(character, in: seen) {
                let position = order.position(of: character, in: seen)
                let width = order.scalars[Int(character)].value > 0xFFFF ? 2 : 1
                if let last = edits.last, last.inserted.isEmpty, last.position == position {
                    edits[edits.count - 1] = Edit(position: position, deleted: last.deleted + width, inserted: "")
                } else {
                    edits.append(Edit(position: position, deleted: width, inserted: ""))
                }
            }
            order.hide(character, in: agent)
            order.hide(character, in: seen)
            steps[transaction].append(.delete(character))
        }
    }

    private mutating func insert(
        _ patch: Trace.Patch, of transaction: Int, edits: inout [Edit]
    ) {
        guard !patch.inserted.isEmpty else { return }
        let agent = trace.transactions[transaction].agent
        let seen = trace.agentCount + agent
        // After the left neighbour, and so before the text that was just deleted: the same place as in the merge.
        var left =
            patch.position == 0 ? nil : order.character(at: patch.position - 1, in: agent)
        let isBehindGone = left.map { !order.isShown($0, in: seen) } ?? false
        var position: Int?
        for scalar in patch.inserted.unicodeScalars {
            let made = order.insert(scalar, after: left, by: agent, in: agent)
            position = position ?? order.position(of: made, in: seen)
            order.show(made, in: agent)
            order.show(made, in: seen)
            steps[transaction].append(.insert(made))
            left = made
        }
        edits.append(
            Edit(position: position ?? 0, deleted: 0, inserted: patch.inserted, isBehindGone: isBehindGone))
    }

    private mutating func advanceRecorded(of agent: Int, to clock: [Int]) {
        for other in clock.indices where clock[other] > recordedClock[agent][other] {
            for row in byAgent[other][recordedClock[agent][other]..<clock[other]] { play(row, in: agent) }
            recordedClock[agent][other] = clock[other]
        }
    }

    private mutating func play(_ transaction: Int, in view: Int) {
        for step in steps[transaction] {
            switch step {
            case .insert(let character): order.show(character, in: view)
            case .delete(let character): order.hide(character, in: view)
            }
        }
    }
}

extension Trace {
    /// The first `count` transactions as a separate trace; its final text is computed from them.
    ///
    /// - Throws: as `TraceCarrier.init`.
    public func prefix(_ count: Int) throws(TraceError) -> Trace {
        var cut = self
        cut.transactions = Array(transactions.prefix(count))
        var carrier = try TraceCarrier(cut)
        for row in cut.transactions.indices {
            let agent = cut.transactions[row].agent
            // What the author had seen is shown before the author edits it, otherwise a deletion would find nothing.
            for (other, count) in carrier.needs(row).enumerated() where other != agent {
                carrier.saw(agent: agent, other: other, count: count)
            }
            _ = carrier.type(row)
        }
        for other in 0..<agentCount {
            carrier.saw(agent: 0, other: other, count: carrier.byAgent[other].count)
        }
        cut.endContent = carrier.expectedText(of: 0)
        return cut
    }
}
