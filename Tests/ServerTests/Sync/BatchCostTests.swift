import Testing
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// What a large batch costs the shard's thread. Times are printed, not asserted: machines and builds differ.
@Suite("Cost of batches")
struct BatchCostTests {
    private static func milliseconds(_ body: () throws -> Void) rethrows -> Double {
        let clock = ContinuousClock()
        return try clock.measure(body) / .milliseconds(1)
    }

    @Test("1,000 nodes are the same in one batch, in groups of 100 and one by one, and the times are printed")
    func thousand() throws {
        let folder = BlobFolder()
        var trees = [Int]()
        var times = [String]()
        for size in [1_000, 100, 1] {
            let store = try SQLiteStore(path: "\(folder.path)/\(size).db", settings: .testing)
            let shard = try TestShard.tree(store: store)
            let time: Double
            if size == 1_000 {
                let puts = try (1...1_000).map { try TestShard.put($0, "n\($0)") }
                let batch = try shard.batch(1, puts)
                time = try Self.milliseconds { try shard.send(batch) }
                #expect(shard.replies.first?.results.count == 1_000)
            } else {
                let changes = try (1...1_000).map { try shard.writing($0, "n\($0)") }
                time = try Self.milliseconds {
                    for start in stride(from: 0, to: 1_000, by: size) {
                        _ = try shard.group(Array(changes[start..<start + size]))
                    }
                }
            }
            times.append("\(size) in one group: \((time * 10).rounded() / 10) ms")
            trees.append(try shard.numbers().count)
        }
        print("1,000 changes of a tree, " + times.joined(separator: ", "))
        #expect(trees == [1_000, 1_000, 1_000])
    }
}
