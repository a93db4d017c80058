import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// One device of several that change one tree: the body of the process `thicket-accept device`. Each line that it
/// prints is a fact that its store has already, so that a kill makes no line untrue.
public struct DeviceWork {
    /// What the device does.
    public enum Mix: String, Sendable {
        /// Reads, contents, moves, new names, removals.
        case all
        /// Only creations, moves and new names, of few names that devices want at the same time.
        case names
    }

    private let tree: Treesystem
    private let session: ClientSession
    private var random: SeededRandom
    private let say: (String) -> Void

    /// - Parameters:
    ///   - folder: has the file `login`, and gets the device's store.
    ///   - say: gets the lines.
    public init(folder: String, device: String, seed: UInt64, say: @escaping (String) -> Void) async throws {
        let login = try DeviceLogin(path: folder + "/login")
        session = try await login.session(device, store: "\(folder)/\(device).db")
        tree = try await session.tree()
        random = SeededRandom(seed: seed)
        self.say = say
    }

    public func close() async { await session.close() }

    // MARK: - Work

    /// Makes random changes and reads, for so many steps or milliseconds, what ends first. Does not wait until they are
    /// confirmed.
    public mutating func work(_ mix: Mix, steps: Int, milliseconds: Int64) async throws {
        let end = Steady.milliseconds() + milliseconds
        for _ in 0..<steps where Steady.milliseconds() < end {
            do { try await step(mix) } catch let error as TreeError {
                guard Self.ordinary.contains(error.code) else { throw error }
            }
            // The others' changes arrive between the own ones.
            if Int.random(in: 0..<12, using: &random) == 0 { await catchUp() }
        }
    }

    /// Reasons that a random change may have.
    private static let ordinary: Set<TreeError.Code> = [
        .nameTaken, .cycle, .depth, .notFound, .parentMissing, .content,
    ]

    private func catchUp() async { try? await tree.waitUntilSynced(timeout: .seconds(5)) }

    private mutating func step(_ mix: Mix) async throws {
        let nodes = try await all()
        // A small tree grows first.
        let choice = nodes.count < 10 ? 0 : Int.random(in: 0..<10, using: &random)
        switch (mix, choice) {
        case (_, 0..<3): try await create(nodes)
        case (_, 3..<5): try await move(nodes)
        case (_, 5), (.names, _): try await rename(nodes)
        case (_, 6): try await write(nodes)
        case (_, 7): try await remove(nodes)
        default: try await read(nodes)
        }
    }

    private func all() async throws -> [Node] {
        var nodes = [Node]()
        for try await (_, node) in tree.walk(from: TreePath(.home)) { nodes.append(node) }
        return nodes
    }

    /// Few names, in two cases: they collide.
    private mutating func name() throws -> NodeName {
        let text = "name \(Int.random(in: 0..<30, using: &random))"
        return try NodeName(Bool.random(using: &random) ? text : text.uppercased())
    }

    private mutating func place(_ nodes: [Node]) async throws -> TreePath {
        guard Int.random(in: 0..<3, using: &random) > 0, let node = nodes.randomElement(using: &random),
            let path = try await tree.path(of: node.id), path.depth < 8
        else { return TreePath(.home) }
        return path
    }

    private mutating func create(_ nodes: [Node]) async throws {
        let path = try await place(nodes).appending(try name())
        let node = try await tree.createNode(at: path, content: content())
        say("created \(node.id.text)")
    }

    private mutating func move(_ nodes: [Node]) async throws {
        guard let node = nodes.randomElement(using: &random) else { return }
        try await tree.move(node.id, to: try await place(nodes).appending(try name()))
    }

    private mutating func rename(_ nodes: [Node]) async throws {
        guard let node = nodes.randomElement(using: &random) else { return }
        try await tree.rename(node.id, try name())
    }

    private mutating func write(_ nodes: [Node]) async throws {
        guard let node = nodes.randomElement(using: &random) else { return }
        try await tree.setContent(of: node.id, content())
    }

    private mutating func read(_ nodes: [Node]) async throws {
        guard let node = nodes.randomElement(using: &random), node.content?.blob == nil else { return }
        _ = try await tree.data(of: node.id)
    }

    /// Removes a node that has nothing below it on this device. What other devices put there meanwhile has to stay.
    private mutating func remove(_ nodes: [Node]) async throws {
        guard let node = nodes.randomElement(using: &random), try await !tree.hasChildren(.node(node.id)) else {
            return
        }
        // First the line: the removal is permitted from here on.
        say("removed \(node.id.text)")
        try await tree.delete(node.id, outdated: false, unknown: false)
    }

    private mutating func content() -> NodeSections {
        let isLarge = Int.random(in: 0..<20, using: &random) == 0
        let count = isLarge ? 12_000 : Int.random(in: 1...200, using: &random)
        let byte = UInt8.random(in: 0...255, using: &random)
        return NodeSections(data: .bytes([UInt8](repeating: byte, count: count)))
    }

    // MARK: - The end

    /// Decides everything that waits for a decision, until nothing waits. A change is never dropped, but for a content
    /// that another device has changed too.
    public mutating func finish() async throws {
        let end = Steady.milliseconds() + Int64(TreeStand.patience) * 1_000
        while Steady.milliseconds() < end {
            do {
                try await tree.waitUntilSynced(timeout: .seconds(20))
                if try await tree.queue.isEmpty { return }
            } catch {
                guard [.refused, .content, .deadline].contains(error.code) else { throw error }
            }
            for operation in try await tree.queue where operation.needsApp {
                say("decided \(operation.state)")
                if operation.state == .conflict, Bool.random(using: &random) {
                    try await tree.discard(operation.id)
                } else {
                    try await tree.retry(operation.id)
                }
            }
        }
        throw ProcessError("the queue is not empty: \(try await tree.queue)")
    }

    /// The tree as this device has it, contents included: a line for each node, and a digest of all lines.
    public func digest() async throws {
        try await tree.waitUntilSynced(timeout: .seconds(TreeStand.patience))
        var hash = SHA256()
        for try await (path, node) in tree.walk(from: TreePath(.home)) {
            var content = SHA256()
            content.update(try await tree.data(of: node.id) ?? [])
            let line = "\(node.id.text) v\(node.version) \(Hex.encode(content.digest())) \(path)"
            hash.update(Array((line + "\n").utf8))
            say("node \(line)")
        }
        let quarantined = try await tree.quarantined.count
        say("digest \(Hex.encode(hash.digest())) quarantined \(quarantined)")
    }
}
