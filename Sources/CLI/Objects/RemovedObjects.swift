import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket ls BUCKET --removed`: lists removed objects, with the version and the time of the removal.
enum RemovedObjects {
    static func list(_ call: Call, _ account: Account, _ name: String) async throws(Failure) {
        guard !call.flag("offline"), !call.flag("long") else {
            let option = call.flag("offline") ? "--offline" : "--long"
            throw Failure(
                "--removed asks the server for removals and nothing else: it does not go with \(option)", .usage)
        }
        let open = try await OpenBucket.open(account, bucket: name, store: .profile)
        try await open.ready()
        let removed = try await trying("cannot list the removed objects of \(name)") { () throws(ClientError) in
            try await open.asking { () throws(ClientError) in
                try await open.bucket.removed(limit: StreamLimits.removedMax)
            }
        }
        await open.close()
        let widest = min(removed.map { Self.name($0).utf8.count }.max() ?? 0, 40)
        for object in removed {
            guard Terminal.write(call.flag("json") ? json(object) : text(object, widest)) else { break }
        }
        if removed.isEmpty, Terminal.isTerminal(Terminal.standardError), !call.flag("json") {
            Terminal.writeError("no object of \(name) is removed\n")
        }
    }

    /// Two blanks and the time of a removal in this machine's time zone.
    static func time(_ removal: RemovedObject) -> String {
        removal.removedAt.map { "  \(Days.text($0 / 1_000))" } ?? "  (longer ago than the server's log)"
    }

    /// An object without a name belongs to a sealed bucket: the server's key is shown instead, in brackets.
    private static func name(_ object: RemovedObject) -> String { object.key ?? "[\(object.serverKey)]" }

    private static func text(_ object: RemovedObject, _ widest: Int) -> String {
        let name = name(object)
        let padding = String(repeating: " ", count: max(0, widest - name.utf8.count))
        return "\(name)\(padding)  v\(object.version)\(time(object))\n"
    }

    private static func json(_ object: RemovedObject) -> String {
        var row: JSONObject = ["key": object.key.map(JSONValue.string) ?? .null]
        row["version"] = .number(JSONNumber(object.version))
        row["removedAt"] = object.removedAt.map { .number(JSONNumber($0)) } ?? .null
        return JSONValue.object(row).serializedText + "\n"
    }
}
