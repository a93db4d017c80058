import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Lists of children in the store")
struct ChildrenTests {
    private let folder = StoreFolder()

    private func pages(
        _ reader: any StoreReader, _ parent: NodeParent, in row: BucketRow, newest: Bool, limit: Int,
        bytesMax: Int = 1 << 20, between: () throws -> Void = {}
    ) throws -> [StoredChild] {
        var (cursor, found) = (newest ? ChildCursor.newest(before: .max) : .tag(after: nil), [StoredChild]())
        while true {
            let read = ChildRead([parent], limit: limit, cursor: cursor, wantsStats: true, bytesMax: bytesMax)
            let list = try #require(try reader.children(read, in: row).first)
            #expect(list.nodes.count <= limit)
            found += list.nodes
            guard list.hasMore, let last = list.nodes.last else { return found }
            cursor = newest ? .newest(before: last.gid) : .tag(after: last.tag)
            try between()
        }
    }

    @Test(
        "pages of random trees have each child once, in order, with its record, version and stats",
        arguments: StoreKind.allCases)
    func pages(kind: StoreKind) throws {
        let shard = try TestShard.tree(.cold, store: kind.make(folder))
        var random = SeededRandom(seed: 5)
        var (parents, versions) = ([Int: Int](), [Int: Version]())
        for round in 0..<600 {
            let number = Int.random(in: 1...120, using: &random)
            let parent = Int.random(in: 0...12, using: &random)
            let place: NodeParent = parent == 0 ? .trunk(.home) : .child(parent)
            let answer = try shard.write(number, below: place, "n\(number)", sv: versions[number] ?? 0)
            if let version = answer.version { (versions[number], parents[number]) = (version, parent) }
            guard round % 60 == 59 else { continue }
            let reader = try shard.store.makeReader()
            let row = try #require(try reader.bucket(shard.bucket)?.row)
            for parent in 0...12 {
                let wanted = parents.filter { $0.value == parent }.map(\.key)
                for (newest, limit) in [(true, 7), (false, 3), (true, 1_000)] {
                    let found = try pages(
                        reader, parent == 0 ? .trunk(.home) : .child(parent), in: row, newest: newest, limit: limit,
                        bytesMax: limit == 7 ? 1 : 1 << 20)
                    #expect(found.count == wanted.count && Set(found.map { Int($0.node.value) }) == Set(wanted))
                    if newest { #expect(found.map(\.gid) == found.map(\.gid).sorted(by: >)) }
                    for child in found {
                        let number = Int(child.node.value)
                        #expect(child.version == versions[number])
                        let record = try NodeRecord(parsing: child.body, from: .server)
                        #expect(record.tag == child.tag && record.object.serialized() == child.body)
                        let below = parents.filter { $0.value == number }.map(\.key)
                        let times = try below.map { try #require(try shard.record($0)?.stamps.changed) }
                        #expect(child.stats == ChildStats(count: below.count, newest: times.max()))
                    }
                }
            }
        }
    }

    @Test(
        "changes between two pages lose no child and repeat none: a changed one comes with the log",
        arguments: StoreKind.allCases)
    func between(kind: StoreKind) throws {
        let shard = try TestShard.tree(store: kind.make(folder))
        for number in 1...40 { try shard.write(number, "n\(number)") }
        let reader = try shard.store.makeReader()
        let record = try #require(try reader.bucket(shard.bucket))
        var next = 100
        let found = try pages(reader, .trunk(.home), in: record.row, newest: true, limit: 6) {
            // One that was listed changes, one that was not changes, and one is new.
            try shard.write(40 - (next - 100), "listed\(next)", sv: 1)
            try shard.write(1 + next - 100, "not\(next)", sv: 1)
            try shard.write(next, "n\(next)")
            next += 1
        }
        let numbers = found.map { Int($0.node.value) }
        #expect(Set(numbers).count == numbers.count)
        let later = try reader.changes(in: record.row, after: record.head, upTo: .max, limit: 1_000, byteLimit: .max)
        let changed = Set(later?.changes.compactMap { NodeID(text: $0.key.text).map { Int($0.value) } } ?? [])
        #expect(Set(1...40).isSubset(of: Set(numbers).union(changed)))
    }

    @Test("many parents are answered in one read, unknown ones with nothing; each list has a node when bytes are short")
    func manyParents() throws {
        let shard = try TestShard.tree(.disk)
        for number in 1...6 { try shard.write(number, "p\(number)") }
        for number in 10...33 { try shard.write(number, below: .child(number % 6 + 1), "n\(number)") }
        let reader = try shard.store.makeReader()
        let row = try #require(try reader.bucket(shard.bucket)?.row)
        let parents = (1...7).map { NodeParent.child($0) }
        var read = ChildRead(parents, limit: 3, cursor: .newest(before: .max), wantsStats: false, bytesMax: 1 << 20)
        let lists = try reader.children(read, in: row)
        #expect(
            lists.map(\.nodes.count) == [3, 3, 3, 3, 3, 3, 0]
                && lists.map(\.hasMore) == [true, true, true, true, true, true, false])
        #expect(lists[0].nodes.allSatisfy { $0.stats == nil })
        read.bytesMax = 0
        #expect(try reader.children(read, in: row).map(\.nodes.count) == [1, 1, 1, 1, 1, 1, 0])
    }

    @Test("a page, stats and the search for burning nodes and old batches scan an index, never a table or all children")
    func plans() throws {
        let path = folder.path("thicket.db")
        _ = try SQLiteStore(path: path, settings: .testing).makeWriter()
        let database = try Database(path: path)
        func plan(_ text: String) throws -> String {
            var steps = [String]()
            try database.statement("EXPLAIN QUERY PLAN " + text).forEach { (row) throws(SQLiteError) in
                steps.append(row.text(3))
            }
            return steps.joined(separator: "; ")
        }
        let plans = [
            (try plan(NodeQueries.Text.newest), "INDEX node_newest (b=? AND parent=? AND gid<?)"),
            (try plan(NodeQueries.Text.byTag), "INDEX node_place (b=? AND parent=? AND tag>?)"),
            (try plan(NodeQueries.Text.stats), "INDEX node_newest (b=? AND parent=?)"),
            (try plan(NodeQueries.Text.burning), "INDEX node_burn (x<?)"),
            (try plan(NodeQueries.Text.oldAnswers), "INDEX batch_age (ts<?)"),
        ]
        for (plan, index) in plans {
            #expect(plan.contains(index) && !plan.contains("SCAN n") && !plan.contains("TEMP B-TREE"), "\(plan)")
        }
    }
}
