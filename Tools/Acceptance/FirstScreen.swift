import ThicketClient
import ThicketProcesses
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A new device opens a large tree. Requests are counted at the server, by its metrics.
public struct FirstScreen {
    public struct Settings: Sendable {
        /// Containers, below `home`.
        public var containers: Int = 200
        /// Nodes in each of them, with a content of some bytes.
        public var children: Int = 500
        public init() {}
    }

    /// Nodes that the writer makes in one batch.
    private static let batchNodes = 200
    /// Nodes of one page of the server.
    private static let pageNodes = 1_000
    private static let lists = ("thicket_http_requests_total", "rest")

    /// Milliseconds between two lines about the progress.
    private static let reportEvery: Int64 = 10_000

    private let settings: Settings
    private let report: (String) -> Void
    private let stand: TreeStand

    /// - Parameter report: gets a line about the progress every 10 s.
    public init(_ settings: Settings, report: @escaping (String) -> Void = { _ in }) throws(ProcessError) {
        (self.settings, self.report) = (settings, report)
        stand = try TreeStand()
    }

    public func run() async throws -> AcceptanceResult {
        var result = AcceptanceResult()
        let login = try await DeviceLogin(signingUpAt: stand)
        try await fill(login)
        let sent = stand.cable.record.requests
        let start = Steady.milliseconds()
        let before = try lists()
        let session = try await login.session("new")
        let tree = try await session.tree(skeleton: .lazy(depth: 1))
        try await tree.waitUntilSynced(timeout: .seconds(TreeStand.patience))
        let shown = try await tree.children(of: TreePath(.home))
        let screen = Steady.milliseconds() - start
        let first = try lists() - before
        let all = stand.cable.record.requests - sent
        result.expect(shown.count == settings.containers, "the first screen has \(shown.count) containers")
        result.expect((1...2).contains(first), "the first screen took \(first) requests for lists")
        let known = try await tree.isComplete(.node(shown[0].id))
        result.expect(!known, "the first screen has read what is not on it")

        let opened = try await open(shown[shown.count / 2], tree, &result)
        result.summary =
            "\(settings.containers) × \(settings.children) nodes: first screen after \(screen) ms, \(first) requests for "
            + "lists, \(all) in all; one container of \(settings.children) after \(opened.milliseconds) ms, "
            + "\(opened.requests) requests for lists"
        await session.close()
        try stand.server.terminate()
        result.faults += try stand.checkFaults()
        return result
    }

    private func lists() throws -> Int { try stand.metric(Self.lists.0, label: Self.lists.1) }

    private func open(
        _ container: Node, _ tree: Treesystem, _ result: inout AcceptanceResult
    ) async throws -> (milliseconds: Int64, requests: Int) {
        let (before, start) = (try lists(), Steady.milliseconds())
        try await tree.load(.node(container.id))
        let children = try await tree.children(of: .node(container.id))
        let (took, requests) = (Steady.milliseconds() - start, try lists() - before)
        result.expect(children.count == settings.children, "a container has \(children.count) children")
        let pages = (settings.children + Self.pageNodes - 1) / Self.pageNodes
        result.expect(requests <= pages + 1, "\(pages) pages of a container took \(requests) requests")
        guard let child = children.last else { return (took, requests) }
        let text = try await tree.data(of: child.id)
        result.expect(text == Array("message \(child.name)".utf8), "a content that was opened is another one")
        return (took, requests)
    }

    private func fill(_ login: DeviceLogin) async throws {
        let session = try await login.session("writer", store: stand.path("writer.db"))
        let tree = try await session.tree()
        let nodes = settings
        let start = Steady.milliseconds()
        var reported = start
        try await make((0..<nodes.containers).map { "conversation \($0)" }, [], tree)
        for container in 0..<nodes.containers {
            try await make((0..<nodes.children).map { "\($0)" }, ["conversation \(container)"], tree)
            let now = Steady.milliseconds()
            guard now - reported >= Self.reportEvery || container == nodes.containers - 1 else { continue }
            reported = now
            let made = nodes.containers + (container + 1) * nodes.children
            report(
                "filled: \(made) of \(nodes.containers * (1 + nodes.children)) nodes, "
                    + "\(made * 1_000 / max(1, Int(now - start))) a second, this process has \(Self.residentMiB()) MiB")
        }
        try await tree.waitUntilSynced(timeout: .seconds(TreeStand.patience))
        await session.close()
    }

    /// Memory of this process.
    private static func residentMiB() -> Int {
        let text = String(decoding: TreeStand.bytes(of: "/proc/self/statm") ?? [], as: UTF8.self)
        let fields = text.split(separator: " ")
        return (fields.dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096 / 1_048_576
    }

    private func make(_ names: [String], _ above: [String], _ tree: Treesystem) async throws {
        for start in stride(from: 0, to: names.count, by: Self.batchNodes) {
            let some = try names[start..<min(names.count, start + Self.batchNodes)].map {
                (path: try TreePath(.home, above + [$0]), text: "message \($0)")
            }
            try await tree.batch { (editor) throws(TreeError) in
                for (path, text) in some {
                    try editor.createNode(at: path, content: NodeSections(data: .bytes(Array(text.utf8))))
                }
            }
        }
        // Bounds the writer's queue.
        try await tree.waitUntilSynced(timeout: .seconds(TreeStand.patience))
    }
}
