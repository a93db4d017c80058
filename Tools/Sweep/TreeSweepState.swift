import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

/// What a tree and its blobs must be after a number of actions.
struct TreeSweepState: Sendable, Equatable {
    struct Node: Sendable, Equatable {
        var parent: NodeParent
        var tag: NodeTag
        var version: Version
        var blob: BlobID?
        /// Milliseconds since 1970; nil: never.
        var burnTime: Int64?
    }

    /// Bytes that a seed determines.
    struct Content: Sendable, Equatable {
        let seed: UInt64
        let length: Int

        /// A random page again and again, each with its number: other bytes at each place, made quickly.
        var bytes: [UInt8] {
            var random = SeededRandom(seed: seed)
            var page = (0..<1_024).map { _ in UInt8(truncatingIfNeeded: random.next() | 1) }
            var bytes = [UInt8]()
            bytes.reserveCapacity(length + page.count)
            while bytes.count < length {
                (page[0], page[1]) = (UInt8(bytes.count >> 10 & 0xFF), UInt8(bytes.count >> 18 & 0xFF))
                bytes += page
            }
            bytes.removeLast(bytes.count - length)
            return bytes
        }

        func part(_ number: Int) -> [UInt8] {
            Array(bytes[(number - 1) * TreeSweepAuthor.partBytes..<min(length, number * TreeSweepAuthor.partBytes)])
        }

        var parts: Int { (length + TreeSweepAuthor.partBytes - 1) / TreeSweepAuthor.partBytes }
    }

    struct Blob: Sendable, Equatable {
        let content: Content
        /// Milliseconds since 1970; nil while a node refers to it.
        var orphaned: Int64?
    }

    struct Upload: Sendable, Equatable {
        let content: Content
        /// Milliseconds since 1970 of its begin, or of its completion.
        var time: Int64
        var received = Set<Int>()
        var isComplete = false
    }

    var nodes = [NodeID: Node]()
    var blobs = [BlobID: Blob]()
    var uploads = [BlobID: Upload]()
    /// Messages, which all receivers have.
    var delivered = Set<NodeID>()
    static let receivers = ["bob@example.com", "carol@example.com"]

    func children(of parent: NodeParent) -> [NodeID] {
        nodes.filter { $0.value.parent == parent }.keys.sorted()
    }

    /// The node and everything below it.
    func branch(_ node: NodeID) -> [NodeID] { [node] + children(of: .node(node)).flatMap { branch($0) } }

    func depth(of parent: NodeParent) -> Int {
        guard case .node(let node) = parent, let above = nodes[node]?.parent else { return 0 }
        return 1 + depth(of: above)
    }

    /// Marks blobs that lost their last reference, and unmarks those that have one.
    mutating func refer(at time: Int64) {
        let referred = Set(nodes.values.compactMap(\.blob))
        for (id, blob) in blobs {
            blobs[id]?.orphaned = referred.contains(id) ? nil : blob.orphaned ?? time
        }
    }
}
