import Testing
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("The order in which lists of children are read")
struct ChildListingTests {
    private let parents = (1...205).map { NodeParent.node(NodeID(UInt128($0))) }

    private func next(_ lists: inout ChildListing, _ now: Int64) throws -> (number: Int64, query: ChildrenQuery) {
        let request = lists.next(at: now)
        return try #require(request)
    }

    @Test("100 lists in one request, in the order in which they were asked for, and one request at a time")
    func order() throws {
        var lists = ChildListing()
        for parent in parents { lists.add(parent) }
        lists.add(parents[0])
        let first = try next(&lists, 0)
        #expect(first.query.parents == Array(parents[0..<100]) && first.query.limit == 10)
        let early = lists.next(at: 0)
        #expect(early?.number == nil)
        let foreign = lists.finish(first.number + 1)
        #expect(foreign == nil)
        let count = lists.finish(first.number)?.count
        #expect(count == 100)
        let second = try next(&lists, 0)
        #expect(second.query.parents == Array(parents[100..<200]))
    }

    @Test("pages that lead in a circle are noticed within three rounds, whatever its length, and others are not")
    func circles() {
        for (before, length) in [(0, 1), (0, 2), (1, 2), (3, 5), (40, 100)] {
            var check = CursorCheck()
            let wasEarly = (0..<before + length).contains { check.isRepeated("\($0)") }
            #expect(!wasEarly)
            let rounds = (0..<3 * (before + length)).contains { check.isRepeated("\(before + $0 % length)") }
            #expect(rounds, "\(before) \(length)")
        }
        var check = CursorCheck()
        let isRepeated = (0..<10_000).contains { check.isRepeated("\($0)") }
        #expect(!isRepeated)
    }

    @Test("a list whose pages lead in a circle begins again, and does not count as read")
    func circleOfOneList() throws {
        var lists = ChildListing()
        lists.add(parents[0], levels: 2)
        for cursor in ["x", "y"] {
            let request = try next(&lists, 0)
            let tasks = lists.finish(request.number)
            let goesOn = lists.goOn(try #require(tasks)[0], before: cursor)
            #expect(goesOn)
        }
        let request = try next(&lists, 0)
        let tasks = lists.finish(request.number)
        let goesOn = lists.goOn(try #require(tasks)[0], before: "x")
        #expect(!goesOn && lists.contains(parents[0]) && !lists.isIdle)
        let again = try next(&lists, 0)
        #expect(again.query.parents == [parents[0]] && again.query.before == nil)
        #expect(lists.inFlight?.tasks.first?.levels == 2)
    }

    @Test("what the app opens comes first, once, and a further page before other lists")
    func preferred() throws {
        var lists = ChildListing()
        for parent in parents { lists.add(parent) }
        lists.prefer(parents[150])
        lists.prefer(parents[150])
        let first = try next(&lists, 0)
        #expect(first.query.parents.first == parents[150] && first.query.parents.count == 100)
        // A list in flight is not asked for again.
        lists.prefer(parents[150])
        let finished = lists.finish(first.number)
        let tasks = try #require(finished)
        _ = lists.goOn(tasks[0], before: "next")
        let page = try next(&lists, 0)
        #expect(page.query.parents == [parents[150]] && page.query.before == "next")
        var rest = [NodeParent]()
        _ = lists.finish(page.number)
        while let (number, query) = lists.next(at: 0) {
            rest += query.parents
            _ = lists.finish(number)
        }
        #expect(rest.count == 105 && !rest.contains(parents[150]))
    }

    @Test("with more removals than are kept, the request in flight is made again, and its late page is not used")
    func removals() throws {
        var lists = ChildListing()
        lists.addRemoval(NodeID(1), 1)
        #expect(lists.removed.isEmpty)
        lists.add(parents[0])
        let first = try next(&lists, 0)
        for number in 1...ChildListing.removedMax { lists.addRemoval(NodeID(UInt128(number)), 1) }
        #expect(lists.removed.count == ChildListing.removedMax)
        lists.addRemoval(NodeID(0), 1)
        #expect(lists.removed.isEmpty)
        let late = lists.finish(first.number)
        #expect(late == nil)
        let again = try next(&lists, 0)
        #expect(again.query == first.query && again.number != first.number)
    }

    @Test("a lost position makes the requests of the app again, and earlier answers are not used")
    func lostPosition() throws {
        var earlier = ChildListing()
        earlier.add(parents[0], levels: 2)
        let first = try next(&earlier, 0)
        earlier.prefer(parents[1])
        var lists = ChildListing(after: earlier)
        let late = lists.finish(first.number)
        #expect(late == nil)
        let again = try next(&lists, 0)
        #expect(again.query.parents == [parents[0], parents[1]])
    }

    @Test("after a failure nothing is asked for before the pause ends, and a lost request is made again")
    func failures() throws {
        var lists = ChildListing()
        lists.add(parents[0])
        let first = try next(&lists, 0)
        lists.again(lists.finish(first.number) ?? [])
        lists.retryAt = 500
        let early = lists.next(at: 499)
        #expect(early?.number == nil)
        let second = try next(&lists, 500)
        lists.forgetRequest()
        let late = lists.finish(second.number)
        #expect(late == nil)
        let again = try next(&lists, 500)
        #expect(again.query == first.query)
    }
}
