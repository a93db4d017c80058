import Glibc
import ThicketClient
import ThicketCrypto
import ThicketServerProcess
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Trees by the real client at a real server: large contents, small nodes, a new device, lists of children, a moved
/// branch. Each has its floor or peer in the same run.
///
/// `THICKET_TREE_PART` names one part, for a profile.
func trees() async throws -> [Figure] {
    let parts: [(name: String, run: () async throws -> [Figure])] = [
        ("content", { try await treeContents(mebibytes: 1_024) }),
        ("nodes", { try await smallNodes(count: 200) }),
        ("skeleton", { try await newDeviceOfTree(nodes: 100_000) }),
        ("children", { try await childrenPages() }),
        ("move", { try await movedBranch(nodes: 10_000) }),
    ]
    let wanted = getenv("THICKET_TREE_PART").map { String(cString: $0) }
    var figures = [Figure]()
    for part in parts where wanted == nil || wanted == part.name {
        figures += try await part.run()
        progress("tree: \(part.name) is measured")
    }
    return figures
}

/// A server with one built-in account, and devices of it.
final class TreeStand {
    let process: ServerProcess
    private let login: SignedIn
    private let apiKey: String

    init(settings: [String] = []) async throws {
        process = try ServerProcess(settings: settings)
        let made = try process.admin(["app", "create", BenchServer.app])
        let words = made.split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard let place = words.firstIndex(of: "key"), words.indices.contains(place + 1) else {
            throw BenchError("no API key: \(made)")
        }
        apiKey = String(words[place + 1])
        try process.start()
        let app = try ThicketApp(server: process.address, app: BenchServer.app, apiKey: apiKey, deviceId: "bench")
        login = try await app.accounts().signUp(
            name: "bench@example.com", password: SecureBytes(copying: Array("a long enough password".utf8)))
    }

    /// The account's id at the server.
    var user: String { login.account.user }

    /// A signed-in device with its tree.
    ///
    /// - Parameter name: of its files in the server's folder; the same name is the same device.
    func device(_ name: String) async throws -> TreeDesk {
        let app = try ThicketApp(
            server: process.address, app: BenchServer.app, apiKey: apiKey,
            store: .file("\(process.folder)/\(name).db"), deviceId: name)
        let session = try await app.resume(login)
        return TreeDesk(session: session, tree: try await session.tree())
    }
}

/// A device of the account.
struct TreeDesk {
    let session: ClientSession
    let tree: Treesystem

    /// Waits until everything is confirmed.
    func awaitSync() async throws { try await tree.waitUntilSynced(timeout: .seconds(900)) }

    /// Creates nodes without content, in requests of 200.
    ///
    /// - Parameter path: of node n; its parent exists.
    func fill(_ count: Int, _ path: @Sendable (Int) throws -> TreePath) async throws {
        for start in stride(from: 0, to: count, by: 2_000) {
            for first in stride(from: start, to: min(count, start + 2_000), by: 200) {
                let paths = try (first..<min(count, first + 200)).map(path)
                try await tree.batch { (editor) throws(TreeError) in
                    for path in paths { try editor.createNode(at: path, content: NodeSections()) }
                }
            }
            try await awaitSync()
        }
    }
}
