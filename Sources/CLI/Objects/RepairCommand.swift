import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket repair`: shows the objects of a sealed bucket that are read-only because the server's state contradicts
/// what this machine has seen, and lets the user choose one of the two.
enum RepairCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, keys) = (call.argument("BUCKET"), call.arguments("KEY"))
        for key in keys { try Keys.check(key) }
        let (isMine, isServers) = (call.flag("mine"), call.flag("servers"))
        guard !(isMine && isServers) else { throw Failure("--mine or --servers, not both", .usage) }
        guard !call.flag("json") || !(isMine || isServers) else {
            throw Failure("--json is for showing, not for --mine or --servers", .usage)
        }
        guard !keys.isEmpty || !(isMine || isServers) else {
            throw Failure("say which object: 'thicket repair \(name)' lists those that wait", .usage)
        }
        let open = try await open(call, name)
        try await open.ready()
        guard open.isSealed else {
            await open.close()
            throw Failure("\(name) is an open bucket: only objects of sealed ones are ever read-only", .usage)
        }
        if isMine || isServers {
            for key in keys { try await choose(key, keepsMine: isMine, in: open) }
        } else {
            try await show(keys, in: open, isJSON: call.flag("json"))
        }
        await open.close()
    }

    /// A mirror has a separate copy, which has seen other states than the profile's.
    private static func open(_ call: Call, _ name: String) async throws(Failure) -> OpenBucket {
        let account = try Account(call)
        guard let directory = call.value("mirror") else {
            return try await OpenBucket.open(account, bucket: name, store: .profile)
        }
        try Keys.checkBucket(name)
        let path = try MirrorState.existing(
            directory: directory, server: account.profile.server, app: account.profile.app, bucket: name
        ).storePath
        var open = try await OpenBucket.open(account, bucket: name, store: .file(path), durability: .power)
        open.mirror = directory
        return open
    }

    // MARK: - Showing

    private static func show(_ keys: [String], in open: OpenBucket, isJSON: Bool) async throws(Failure) {
        var waiting = keys
        if keys.isEmpty {
            waiting = try await trying("cannot read \(open.name)") { () throws(ClientError) in
                try await open.bucket.problems()
            }
            if waiting.isEmpty, !isJSON { Terminal.write("\(open.name): nothing to choose\n") }
        }
        for key in waiting {
            // Checks also an object that never opened on this machine, whose name is in no list.
            let problem = try await trying("cannot read \(open.name)/\(key)") { () throws(ClientError) in
                try await open.bucket.problem(of: key)
            }
            guard let problem else { throw Failure("\(open.name)/\(key) is not read-only", .notFound) }
            guard try await show(key, problem, in: open, isJSON: isJSON) else { return }
        }
    }

    /// Returns false when the output has no reader any more.
    private static func show(
        _ key: String, _ problem: String, in open: OpenBucket, isJSON: Bool
    ) async throws(Failure) -> Bool {
        let what = "cannot read \(open.name)/\(key)"
        let mine = try await trying(what) { () throws(ClientError) in try await open.bucket.get(key) }
        var (theirs, isReadable): (JSONObject?, Bool) = (nil, true)
        do throws(ClientError) { theirs = try await open.bucket.servers(key) } catch {
            guard error.code == .integrity else { throw Failure(what, error) }
            isReadable = false
        }
        if isJSON {
            var row: JSONObject = [
                "key": .string(key), "problem": .string(problem), "mine": mine.map { .object($0) } ?? .null,
                "readable": .bool(isReadable),
            ]
            if isReadable { row["server"] = theirs.map { .object($0) } ?? .null }
            return Terminal.write(JSONValue.object(row).serializedText + "\n")
        }
        let other = isReadable ? text(theirs) : "cannot be read: keep yours"
        let lines = "\(key): \(problem)\n  mine     \(text(mine))\n  server's \(other)\n"
        return Terminal.write(Terminal.isTerminal(Terminal.standardOutput) ? Screen.safe(lines) : lines)
    }

    private static func text(_ object: JSONObject?) -> String {
        object.map { JSONValue.object($0).serializedText } ?? "deleted"
    }

    // MARK: - Choosing

    private static func choose(_ key: String, keepsMine: Bool, in open: OpenBucket) async throws(Failure) {
        let what = "choose \(open.name)/\(key)"
        let isDone = try await trying("cannot \(what)") { () throws(ClientError) in
            keepsMine ? try await open.bucket.keepMine(key) : try await open.bucket.takeServers(key)
        }
        guard isDone else { throw Failure("\(open.name)/\(key) is not read-only", .notFound) }
        // The choice stays on this machine even if the server refuses it.
        try await open.confirm(key, what, hadEdits: true)
        Terminal.write("\(open.name)/\(key): \(keepsMine ? "yours is kept" : "the server's is taken")\n")
    }
}
