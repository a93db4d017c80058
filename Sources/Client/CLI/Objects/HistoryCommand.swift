import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket history`: the versions of an object that the server keeps, newest first.
enum HistoryCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key): (String, String) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        let limit: Int = try call.number("limit", in: 1...StreamLimits.versionsMax, default: 20)
        let account: Account = try Account(call)
        let open: OpenBucket = try await OpenBucket.open(account, bucket: name, store: .profile)
        try await open.ready()
        if call.flag("export") { return try await export(key, limit, open, app: account.profile.app) }
        let versions: [ObjectVersion] = try await trying("cannot read the history of \(name)/\(key)") {
            () throws(ClientError) in
            try await open.asking { () throws(ClientError) in try await open.bucket.history(of: key, limit: limit) }
        }
        let removals: [RemovedObject]
        do throws(ClientError) {
            removals = try await open.asking { () throws(ClientError) in try await open.bucket.removals(of: key) }
        } catch {
            // Another server than thicketd lists no removals; its versions are shown all the same.
            guard error.code == .unavailable else { throw Failure("cannot read the history of \(name)/\(key)", error) }
            removals = []
        }
        let isRemoved: Bool = try await trying("cannot read \(name)/\(key)") { () throws(ClientError) in
            try await open.bucket.get(key) == nil
        }
        await open.close()
        let steps = HistoryStep.merged(versions, removals, limit: limit)
        guard !steps.isEmpty else {
            throw Failure(
                "the server knows no version of \(name)/\(key)"
                    + (isRemoved ? ": there is no such object" : ""), .notFound)
        }
        if isRemoved, removals.isEmpty, !call.flag("json") { Terminal.write("removed\n") }
        for (place, step) in steps.enumerated() {
            let before = place + 1 < steps.count ? steps[place + 1] : nil
            let text = call.flag("json") ? step.json : step.text(after: before, isDiff: call.flag("diff"))
            guard Terminal.write(text) else { return }
        }
    }

    /// What the server has stored, for 'thicket verify-history'.
    private static func export(
        _ key: String, _ limit: Int, _ open: OpenBucket, app: String
    ) async throws(Failure) {
        guard open.isSealed else {
            throw Failure("\(open.name) is an open bucket: it has no chain that could be checked", .usage)
        }
        let what: String = "cannot read the history of \(open.name)/\(key)"
        let history: StoredHistory = try await trying(what) { () throws(ClientError) in
            StoredHistory(
                app: app, bucket: open.name, object: try await open.bucket.storedKey(of: key),
                versions: try await open.asking { () throws(ClientError) in
                    try await open.bucket.storedHistory(of: key, limit: limit)
                })
        }
        await open.close()
        guard !history.versions.isEmpty else {
            throw Failure("the server knows no version of \(open.name)/\(key)", .notFound)
        }
        Terminal.write(history.json.serializedText + "\n")
    }
}

/// `thicket revert`: makes an object what it was in an old version; that becomes a new version. Without a version it
/// gives up the edits that the server does not have.
enum RevertCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key): (String, String) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        guard let version: Int64 = try Keys.version(call.invocation.argument("VERSION")) else {
            return try await DropCommand.drop(call, name, [key])
        }
        let open: OpenBucket = try await OpenBucket.open(try Account(call), bucket: name, store: .profile)
        try await open.ready()
        let old: JSONObject = try await Keys.fetch(version, of: key, in: open)
        let what: String = "revert \(name)/\(key) to version \(version)"
        let making: Making = try await trying("cannot \(what)") { () throws(ClientError) in
            try await open.make(key, old)
        }
        let isSame: Bool = making.isSame
        if !isSame { try await open.confirm(key, what, hadEdits: making.hadEdits) }
        let now: Int64 = try await trying(what) { () throws(ClientError) in try await open.bucket.info(key).version }
        await open.close()
        Terminal.write(
            isSame
                ? "\(name)/\(key) is as it was in version \(version) already\n"
                : "\(name)/\(key) is as it was in version \(version); that is version \(now)\n")
    }
}

/// `thicket verify-history`: whether the versions of a sealed object, as they were exported, are one history. Asks nobody.
enum VerifyHistoryCommand {
    static func run(_ call: Call) async throws(Failure) {
        let path: String = call.argument("FILE")
        let bytes: [UInt8] = try Inputs.bytes(Files.read(path, bytesMax: Inputs.bytesMax), path)
        guard let json: JSONValue = try? JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling),
            let stored: StoredHistory = StoredHistory(json)
        else { throw Failure("\(path) is no history as 'thicket history --export' prints it", .usage) }
        let account: OpenAccount = try keys(call)
        let report: HistoryReport = try await trying("cannot check \(path)") { () throws(ClientError) in
            try stored.check(by: account)
        }
        for finding: String in report.findings { Terminal.write("\(finding)\n") }
        guard report.findings.isEmpty, let name: String = report.name else {
            throw Failure(
                "\(path): of \(stored.versions.count) versions something does not fit: the server is not honest, or was restored "
                    + "from a backup")
        }
        let writers: String = report.devices == 1 ? "one device" : "\(report.devices) devices"
        let again: String = report.recreations == 0 ? "" : ", made anew \(report.recreations) times"
        Terminal.write(
            "\(stored.bucket)/\(Screen.safe(name)): \(stored.versions.count) versions up to operation \(report.operations)"
                + "\(again) are one history, by \(writers)\n")
    }

    private static func keys(_ call: Call) throws(Failure) -> OpenAccount {
        let kept: DeviceKeys? = try ProfileHome(call.environment).readKeys(try Account.profileName(call))
        guard let kept else {
            throw Failure("this machine does not have the account's keys: 'thicket login' gets them", .notFound)
        }
        do throws(AccountError) { return try kept.open() } catch {
            throw Failure("the keys kept here cannot be used", keys: error)
        }
    }
}
