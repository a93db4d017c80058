import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket repair`: objects of a sealed bucket that are read-only because the server does not show what this machine has seen, and
/// the choice between the two.
enum RepairCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, keys): (String, [String]) = (call.argument("BUCKET"), call.arguments("KEY"))
        for key: String in keys { try Keys.check(key) }
        let (isMine, isServers): (Bool, Bool) = (call.flag("mine"), call.flag("servers"))
        guard !(isMine && isServers) else { throw Failure("--mine or --servers, not both", .usage) }
        guard !keys.isEmpty || !(isMine || isServers) else {
            throw Failure("say which object: 'thicket repair \(name)' lists those that wait", .usage)
        }
        let open: OpenBucket = try await OpenBucket.open(try Account(call), bucket: name, store: .profile)
        try await open.ready()
        guard open.isSealed else {
            await open.close()
            throw Failure("\(name) is an open bucket: only objects of sealed ones are ever read-only", .usage)
        }
        if isMine || isServers {
            for key: String in keys { try await choose(key, keepsMine: isMine, in: open) }
        } else {
            try await show(keys, in: open)
        }
        await open.close()
    }

    // MARK: - Showing

    private static func show(_ keys: [String], in open: OpenBucket) async throws(Failure) {
        let waiting: [String] = try await trying("cannot read \(open.name)") { () throws(ClientError) in
            try await open.bucket.problems()
        }
        if waiting.isEmpty { Terminal.write("\(open.name): nothing to choose\n") }
        for key: String in waiting where keys.isEmpty || keys.contains(where: { same($0, key) }) {
            try await show(key, in: open)
        }
        guard let other: String = keys.first(where: { key in !waiting.contains { same($0, key) } }) else { return }
        await open.close()
        throw Failure("nothing makes \(open.name)/\(other) read-only", .notFound)
    }

    private static func show(_ key: String, in open: OpenBucket) async throws(Failure) {
        let what: String = "cannot read \(open.name)/\(key)"
        let problem: String? = try await trying(what) { () throws(ClientError) in try await open.bucket.problem(of: key)
        }
        let mine: JSONObject? = try await trying(what) { () throws(ClientError) in try await open.bucket.get(key) }
        let theirs: String
        do throws(ClientError) { theirs = text(try await open.bucket.servers(key)) } catch {
            guard error.code == .integrity else { throw Failure(what, error) }
            theirs = "cannot be read: keep yours"
        }
        Terminal.write(
            "\(key): \(problem ?? "")\n  mine     \(text(mine))\n  server's \(theirs)\n")
    }

    private static func text(_ object: JSONObject?) -> String {
        object.map { JSONValue.object($0).serializedText } ?? "deleted"
    }

    // MARK: - Choosing

    private static func choose(_ key: String, keepsMine: Bool, in open: OpenBucket) async throws(Failure) {
        let what: String = "choose \(open.name)/\(key)"
        let isDone: Bool = try await trying("cannot \(what)") { () throws(ClientError) in
            keepsMine ? try await open.bucket.keepMine(key) : try await open.bucket.takeServers(key)
        }
        guard isDone else {
            await open.close()
            throw Failure("nothing makes \(open.name)/\(key) read-only", .notFound)
        }
        try await open.confirm(key, what)
        Terminal.write("\(open.name)/\(key): \(keepsMine ? "yours is kept" : "the server's is taken")\n")
    }
}
