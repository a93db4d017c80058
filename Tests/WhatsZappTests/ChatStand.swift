import ThicketClient
import ThicketCrypto
import ThicketProcesses
import ThicketProtocol
import ThicketTreesystem

@testable import WhatsZapp

/// A real server with an app, and the people who chat through it.
final class ChatStand {
    static let patience = Duration.seconds(60)

    private let place = TemporaryFolder("chat")
    private let daemon: Daemon
    private let apiKey: String

    init() throws {
        try Daemon.command(place.path, ["app", "create", "chat"], succeeding: true)
        let key = try Daemon.command(place.path, ["app", "key", "add", "chat"], succeeding: true)
        apiKey = String(key.output.prefix { $0 != "\n" }.split(separator: " ").last ?? "")
        daemon = try Daemon(folder: place.path)
    }

    deinit { _ = try? daemon.terminate() }

    /// A person on one device.
    struct Device {
        let session: ClientSession
        let chat: ChatManager
        let tree: Treesystem
        var user: UserID { chat.me }
    }

    private func app(_ device: String) throws -> ThicketApp {
        try ThicketApp(
            server: "http://127.0.0.1:\(daemon.port)", app: "chat", apiKey: apiKey,
            store: .file("\(place.path)/\(device).db"), deviceId: device)
    }

    private static func password(_ name: String) -> SecureBytes {
        SecureBytes(copying: Array("sesame of \(name)".utf8))
    }

    /// A person who comes to WhatsZapp.
    func person(_ name: String) async throws -> Device {
        let app = try app("\(name)-1")
        return try await device(app, try await app.accounts().signUp(name: name, password: Self.password(name)))
    }

    /// Another device of a person.
    func device(of name: String, _ number: Int) async throws -> Device {
        let app = try app("\(name)-\(number)")
        let result = try await app.accounts().signIn(name: name, password: Self.password(name))
        guard case .open(let signed) = result else { throw AccountError.locked }
        return try await device(app, signed)
    }

    private func device(_ app: ThicketApp, _ signed: SignedIn) async throws -> Device {
        let session = try await app.resume(signed)
        let chat = try ChatManager(session)
        return Device(session: session, chat: chat, tree: try await chat.tree)
    }

    /// All bytes that the server has stored.
    func holds(_ text: String) throws -> Bool {
        let outcome = try ChildProcess.run(["/bin/sh", "-c", "cat '\(place.path)'/thicket.db* | grep -aqF '\(text)'"])
        return outcome.code == 0
    }
}

extension ChatStand.Device {
    /// The tree as the seed draws it: a line for each node, indented, names of nodes as a caller gives them.
    func picture(_ names: [String: String]) async throws -> [String] {
        var lines = [String]()
        for trunk in [Trunk.home, .inbox] {
            lines.append("(\(trunk.rawValue))")
            for try await (path, node) in tree.walk(from: TreePath(trunk)) {
                let known = names[node.id.text] ?? names[node.name.text] ?? "?"
                lines.append(String(repeating: "  ", count: path.depth) + "(\(known))")
            }
        }
        return lines
    }

    /// Waits until something is so that events of the chat announce.
    func wait(_ isSo: @Sendable (ChatManager) async throws -> Bool) async throws {
        let events = try await chat.events
        if try await isSo(chat) { return }
        for await _ in events where try await isSo(chat) { return }
        throw TreeError(.closed, "the session ended")
    }

    /// The only conversation's messages, the oldest first.
    func texts(with person: UserID) async throws -> [String] {
        try await chat.messages(with: person).reversed().map(\.text)
    }
}
