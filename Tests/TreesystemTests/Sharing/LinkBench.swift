import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// How far a server's clock is ahead of the machine's.
final class AheadClock: Sendable {
    private let ahead = Mutex<Int64>(0)

    /// Milliseconds since 1970.
    var now: Int64 { ahead.withLock { $0 } + Int64(SystemSessionClock().unixSeconds() * 1_000) }

    func set(daysAhead days: Int64) { ahead.withLock { $0 = days * 86_400_000 } }
}

/// A server with an owner of links.
final class LinkBench: Sendable {
    let people: PeopleBench

    init(clock: AheadClock? = nil) throws {
        if let clock { people = try PeopleBench(clock: { clock.now }) } else { people = try PeopleBench() }
    }

    /// The owner's branch that links open.
    struct Box {
        /// Keeps the server.
        let bench: LinkBench
        let owner: PeopleBench.Person
        let links: BranchLinks
        let root: NodeID
        let other: NodeID

        var tree: Treesystem { owner.tree }

        /// A child of the branch, when it has come. A deposit's name has the beginning of its id.
        func arrived(_ name: String, count: Int = 1) async throws -> Node {
            let root = root
            try await tree.wait { tree in
                try tree.children(of: .node(root)).filter { $0.name.text.hasPrefix(name) }.count >= count
            }
            return try #require(
                try await tree.children(of: .node(root)).first { $0.name.text.hasPrefix(name) })
        }

        /// Waits until the server has the change.
        func done(_ operation: OperationID) async throws {
            try await tree.wait(for: operation, timeout: PeopleBench.patience)
        }

        func close() async { await owner.session.close() }
    }

    /// Ann with the branches `box` and `other` in her home, with a node each.
    func box() async throws -> Box {
        let ann = try await people.person("ann")
        let root = try await ann.tree.createNode(at: .home("box")).id
        try await ann.tree.createNode(at: .home("box", "note"), content: .text("read me"))
        let other = try await ann.tree.createNode(at: .home("other")).id
        try await ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        return Box(bench: self, owner: ann, links: try await ann.session.links(), root: root, other: other)
    }
}
