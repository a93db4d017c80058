import Testing
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Dependencies of queued operations")
struct QueueRulesTests {
    /// A tree as a server checks it: no cycles, no two equal names below one parent, no missing parents.
    private struct Tree: Equatable {
        var places = [NodeID: Place]()

        func ancestors(_ place: NodeParent) -> [NodeID] {
            var (ids, next) = ([NodeID](), place)
            while case .node(let id) = next {
                ids.append(id)
                guard let parent = places[id]?.parent else { break }
                next = parent
            }
            return ids
        }

        /// - Returns: whether the operation can be made.
        mutating func make(_ operation: PendingOperation) -> Bool {
            let before = self
            if operation.isDelete {
                guard places[operation.node] != nil else { return false }
                places = places.filter { !before.ancestors(.node($0.key)).contains(operation.node) }
                return true
            }
            guard (places[operation.node] == nil) == operation.isCreation else { return false }
            guard let target = operation.target else { return true }
            if case .node(let parent) = target.parent, places[parent] == nil { return false }
            guard !ancestors(target.parent).contains(operation.node),
                !places.contains(where: { $0.value == target && $0.key != operation.node })
            else { return false }
            places[operation.node] = target
            return true
        }
    }

    private static let names = ["a", "b"].map(NodeName.test)

    private static func place(_ tree: Tree, _ random: inout SeededRandom) -> Place {
        let parents: [NodeParent] = [.trunk(.home)] + tree.places.keys.sorted().map { .node($0) }
        return Place(
            parents.randomElement(using: &random) ?? .trunk(.home),
            names.randomElement(using: &random) ?? names[0])
    }

    /// A random operation; nil when the tree does not allow it.
    private static func operation(
        _ id: Int64, _ tree: Tree, _ random: inout SeededRandom
    ) -> PendingOperation? {
        let node = tree.places.keys.sorted().randomElement(using: &random)
        let kind = Int.random(in: 0..<6, using: &random)
        var operation: PendingOperation
        if kind < 2 {
            operation = PendingOperation(OperationID(id), NodeID(UInt128(100 + id)), .write([.creation, .place]))
        } else {
            guard let node else { return nil }
            operation = PendingOperation(OperationID(id), node, kind < 5 ? .write(.place) : .delete)
            operation.origin = tree.places[node]
        }
        if !operation.isDelete { operation.target = place(tree, &random) }
        var after = tree
        return after.make(operation) ? operation : nil
    }

    @Test(
        "any order that respects the dependencies is accepted by a server, and ends with the same tree",
        arguments: 0..<8)
    func orders(seed: UInt64) throws {
        var random = SeededRandom(seed: 4_700 + seed)
        for _ in 0..<400 {
            var start = Tree()
            for number in 0..<4 {
                let parent = Self.place(start, &random).parent
                start.places[NodeID(UInt128(number + 1))] = Place(parent, .test("n\(number)"))
            }
            var (tree, queue) = (start, OperationQueue())
            for id in 1...Int64.random(in: 2...6, using: &random) {
                guard var new = Self.operation(id, tree, &random) else { continue }
                let before = tree
                let branch = before.places.keys.filter { before.ancestors(.node($0)).contains(new.node) }
                new.dependencies = try queue.dependencies(of: new) { () throws(TreeError) in
                    branch
                } ancestors: { place throws(TreeError) in
                    before.ancestors(place)
                }
                queue.add(new)
                let isMade = tree.make(new)
                #expect(isMade)
            }
            try Self.expectOrders(queue, from: start, to: tree, &random)
        }
    }

    /// Makes the operations in random orders that respect their dependencies.
    private static func expectOrders(
        _ queue: OperationQueue, from start: Tree, to end: Tree, _ random: inout SeededRandom
    ) throws {
        for _ in 0..<6 {
            var (tree, waiting, done) = (start, queue.ids, Set<OperationID>())
            while !waiting.isEmpty {
                let free = waiting.filter { queue[$0]?.dependencies.isSubset(of: done) == true }
                let id = try #require(free.randomElement(using: &random), "the dependencies have a cycle")
                let operation = try #require(queue[id])
                guard tree.make(operation) else {
                    Issue.record("\(operation) is refused after \(done.sorted()) of \(queue.ids.map { queue[$0] })")
                    return
                }
                done.insert(id)
                waiting.removeAll { $0 == id }
            }
            #expect(tree == end)
        }
    }

    @Test("operations without anything in common do not wait for each other")
    func independent() throws {
        var queue = OperationQueue()
        for number in 1...Int64(50) {
            var new = PendingOperation(OperationID(number), NodeID(UInt128(number)), .write([.creation, .place]))
            new.target = Place(.trunk(.home), .test("n\(number)"))
            new.dependencies = try queue.dependencies(of: new) { _ throws(TreeError) in [] }
            #expect(new.dependencies.isEmpty)
            queue.add(new)
        }
        #expect(queue.next(max: 10) { _ in true }.count == 10)
    }

    @Test("a node that is created again comes before operations that put nodes below it, and leaves its group")
    func createdAgain() {
        var queue = OperationQueue()
        for number in 1...Int64(4) {
            var new = PendingOperation(OperationID(number), NodeID(UInt128(number)), .write([.creation, .place]))
            new.target = Place(number == 3 ? .node(NodeID(4)) : .trunk(.home), .test("n\(number)"))
            new.group = number % 2
            queue.add(new)
        }
        #expect(queue.divideGroups(of: NodeID(4)).map(\.id.number) == [2, 4])
        #expect([1, 2, 3, 4].map { queue[OperationID($0)]?.group } == [1, nil, 1, nil])
        let creation = queue[OperationID(4)]
        #expect(creation.map { queue.follow($0) }?.map(\.id.number) == [3])
        #expect(queue[OperationID(3)]?.dependencies == [OperationID(4)])
        #expect(queue.next(max: 9) { $0.id.number != 4 } == [OperationID(2)])
        #expect(queue.next(max: 9) { _ in true } == [2, 4].map(OperationID.init))
    }

    @Test("a node that is created again does not wait for the name that a later operation frees by moving below it")
    func brokenCycle() {
        let place = Place(.trunk(.home), Self.names[0])
        let (created, occupant) = (NodeID(1), NodeID(2))
        var move = PendingOperation(OperationID(1), occupant, .write(.place))
        (move.origin, move.target) = (place, Place(.node(created), Self.names[0]))
        var creation = PendingOperation(OperationID(2), created, .write([.creation, .place]))
        (creation.target, creation.dependencies) = (place, [move.id])
        move.dependencies = [creation.id]
        var queue = OperationQueue()
        queue.add(move)
        queue.add(creation)
        #expect(queue.next(max: 10) { _ in true }.isEmpty)
        #expect(queue.breakCycles(through: creation.id) == [creation.id])
        #expect(queue[move.id]?.dependencies == [creation.id])
        #expect(queue.next(max: 1) { _ in true } == [creation.id])
        #expect(queue.breakCycles(through: creation.id).isEmpty)
    }

    @Test("operations of one group are chosen together or not at all, and those with a priority first")
    func groups() {
        var queue = OperationQueue()
        for number in 1...Int64(6) {
            var new = PendingOperation(OperationID(number), NodeID(UInt128(number)), .write(.tags))
            new.group = number <= 4 ? 1 : nil
            new.priority = number == 6 ? 1 : 0
            queue.add(new)
        }
        #expect(queue.next(max: 3) { _ in true } == [OperationID(6), OperationID(5)])
        #expect(queue.next(max: 9) { $0.priority == 0 } == [1, 2, 3, 4, 5].map(OperationID.init))
        #expect(queue.next(max: 9) { $0.id.number != 3 } == [OperationID(6), OperationID(5)])
    }
}
