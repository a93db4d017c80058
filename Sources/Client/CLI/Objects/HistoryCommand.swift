import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket history`: the versions of an object that the server keeps, newest first.
enum HistoryCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key): (String, String) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        let limit: Int = try call.number("limit", in: 1...StreamLimits.versionsMax, default: 20)
        let open: OpenBucket = try await OpenBucket.open(try Account(call), bucket: name, store: .profile)
        try await open.ready()
        let versions: [ObjectVersion] = try await trying("cannot read the history of \(name)/\(key)") {
            () throws(ClientError) in try await open.bucket.history(of: key, limit: limit)
        }
        // What the oldest version is compared with.
        let isRemoved: Bool = try await trying("cannot read \(name)/\(key)") { () throws(ClientError) in
            try await open.bucket.get(key) == nil
        }
        await open.close()
        guard !versions.isEmpty else {
            throw Failure(
                "the server knows no version of \(name)/\(key)"
                    + (isRemoved ? ": there is no such object" : ""), .notFound)
        }
        if isRemoved, !call.flag("json") { Terminal.write("removed\n") }
        for (place, version): (Int, ObjectVersion) in versions.enumerated() {
            let before: ObjectVersion? = place + 1 < versions.count ? versions[place + 1] : nil
            let text: String = call.flag("json") ? json(version) : human(version, before, isDiff: call.flag("diff"))
            guard Terminal.write(text) else { return }
        }
    }

    private static func json(_ version: ObjectVersion) -> String {
        let row: JSONObject = ["version": .number(JSONNumber(version.version)), "object": .object(version.object)]
        return JSONValue.object(row).serializedText + "\n"
    }

    private static func human(_ version: ObjectVersion, _ before: ObjectVersion?, isDiff: Bool) -> String {
        let columns: Int = max(40, Terminal.columns(Terminal.standardOutput))
        guard isDiff, let before else {
            let start: String = "v\(version.version)  "
            return start + Screen.line(.object(version.object), columns: columns - start.utf8.count - 1) + "\n"
        }
        let diff: ObjectDiff = JSONDiff.diff(from: before.object, to: version.object)
        var text: String = "v\(version.version)\n"
        let lines: [String] = DiffText.lines(diff, from: before.object, columns: columns - 6)
        for line: String in lines { text += "    \(line)\n" }
        if lines.isEmpty { text += "    as v\(before.version)\n" }
        return text
    }
}

/// `thicket revert`: makes an object what it was in an old version; that becomes a new version.
enum RevertCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key): (String, String) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        guard let version: Int64 = try Keys.version(call.argument("VERSION")) else { return }
        let open: OpenBucket = try await OpenBucket.open(try Account(call), bucket: name, store: .profile)
        try await open.ready()
        let old: JSONObject = try await Keys.fetch(version, of: key, in: open)
        let what: String = "revert \(name)/\(key) to version \(version)"
        let isSame: Bool = try await trying("cannot \(what)") { () throws(ClientError) in
            if try await open.bucket.get(key) == old { return true }
            try await open.bucket.set(key, to: old)
            return false
        }
        if !isSame { try await open.confirm(key, what) }
        let now: Int64 = try await trying(what) { () throws(ClientError) in try await open.bucket.info(key).version }
        await open.close()
        Terminal.write(
            isSame
                ? "\(name)/\(key) is as it was in version \(version) already\n"
                : "\(name)/\(key) is as it was in version \(version); that is version \(now)\n")
    }
}
