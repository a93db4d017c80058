import ThicketClient
import ThicketCrypto
import ThicketTreesystem

/// The app's side of the tree: it has the recipes, and gives their content when the queue is ready to upload it.
final class RecipeBook: TreeDelegate {
    func data(for node: Node, at path: TreePath) async throws -> NodeData {
        switch path.names.first?.text {
        // A small object: whatever bytes the app likes.
        case "notes": .bytes(Array(#"{"title": "Soup"}"#.utf8))
        // A file of any size; it is read and sealed when its turn comes.
        case "videos": .file("/home/ada/bread.mp4")
        // Work that takes a while. If it fails, the change waits; nothing empty is ever uploaded.
        default: .promise { .bytes(try await paintedCover()) }
        }
    }
}

@Sendable func paintedCover() async throws -> [UInt8] { [0x89, 0x50, 0x4E, 0x47] }

let app = try ThicketApp(
    server: "http://127.0.0.1:8000", app: "recipes", apiKey: "0123456789abcdef0123456789abcdef",
    store: .file("ada.db"))
let password = SecureBytes(copying: Array("correct horse".utf8))
let session = try await app.resume(try await app.accounts().signUp(name: "ada@example.com", password: password))
let tree = try await session.tree(delegate: RecipeBook())

// In the store when the call returns, offline too. The delegate is asked for the content later.
try await tree.createNode(at: TreePath(.home, ["notes"]))
let soup = try await tree.createNode(at: TreePath(.home, ["notes", "soup"]))

// Several changes that reach the server, and the other devices, together or not at all.
let (album, place) = (try TreePath(.home, ["album"]), try TreePath(.home, ["album", "soup"]))
try await tree.batch { editor throws(TreeError) in
    try editor.createNode(at: album, content: NodeSections())
    try editor.move(soup.id, to: place)
}
try await tree.waitUntilSynced()
