import Synchronization
import Testing
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Needs-download marks")
struct DownloadMarkTests {
    @Test("D6: under 20,000 random steps a section is unmarked exactly if its newest version was downloaded")
    func model() throws {
        let seed = ContentSeed(1)
        var store = MemoryDownloadMarks()
        /// For each node and section: the newest version that marked the node since the section was marked.
        var stale = [NodeID: Set<UInt8>]()
        var newest = [NodeID: Int64]()
        /// Downloads in progress, with the version at which they began.
        var running = [(NodeID, UInt8, Int64)]()
        for step in 0..<20_000 {
            let node = NodeID(UInt128(seed.below(8)))
            switch seed.below(3) {
            case 0:
                let (bits, version) = (UInt8(1 + seed.below(7)), Int64(step))
                DownloadMarks.mark(node, ContentComponents(rawValue: bits), version: version, in: &store)
                for bit: UInt8 in [1, 2, 4] where bits & bit != 0 { stale[node, default: []].insert(bit) }
                newest[node] = version
            case 1:
                guard let mark = store.mark(of: node), let section = mark.components.sections.first else { continue }
                running.append((node, ContentComponents(section).rawValue, mark.version))
            default:
                guard !running.isEmpty else { continue }
                let (node, bit, version) = running.remove(at: seed.below(running.count))
                let isDone = DownloadMarks.unmark(
                    node, ContentComponents(rawValue: bit), ifVersion: version, in: &store)
                let isCurrent = newest[node] == version && !(stale[node] ?? []).isEmpty
                #expect(isDone == isCurrent, "a new version during a download keeps the mark")
                if isDone { stale[node]?.remove(bit) }
            }
            let bits = (stale[node] ?? []).reduce(0, |)
            #expect((store.mark(of: node)?.components.rawValue ?? 0) == bits)
        }
    }

    @Test("an older version that arrives late adds its sections and does not take the version back")
    func late() throws {
        var store = MemoryDownloadMarks()
        DownloadMarks.mark(NodeID(1), .data, version: 5, in: &store)
        DownloadMarks.mark(NodeID(1), .thumbnail, version: 3, in: &store)
        #expect(store.mark(of: NodeID(1))?.version == 5)
        #expect(DownloadMarks.unmark(NodeID(1), .all, ifVersion: 3, in: &store) == false)
        #expect(store.mark(of: NodeID(1))?.components == [.data, .thumbnail])
        #expect(DownloadMarks.unmark(NodeID(1), .all, ifVersion: 5, in: &store))
        #expect(store.mark(of: NodeID(1)) == nil && store.marks().isEmpty)
        DownloadMarks.mark(NodeID(1), [], version: 9, in: &store)
        #expect(store.marks().isEmpty)
    }

    @Test("pending marks are those that the closure accepts, the last marked first")
    func pending() {
        var store = MemoryDownloadMarks()
        for number in 0..<UInt128(10) { DownloadMarks.mark(NodeID(number), .data, version: 1, in: &store) }
        DownloadMarks.mark(NodeID(4), .data, version: 2, in: &store)
        let found = DownloadMarks.pending(in: store) { $0.value % 2 == 0 }
        #expect(found.map(\.node.value) == [4, 8, 6, 2, 0])
    }

    @Test("D7: a drain begins with metadata, then thumbnails, then data, of what the policy wants")
    func order() {
        let marks = (0..<UInt128(3)).map {
            DownloadMark(node: NodeID($0), version: 1, components: $0 == 1 ? [.data] : .all, order: Int64($0))
        }
        let policy = DownloadPolicy { $0.node == NodeID(2) ? [.thumbnail, .data] : .all }
        let wishes = policy.order(marks).map { [$0.node.value, UInt128($0.components.rawValue)] }
        #expect(wishes == [[0, 1], [2, 2], [0, 2], [2, 4], [1, 4], [0, 4]])
        #expect(DownloadPolicy.nothing.order(marks).isEmpty && DownloadPolicy.previews.order(marks).count == 4)
    }

    @Test("D7: a reconnect drains the marks; a version that arrives during its download stays marked")
    func drain() async throws {
        let test = try DownloadCase(20, data: 100_000)
        let store = Mutex(MemoryDownloadMarks())
        let (node, other) = (test.reference.node, NodeID(99))
        store.withLock { store in
            DownloadMarks.mark(node, [.data, .thumbnail], version: 1, in: &store)
            DownloadMarks.mark(other, .data, version: 4, in: &store)
        }
        let drain = MarkDrain(test.manager, DownloadPolicy { $0.components })
        func run() async -> Int {
            await drain.drain(
                store.withLock { DownloadMarks.pending(in: $0) { _ in true } },
                reference: { $0.node == node ? test.reference : nil },
                downloaded: { wish in
                    _ = store.withLock {
                        DownloadMarks.unmark(wish.node, wish.components, ifVersion: wish.version, in: &$0)
                    }
                })
        }
        test.server.set { $0.fate = { _ in .dropped } }
        #expect(await run() == 0)
        #expect(store.withLock { $0.marks().count } == 2, "offline: everything stays marked")
        let count = Atomic(0)
        test.server.set { state in
            state.fate = { _ in .fine }
            state.before = { _ in
                // The data is replaced while the last section is fetched.
                guard count.add(1, ordering: .relaxed).newValue == 2 else { return }
                store.withLock { DownloadMarks.mark(node, .data, version: 2, in: &$0) }
            }
        }
        #expect(await run() == 2)
        let marks = store.withLock { $0.marks() }
        #expect(marks.first { $0.node == node }?.version == 2)
        #expect(marks.first { $0.node == node }?.components.contains(.data) == true)
        #expect(marks.contains { $0.node == other }, "the record was not found: it stays marked")
    }
}
