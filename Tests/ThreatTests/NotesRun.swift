import ThicketClient
import ThicketCrypto
import ThicketOnions
import ThicketProcesses
import ThicketThreats

/// A whole life of an account of the old notes app: signed up, notes made, read, changed, removed, logged out, logged
/// in, deleted. Neither the user's name nor the password may be seen, only their stretched forms.
final class NotesRun {
    static let app = "onions"

    private(set) var texts = [(name: String, secret: String)]()
    private(set) var sent = [(name: String, text: String)]()
    let variables: [String: String]
    private let account: OnionAccount

    /// Makes the app at a server that runs.
    init(_ house: ThreatHouse, port: UInt16) throws {
        let folder = house.folder.path
        let made = try Daemon.command(
            folder, ["app", "create", Self.app, "--passwords", "notes"], succeeding: true
        ).output
        try Daemon.command(folder, ["app", "notes", Self.app, "on"], succeeding: true)
        let lines: [Substring] = made.split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("api key") }),
            let key = line.split(separator: " ").last
        else { throw ProcessError("no key in \(made)") }
        account = try OnionAccount(
            server: "http://127.0.0.1:\(port)", app: Self.app, apiKey: String(key), patience: .seconds(60))
        variables = [
            "THICKET_SERVER": "http://localhost:\(port)", "THICKET_APP": Self.app, "THICKET_API_KEY": String(key),
        ]
    }

    func text(_ name: String) -> String {
        let text = "canary\(RandomBytes.hex(8))"
        texts.append(("the \(name)", text))
        return text
    }

    private static func secret(_ text: String) -> SecureBytes { .init(copying: Array(text.utf8)) }

    /// Records the name and password as the server gets them; rounds of the two together are searched for, too.
    func stretched(_ name: String, _ password: String) throws {
        let sent = try StretchedCredentials(username: Self.secret(name), password: Self.secret(password))
        texts.append(("the password with the user's name", password + name))
        for (what, value) in [("user name", sent.username), ("password", sent.password)] {
            self.sent.append(("the stretched \(what)", value.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }))
        }
    }

    private func note(_ title: String, _ info: String) -> NoteText {
        NoteText(title: Self.secret(title), info: Self.secret(info))
    }

    func live() async throws {
        let (name, password) = (text("user name"), text("password"))
        try stretched(name, password)
        var vault = try await account.signUp(username: Self.secret(name), password: Self.secret(password))
        let first = note(text("title"), text("info"))
        let id = try await vault.create(first)
        let gone = try await vault.create(note(text("other title"), text("other info")))
        guard try await vault.read(id) == first else { throw ProcessError("a note is read as another") }
        await vault.end()
        vault = try await account.signIn(username: Self.secret(name), password: Self.secret(password))
        try await vault.save(note(text("new title"), text("new info")), in: id, over: first)
        try await vault.remove(gone)
        let sealed = try await vault.sealedCopy(of: id)["onionTitle"]?.stringValue
        // In one line, as the search reads it: the first letters of a base64 text of several lines.
        sent.append(("a sealed title", String((sealed ?? "nothing").prefix(60))))
        try await account.delete(vault, username: Self.secret(name), password: Self.secret(password))
    }
}
