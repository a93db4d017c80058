import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket history`: the versions of an object that the server keeps, newest first.
enum HistoryCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        let limit = try call.number("limit", in: 1...StreamLimits.versionsMax, default: 20)
        let account = try Account(call)
        let open = try await OpenBucket.open(account, bucket: name, store: .profile)
        try await open.ready()
        if call.flag("export") { return try await export(key, limit, open, app: account.profile.app) }
        let versions = try await trying("cannot read the history of \(name)/\(key)") {
            () throws(ClientError) in
            try await open.asking { () throws(ClientError) in try await open.bucket.history(of: key, limit: limit) }
        }
        let removals: [RemovedObject]
        do throws(ClientError) {
            removals = try await open.asking { () throws(ClientError) in try await open.bucket.removals(of: key) }
        } catch {
            // A server other than thicketd may not list removals; its versions are shown all the same.
            guard error.code == .unavailable else { throw Failure("cannot read the history of \(name)/\(key)", error) }
            removals = []
        }
        let isRemoved = try await trying("cannot read \(name)/\(key)") { () throws(ClientError) in
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

    /// Writes the stored form of the versions, for 'thicket verify-history'.
    private static func export(
        _ key: String, _ limit: Int, _ open: OpenBucket, app: String
    ) async throws(Failure) {
        guard open.isSealed else {
            throw Failure("\(open.name) is an open bucket: it has no chain that could be checked", .usage)
        }
        let what = "cannot read the history of \(open.name)/\(key)"
        let history = try await trying(what) { () throws(ClientError) in
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

/// `thicket revert`: makes an object equal to an old version; that becomes a new version. Without a version it drops
/// the edits that the server does not have.
enum RevertCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        guard let version = try Keys.version(call.invocation.argument("VERSION")) else {
            return try await DropCommand.drop(call, name, [key])
        }
        let open = try await OpenBucket.open(try Account(call), bucket: name, store: .profile)
        try await open.ready()
        let old = try await Keys.fetch(version, of: key, in: open)
        let what = "revert \(name)/\(key) to version \(version)"
        let making = try await trying("cannot \(what)") { () throws(ClientError) in
            try await open.make(key, old)
        }
        let isSame = making.isSame
        if !isSame { try await open.confirm(key, what, hadEdits: making.hadEdits) }
        let now = try await trying(what) { () throws(ClientError) in try await open.bucket.info(key).version }
        await open.close()
        Terminal.write(
            isSame
                ? "\(name)/\(key) is as it was in version \(version) already\n"
                : "\(name)/\(key) is as it was in version \(version); that is version \(now)\n")
    }
}

/// `thicket verify-history`: checks that the exported versions of a sealed object are one history. It does not contact
/// the server.
enum VerifyHistoryCommand {
    static func run(_ call: Call) async throws(Failure) {
        let path = call.argument("FILE")
        let bytes = try Inputs.bytes(Files.read(path, bytesMax: Inputs.bytesMax), path)
        guard let json = try? JSONValue(parsing: bytes, maxDepth: JSONDocument.depthCeiling),
            let stored = StoredHistory(json)
        else { throw Failure("\(path) is not a history as 'thicket history --export' prints it", .usage) }
        let account = try keys(call)
        let report = try await trying("cannot check \(path)") { () throws(ClientError) in
            try stored.check(by: account)
        }
        for finding in report.findings { Terminal.write("\(finding)\n") }
        guard report.findings.isEmpty, let name = report.name else {
            throw Failure(
                "\(path): of \(stored.versions.count) versions something does not fit: the server is not honest, or was restored "
                    + "from a backup")
        }
        let writers = report.devices == 1 ? "one device" : "\(report.devices) devices"
        let again = report.recreations == 0 ? "" : ", created again \(report.recreations) times"
        Terminal.write(
            "\(stored.bucket)/\(Screen.safe(name)): \(stored.versions.count) versions up to operation \(report.operations)"
                + "\(again) are one history, by \(writers)\n")
    }

    private static func keys(_ call: Call) throws(Failure) -> OpenAccount {
        let kept = try ProfileHome(call.environment).readKeys(try Account.profileName(call))
        guard let kept else {
            throw Failure("this machine does not have the account's keys: 'thicket login' gets them", .notFound)
        }
        do throws(AccountError) { return try kept.open() } catch {
            throw Failure("the keys kept here cannot be used", keys: error)
        }
    }
}
