import Testing
import ThicketClient
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Lazy trees at a server", .timeLimit(.minutes(15)))
struct LazyTreeTests {
    @Test("a new device shows the top and loads in pages what is opened; offline that is an error")
    func loading() async throws {
        let bench = try TreeBench()
        let writing = try await bench.session()
        let writer = try await writing.tree()
        try await writer.createNode(at: .home("big"), content: .text("b"))
        for start in stride(from: 0, to: 1_050, by: 150) {
            try await writer.batch { tree throws(TreeError) in
                for number in start..<start + 150 {
                    guard let path = try? TreePath.home("big", "\(number)") else { continue }
                    try tree.createNode(at: path, content: .text("\(number)"))
                }
            }
        }
        try await writer.createNode(at: .home("big", "7", "deep"), content: .text("d"))
        try await writer.waitUntilSynced(timeout: TreeBench.patience)

        let session = try await bench.session()
        let tree = try await session.tree(skeleton: .lazy(depth: 1))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        let big = try #require(try await tree.node(at: .home("big")))
        #expect(try await tree.isComplete(.trunk(.home)))
        #expect(try await !tree.isComplete(.node(big.id)))
        #expect(try await tree.children(of: .node(big.id)).isEmpty)
        try await tree.load(.node(big.id), timeout: TreeBench.patience)
        #expect(try await tree.children(of: .node(big.id)).count == 1_050)
        let seven = try #require(try await tree.node(at: .home("big", "7")))
        #expect(try await tree.data(of: seven.id) == Array("7".utf8))
        try await writer.createNode(at: .home("big", "later"), content: .text("l"))
        try await tree.wait { tree in try tree.node(at: .home("big", "later")) != nil }
        await tree.goOffline()
        let error = await #expect(throws: TreeError.self) { try await tree.load(.home("big", "7")) }
        #expect(error?.code == .offline)
        await tree.goOnline()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await tree.load(.home("big", "7"))
        #expect(try await tree.node(at: .home("big", "7", "deep")) != nil)
        await session.close()
        await writing.close()
    }
}
