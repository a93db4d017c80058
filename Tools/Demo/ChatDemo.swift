import Glibc
import ThicketProcesses
import ThicketServerProcess

/// Alice, Bob and Carol chat with the real `whatszapp` through a real server: texts, a photo, a server that is killed
/// while Bob writes, and a new phone. Three columns show what each of them sees, and at the end what the server has.
struct ChatDemo {
    private static let people = ["alice", "bob", "carol"]
    private static let columns = 38
    private static let password = "correct horse battery"

    private let server: ServerProcess
    private let place = TemporaryFolder("chat-demo")
    private let apiKey: String
    private let start = Steady.milliseconds()

    static func run(_ arguments: [String]) throws {
        let arguments = arguments.filter { $0 != "--fast" }
        if let word = arguments.first { throw DemoError("demo chat does not know \(word); see --help") }
        try ChatDemo().play()
    }

    private init() throws {
        server = try ServerProcess()
        _ = try server.admin(["app", "create", "chat"])
        let key = try server.admin(["app", "key", "add", "chat"])
        apiKey = String(key.prefix { $0 != "\n" }.split(separator: " ").last ?? "")
        try server.start()
    }

    // MARK: - The story

    private func play() throws {
        say("A server, and three people who have never written to each other. The passwords stay on their machines.")
        for name in Self.people { try enter("signup", name, at: name) }
        try chat("alice", "send", "bob", "Hello Bob, are you coming on Friday?")
        try chat("carol", "send", "bob", "I have the tickets.")
        try show()
        try chat("bob", "read", "alice")
        try chat("bob", "read", "carol")
        server.kill()
        say("  the server is killed; Bob goes on writing")
        try chat("bob", "send", "alice", "Of course!", "--offline")
        try chat("bob", "send", "carol", "Great. Here is our seat plan.", "--offline")
        try show(isOnline: false)
        try server.start()
        say("  the server is back; Bob's next command sends what waits")
        try chat("bob", "conversations")
        try photo()
        try show()
        try newPhone()
        try conclude()
    }

    private func photo() throws {
        let path = place.path + "/seats.jpg"
        guard let file = fopen(path, "w") else { throw DemoError("cannot write \(path)") }
        var bytes: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 0, count: 400_000)
        for place in 4..<bytes.count { bytes[place] = UInt8.random(in: 0...255) }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
        try chat("bob", "send", "carol", "This is the hall.", "--file", path)
        let seen = try chat("carol", "open", "bob", "--json", isShown: false)
        guard
            let id = seen.split(separator: "\n").last?.split(separator: "\"id\":\"").last?.prefix(while: { $0 != "\"" })
        else { throw DemoError("carol does not see the photo: \(seen)") }
        mkdir(place.path + "/photos", 0o700)
        try chat("carol", "fetch", String(id), place.path + "/photos")
        let same = try ChildProcess.run(["/usr/bin/cmp", path, place.path + "/photos/seats.jpg"])
        guard same.code == 0 else { throw DemoError("the photo is not the one that Bob has sent: \(same)") }
    }

    private func newPhone() throws {
        say("Bob buys a new phone, and logs in:")
        try enter("login", "bob", at: "phone")
        let begin = Steady.milliseconds()
        let list = try chat("phone", "conversations")
        say("  \(list.split(separator: "\n").count) conversations after \(Steady.milliseconds() - begin) ms.")
        let texts = try chat("phone", "open", "carol")
        for text in ["I have the tickets.", "Great. Here is our seat plan.", "This is the hall.", "seats.jpg"] {
            guard texts.contains(text) else { throw DemoError("the new phone does not show '\(text)': \(texts)") }
        }
    }

    // MARK: - What each of them sees

    /// The conversations of all three, side by side.
    private func show(isOnline: Bool = true) throws {
        var panes = [[String]]()
        for name in Self.people {
            var lines = ["— \(name) —"]
            let words = ["conversations"] + (isOnline ? [] : ["--offline"])
            for line in try run(name, words).split(separator: "\n") {
                // Without the time, which is the same for all.
                let parts = line.split(separator: "  ", maxSplits: 2).map(String.init)
                lines.append(parts.count == 3 ? "\(parts[0]): \(parts[2])" : String(line))
            }
            panes.append(lines)
        }
        for row in 0..<(panes.map(\.count).max() ?? 0) {
            let cells = panes.map { row < $0.count ? String($0[row].prefix(Self.columns - 2)) : "" }
            say("  " + cells.map { $0 + String(repeating: " ", count: Self.columns - $0.count) }.joined())
        }
    }

    private func conclude() throws {
        guard server.terminate() == 0 else { throw DemoError("the server did not end as it should") }
        let check = try server.admin(["check"])
        let stored = try TreeHoldings(server.folder)
        say("What the server stores: \(stored.nodes) nodes, \(stored.blobs) blobs of \(stored.blobBytes >> 10) KiB.")
        for line in stored.excerpt { say("  \(line)") }
        var search = ByteSearch()
        let words = ["are you coming", "tickets", "Of course", "seat plan", "This is the hall", "seats.jpg"]
        for word in words { search.add("'\(word)'", Array(word.utf8)) }
        search.add("bytes of the photo", try ByteSearch.read(place.path + "/seats.jpg", from: 200_000, count: 16))
        let clear = try search.found(in: [try transcript(), place.path + "/photos/seats.jpg"])
        guard clear.count == search.count else { throw DemoError("the search finds \(clear) in the clear texts") }
        let files = try ChildProcess.run(["/usr/bin/find", server.folder, "-type", "f"]).output
        let found = try search.found(in: files.split(separator: "\n").map(String.init))
        say(
            "A search for \(search.count) texts and bytes: \(clear.count) with the people, \(found.count) at the server."
        )
        guard found.isEmpty else { throw DemoError("the server has \(found.sorted())") }
        say("thicketd check: \(check.split(separator: "\n").last ?? "nothing printed")")
        let seconds = Double(Steady.milliseconds() - start) / 1_000
        say("MATCH: everything arrived, and the server can read none of it. It took \(tenths(seconds)) s.")
    }

    /// What Carol and Bob have on their screens, as a file.
    private func transcript() throws -> String {
        let path = place.path + "/transcript"
        guard let file = fopen(path, "w") else { throw DemoError("cannot write \(path)") }
        defer { fclose(file) }
        for (name, person) in [("bob", "alice"), ("bob", "carol")] {
            fputs(try run(name, ["open", person, "--offline"]), file)
        }
        return path
    }

    // MARK: - Commands

    private func enter(_ command: String, _ user: String, at home: String) throws {
        let words = ["--server", server.address, "--app", "chat", "--api-key", apiKey, "--user", user]
        _ = try run(home, [command] + words)
        say("\(user)@\(home):~$ whatszapp \(command)")
    }

    /// Runs a command that a user would type, and prints it with its output.
    @discardableResult
    private func chat(_ home: String, _ words: String..., isShown: Bool = true) throws -> String {
        let shown = words.map { $0.contains(" ") ? "'\($0)'" : $0.hasPrefix("/") ? Self.name($0) : $0 }
        if isShown { say("\(home):~$ whatszapp \(shown.joined(separator: " "))") }
        let output = try run(home, words)
        if isShown { for line in output.split(separator: "\n") { say("  \(line)") } }
        return output
    }

    private static func name(_ path: String) -> String { String(path.split(separator: "/").last ?? "") }

    private func run(_ home: String, _ words: [String]) throws -> String {
        let outcome = try ChildProcess.run(
            [Programs.beside("whatszapp")] + words,
            variables: [
                "THICKET_HOME": place.path + "/" + home, "THICKET_PASSWORD": Self.password,
                "SWIFT_BACKTRACE": "enable=no",
            ])
        guard outcome.code == 0 else { throw DemoError("whatszapp \(words) of \(home): \(outcome)") }
        return outcome.output
    }
}
