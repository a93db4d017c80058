import ThicketTestSupport

@testable import ThicketReplay

/// A model of text that several authors type concurrently, which shares no code with the replay: each author has a tree
/// of all characters that it knows, and the text is the tree's in-order traversal (FugueMax, by Weidner and Kleppmann,
/// 2023, which gives the order of YATA with both neighbours).
///
/// A character is a right child of its left neighbour or, if its author knew of such a child, a left child of its right
/// neighbour. Right children are in the opposite order of their right neighbours; ties are ordered by author.
struct SequenceModel {
    struct ID: Hashable {
        let author: Int
        let number: Int
    }

    struct Item {
        let id: ID
        let left: ID?
        let right: ID?
        let isLeftChild: Bool
        let scalar: Unicode.Scalar
        var isDeleted = false

        /// nil: the character in front of the first one.
        var parent: ID? { isLeftChild ? right : left }
    }

    enum Operation {
        case insert(Item)
        case delete(ID)
    }

    /// All characters that the author knows, in their order.
    private(set) var items: [Item] = []

    var visible: [Int] { items.indices.filter { !items[$0].isDeleted } }

    var text: String {
        var text = ""
        text.unicodeScalars.append(contentsOf: visible.map { items[$0].scalar })
        return text
    }

    /// The author types `scalars` at a position of its text.
    ///
    /// - Parameter number: the first number that no character of the author has.
    mutating func insert(_ scalars: [Unicode.Scalar], at position: Int, by author: Int, number: Int) -> [Operation] {
        let before = position == 0 ? nil : visible[position - 1]
        let behind = before.map { $0 + 1 } ?? 0
        let right = behind < items.count ? items[behind].id : nil
        var left = before.map { items[$0].id }
        return scalars.enumerated().map { (place, scalar) in
            let hasRightChildren = items.contains { !$0.isLeftChild && $0.left == left }
            let item = Item(
                id: ID(author: author, number: number + place), left: left, right: right,
                isLeftChild: hasRightChildren, scalar: scalar)
            left = item.id
            integrate(item)
            return .insert(item)
        }
    }

    /// The author deletes the character at a position.
    mutating func delete(at position: Int) -> Operation {
        let place = visible[position]
        items[place].isDeleted = true
        return .delete(items[place].id)
    }

    /// Applies another author's operation, all of whose causes are known here.
    mutating func apply(_ operation: Operation) {
        switch operation {
        case .insert(let item): integrate(item)
        case .delete(let id):
            if let place = place(of: id) { items[place].isDeleted = true }
        }
    }

    private func place(of id: ID?) -> Int? { items.firstIndex { $0.id == id } }

    private mutating func integrate(_ item: Item) {
        // All right neighbours are known, and the new character does not change their order.
        func end(_ child: Item) -> Int { place(of: child.right) ?? items.count }
        var (lefts, rights): ([ID?: [Item]], [ID?: [Item]]) = ([:], [:])
        for child in items + [item] {
            if child.isLeftChild {
                lefts[child.parent, default: []].append(child)
            } else {
                rights[child.parent, default: []].append(child)
            }
        }
        func byAuthor(_ one: Item, _ other: Item) -> Bool {
            (one.id.author, one.id.number) < (other.id.author, other.id.number)
        }
        for id in lefts.keys { lefts[id]?.sort(by: byAuthor) }
        for id in rights.keys {
            rights[id]?.sort { one, other in end(one) == end(other) ? byAuthor(one, other) : end(one) > end(other) }
        }
        var walked: [Item] = []
        func walk(_ node: Item?) {
            if let node {
                for child in lefts[node.id] ?? [] { walk(child) }
                walked.append(node)
            }
            for child in rights[node?.id] ?? [] { walk(child) }
        }
        walk(nil)
        items = walked
    }
}

extension Trace {
    /// A random session with few places, so that several authors often type into one gap unknowingly, and delete around
    /// each other's letters.
    static func random(authors count: Int, transactions: Int, seed: UInt64) -> Trace {
        var session = RandomSession(count, seed)
        return session.make(transactions)
    }
}

/// Authors that type at random and receive each other's edits at random, in an order that the edits allow.
private struct RandomSession {
    private var random: SeededRandom
    private var models: [SequenceModel]
    /// How many transactions each author has seen of each.
    private var seen: [[Int]]
    private var made: [[(row: Int, needs: [Int], operations: [SequenceModel.Operation])]]
    private var numbers: [Int]
    private var rows = [Trace.Transaction]()

    init(_ count: Int, _ seed: UInt64) {
        random = SeededRandom(seed: seed)
        models = [SequenceModel](repeating: SequenceModel(), count: count)
        seen = [[Int]](repeating: [Int](repeating: 0, count: count), count: count)
        made = [[(row: Int, needs: [Int], operations: [SequenceModel.Operation])]](repeating: [], count: count)
        numbers = [Int](repeating: 0, count: count)
    }

    mutating func make(_ count: Int) -> Trace {
        while rows.count < count {
            let author = Int.random(in: models.indices, using: &random)
            if Int.random(in: 0..<3, using: &random) == 0 { hear(author) } else { type(author) }
        }
        // All authors receive everything, each in its own order.
        for author in models.indices {
            while seen[author] != made.map(\.count) { hear(author) }
        }
        let texts = Set(models.map { Array($0.text.utf8) })
        precondition(texts.count == 1, "the model's authors do not end in one text")
        return Trace(
            isConcurrent: true, startContent: "", endContent: models[0].text, agentCount: models.count,
            transactions: rows)
    }

    /// The author receives the next transaction of another one, if it knows that transaction's causes.
    private mutating func hear(_ author: Int) {
        let other = Int.random(in: models.indices, using: &random)
        guard other != author, seen[author][other] < made[other].count else { return }
        let next = made[other][seen[author][other]]
        guard zip(next.needs, seen[author]).allSatisfy({ $0 <= $1 }) else { return }
        for operation in next.operations { models[author].apply(operation) }
        seen[author][other] += 1
    }

    private mutating func type(_ author: Int) {
        let needs = seen[author]
        let parents = models.indices.compactMap { needs[$0] == 0 ? nil : made[$0][needs[$0] - 1].row }
        var operations: [SequenceModel.Operation] = []
        var patch = Trace.Patch(position: 0, deleted: 0, inserted: "")
        let length = models[author].visible.count
        // Mostly near the start.
        patch.position = min(Int.random(in: 0...length, using: &random), Int.random(in: 0...8, using: &random))
        if Int.random(in: 0..<3, using: &random) == 0 {
            patch.deleted = min(length - patch.position, Int.random(in: 1...3, using: &random))
            for _ in 0..<patch.deleted { operations.append(models[author].delete(at: patch.position)) }
        }
        if patch.deleted == 0 || Bool.random(using: &random) {
            let letters = (0..<Int.random(in: 1...3, using: &random)).map { _ in letter(author) }
            operations += models[author].insert(letters, at: patch.position, by: author, number: numbers[author])
            numbers[author] += letters.count
            patch.inserted.unicodeScalars.append(contentsOf: letters)
        }
        seen[author][author] += 1
        made[author].append((rows.count, needs, operations))
        rows.append(Trace.Transaction(agent: author, parents: parents.sorted(), patches: [patch]))
    }

    /// Different letters for each author, with characters of two units among them.
    private mutating func letter(_ author: Int) -> Unicode.Scalar {
        let letters: [[Unicode.Scalar]] = [["a", "b", "🌲"], ["k", "l"], ["r", "é"], ["x", "🙋"], ["1", "2"]]
        return letters[author].randomElement(using: &random) ?? "?"
    }
}
