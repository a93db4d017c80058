import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// A bucket that a command works on, and how long the command waits for the server.
struct OpenBucket: Sendable {
    let session: Session
    /// Renews the token while it is held; nil for tokens that cannot be renewed.
    var client: ClientSession?
    let bucket: Bucket
    let name: String
    let server: String
    let wait: WaitBudget
    /// Edits survive the end of this command.
    let isKept: Bool
    /// Set for a sealed bucket.
    var opening: SealedOpening?
    /// The refused edits that were reported.
    let refusals = RefusalBook()

    /// Opens the local copy and, unless `isOnline` is false, starts to connect.
    static func open(
        _ account: Account, bucket name: String, store: StoreChoice, isOnline: Bool = true,
        durability: StoreDurability = .program
    ) async throws(Failure) -> OpenBucket {
        try Keys.checkBucket(name)
        var options = account.sessionOptions(isOnline: isOnline)
        options.durability = durability
        let (location, isFallback) = try place(account, name, store)
        let opened: (session: Session, client: ClientSession?)
        let isKept: Bool
        do throws(ClientError) {
            opened = try await connect(account, location, options)
            isKept = location != .memory
        } catch {
            guard error.code == .storeInUse, isFallback else { throw failure(error, account, name, store) }
            opened = try await trying("cannot start") { () throws(ClientError) in
                try await connect(account, .memory, options)
            }
            isKept = false
        }
        let (bucket, sealing): (Bucket, SealedOpening?)
        do throws(Failure) {
            let opening = try SealedOpening(account, name)
            let isSealed: Bool
            (bucket, isSealed) = try await opening.open(opened.session, opened.client)
            sealing = isSealed ? opening : nil
        } catch {
            if let client = opened.client { await client.close() } else { await opened.session.close() }
            throw error
        }
        let open = OpenBucket(
            session: opened.session, client: opened.client, bucket: bucket, name: name, server: account.profile.server,
            wait: account.wait, isKept: isKept, opening: sealing, renewal: account.profile.renewal)
        account.opened.add(open)
        return open
    }

    /// What to do when the login has ended, as a sentence.
    var renewal = "Run 'thicket login'."

    /// The folder of the mirror that owns this copy.
    var mirror: String?

    /// The command that shows the read-only objects and lets the user choose.
    var repair: String { "thicket repair \(name)" + (mirror.map { " --mirror " + Screen.safe($0) } ?? "") }

    /// What `--offline` does with an edit.
    var keepsEdit: String { "the edit is kept here and is sent with the next command on \(name)" }

    /// The server cannot read the bucket.
    var isSealed: Bool { opening != nil }

    /// The content of the profile's copy, sealed or not: counting needs no keys.
    struct Count: Sendable {
        let objects: Int
        /// Objects with edits that the server has not acknowledged, including refused ones.
        let unsent: Int
        /// Edits that are refused for good.
        let refused: [RefusedEdit]
    }

    static func count(_ account: Account, bucket name: String) async throws(Failure) -> Count {
        let (location, _) = try place(account, name, .profileOnly)
        let opened: (session: Session, client: ClientSession?)
        do throws(ClientError) {
            opened = try await connect(account, location, account.sessionOptions(isOnline: false))
        } catch { throw failure(error, account, name, .profileOnly) }
        let result: Result<Count, ClientError>
        do throws(ClientError) {
            let kept = try opened.session.kept(name)
            let isKnown = try await opened.session.isSealed(name) != nil
            result = .success(
                Count(
                    objects: isKnown ? try await kept.keys().count : 0, unsent: try await kept.pendingCount,
                    refused: try await kept.refused()))
        } catch { result = .failure(error) }
        if let client = opened.client { await client.close() } else { await opened.session.close() }
        return try blocking("cannot read the copy of \(name)") { () throws(ClientError) in try result.get() }
    }

    private static func connect(
        _ account: Account, _ location: StoreLocation, _ options: SessionOptions
    ) async throws(ClientError) -> (session: Session, client: ClientSession?) {
        guard account.profile.kind == .token else {
            let client = try await account.session(
                store: location, isOnline: options.startsOnline, durability: options.durability)
            return (client.sync, client)
        }
        return (
            try await Thicket.connect(
                server: account.profile.server, app: account.profile.app, token: account.profile.token, store: location,
                options: options), nil
        )
    }

    /// The store, and whether memory is used instead while another command uses it.
    private static func place(
        _ account: Account, _ name: String, _ store: StoreChoice
    ) throws(Failure) -> (StoreLocation, Bool) {
        if case .file(let path) = store { return (.file(path), false) }
        let kind: String
        switch store {
        case .memory, .file: return (.memory, false)
        case .profile: kind = "objects"
        case .watch: kind = "watch"
        case .profileOnly:
            kind = "objects"
            if account.folder == nil {
                throw Failure(
                    "--offline needs a profile to keep the copy in: this account is given by settings only; "
                        + "'thicket login' makes a profile", .usage)
            }
        }
        guard let folder = account.folder else { return (.memory, false) }
        guard let keyFile = account.keyFile else { return (.memory, false) }
        try Files.makeFolder("\(folder)/\(kind)")
        let key = try blocking("cannot use the local copies") { () throws(ClientError) in try keyFile.key() }
        let isOnly = if case .profileOnly = store { true } else { false }
        return (.sealed("\(folder)/\(kind)/\(name).db", key), !isOnly)
    }

    private static func failure(
        _ error: ClientError, _ account: Account, _ name: String, _ store: StoreChoice
    ) -> Failure {
        switch error.code {
        case .storeInUse:
            return Failure(
                "another 'thicket' command uses the local copy of \(name): wait until it has ended, or end it",
                .storeInUse)
        case .store, .storeMismatch:
            return Failure("the local copy of \(name) cannot be used", error)
        default:
            return Failure("cannot use the server '\(account.profile.server)'", error)
        }
    }

    // MARK: - Waiting

    /// Waits until the copy equals the server's bucket, with a progress bar while much is read.
    ///
    /// Edits from earlier calls that the server refuses are ignored here.
    ///
    /// - Parameters:
    ///   - consequence: what did not happen if the wait fails, for the message; nil: the bucket was not read.
    ///   - offline: what the command's `--offline` does, for that message.
    func ready(_ consequence: String? = nil, offline: String? = nil) async throws(Failure) {
        do throws(ClientError) {
            try await synced()
        } catch {
            let isReadOnly = error.code == .unauthorized ? await isOnline : false
            guard error.code == .refused || isReadOnly else {
                throw unreachable(error, consequence ?? "\(name) was not read", offline)
            }
            if error.code == .refused { try await opening?.checkMode(session) }
        }
        try await opening?.listAsSealed(session)
    }

    /// Waits until the server has acknowledged the edit of an object. A refused edit is undone, unless the object had
    /// unacknowledged edits before: then all of them stay here, refused.
    ///
    /// - Parameters:
    ///   - what: "put notes/plan", for the message.
    ///   - hadEdits: the object had unacknowledged edits before.
    func confirm(_ key: String, _ what: String, hadEdits: Bool = false) async throws(Failure) {
        let waited: ClientError?
        do throws(ClientError) {
            try await synced()
            waited = nil
        } catch { waited = error }
        guard let waited else {
            try await opening?.listAsSealed(session)
            return
        }
        let info = try await trying(what) { () throws(ClientError) in try await bucket.info(key) }
        let refusal = info.refusal
        if hadEdits, refusal != nil { throw keptRefusal(key, what, refusal) }
        let isReadOnly = waited.code == .unauthorized ? await isOnline : false
        if hadEdits, info.hasUnconfirmedEdits, isReadOnly { throw keptRefusal(key, what, nil) }
        let isUndone = try await trying(what) { () throws(ClientError) in try await bucket.discardRefused(key) }
        if isUndone, let refusal {
            throw Failure(
                "the server refused to \(what): \(Failure.meaning(of: refusal)). Nothing was changed.", .refused)
        }
        if isUndone {
            throw Failure(
                "the token permits reading only, so '\(what)' changed nothing: log in with another token",
                .unauthorized)
        }
        // The refusal may be about other objects: this one has no unacknowledged edits.
        if waited.code == .refused {
            guard !info.hasUnconfirmedEdits else {
                throw Failure(
                    "'\(what)' is not confirmed: the object is read-only here ('\(repair)' shows why). The edit is kept "
                        + "here.")
            }
            try await opening?.listAsSealed(session)
            return
        }
        let hope =
            isKept
            ? "The edit is kept here and is sent with the next command on \(name)."
            : "Whether the server has it is not known: look with 'thicket get'."
        throw unreachable(waited, "'\(what)' is not confirmed. \(hope)")
    }

    /// Connected, though some edits may not be acknowledged yet.
    var isOnline: Bool {
        get async { if case .offline = await session.currentStatus { false } else { true } }
    }

    private func unreachable(_ error: ClientError, _ consequence: String, _ offline: String? = nil) -> Failure {
        let way = isKept ? offline.map { " With --offline \($0)." } ?? "" : ""
        return switch error.code {
        case .unauthorized:
            Failure(
                "the login has ended (\(error.detail)); \(consequence). \(renewal)", .unauthorized)
        case .storeMismatch:
            Failure(
                "the token belongs to another user than the copy kept on this machine; \(consequence). 'thicket login' "
                    + "with --profile OTHER keeps both apart.", .unauthorized)
        case .network:
            Failure(
                "\(server) cannot be reached (\(error.detail)); \(consequence). Is the server running, and the address "
                    + "right?\(way)", .offline)
        case .deadline:
            Failure(
                "\(server) did not answer within \(wait.total.words); \(consequence). --timeout waits longer.\(way)",
                .offline)
        case .sealed:
            Failure(
                "\(name) is a sealed bucket: the server cannot read it; \(consequence). --sealed opens it with the account's "
                    + "keys", .usage)
        default:
            Failure(consequence, error)
        }
    }

    /// Waits for sync while it makes progress. A server that cannot be reached at the first attempt is reported at
    /// once.
    private func synced() async throws(ClientError) {
        let follower = StatusFollower(name: name, wait: wait)
        let result = await withTaskGroup { group in
            group.addTask { await patience(follower) }
            group.addTask { await follower.follow(session.status) ?? .success(()) }
            let first = await group.next() ?? .success(())
            group.cancelAll()
            return first
        }
        try result.get()
    }

    private func patience(_ follower: StatusFollower) async -> Result<Void, ClientError> {
        // The wait is repeated only after progress; no progress counts before the first wait.
        var seen = follower.progress
        while true {
            do throws(ClientError) {
                try await wait.counting { (left) throws(ClientError) in
                    try await bucket.waitUntilSynced(timeout: left)
                }
                return .success(())
            } catch {
                guard error.code == .deadline, !wait.isWhole, !Task.isCancelled, follower.progress > seen else {
                    return .failure(error)
                }
                seen = follower.progress
            }
        }
    }

    /// Asks the server for something that is not part of the sync, such as an old version. If the time is over before
    /// the answer arrives, the session ends: the command has failed.
    func asking<Value: Sendable>(
        _ body: () async throws(ClientError) -> Value
    ) async throws(ClientError) -> Value {
        guard wait.isWhole else { return try await body() }
        let lateness = Task {
            // The sleep was cancelled: the answer has arrived.
            guard (try? await Task.sleep(for: wait.left)) != nil else { return false }
            await end()
            return true
        }
        defer { lateness.cancel() }
        do throws(ClientError) {
            return try await wait.counting { (_) throws(ClientError) in try await body() }
        } catch {
            lateness.cancel()
            guard await lateness.value else { throw error }
            throw ClientError(
                .deadline, "\(server) did not answer within \(wait.total.words); --timeout waits longer")
        }
    }

    /// Ends the session: unsent edits stay in the stored copy. Pending events are printed on standard error. A second
    /// call does nothing.
    ///
    /// - Parameter reportsRefused: false: the command reports refused edits itself.
    func close(reportsRefused: Bool = true) async {
        await reportUndelivered()
        if reportsRefused { await reportRefused() }
        await end()
    }

    private func end() async {
        if let client { await client.close() } else { await session.close() }
    }
}

/// Watches a session's status during a wait: draws the progress, and reports when waiting is pointless.
final class StatusFollower: Sendable {
    /// The number of unsent edits from which the progress of sending is shown.
    private static let shownFrom = 50
    private let name: String
    private let wait: WaitBudget
    private let steps: Mutex<Int64> = Mutex(0)

    init(name: String, wait: WaitBudget) { (self.name, self.wait) = (name, wait) }

    /// Grows while objects are read or edits are acknowledged.
    var progress: Int64 { steps.withLock { $0 } }

    /// Returns an error when the command's first attempt to connect fails, and nil when the task is cancelled.
    func follow(_ statuses: AsyncStream<SyncStatus>) async -> Result<Void, ClientError>? {
        var (reading, sending): (ProgressBar?, ProgressBar?)
        var most = 0
        defer {
            reading?.clear()
            sending?.clear()
        }
        for await status in statuses {
            switch status {
            case .indexing(let done, let total):
                wait.markReached()
                steps.withLock { $0 += 1 }
                if reading == nil { reading = ProgressBar("reading \(name)", total: total.map(Int.init)) }
                reading?.update(Int(done))
            case .syncing(let pending):
                wait.markReached()
                steps.withLock { $0 += 1 }
                most = max(most, pending)
                if sending == nil, pending >= StatusFollower.shownFrom {
                    sending = ProgressBar("sending to \(name)", total: pending)
                }
                sending?.update(max(0, most - pending))
            case .upToDate:
                wait.markReached()
                sending?.update(most)
            case .offline(.unreachable(let reason)):
                if !wait.hasReached { return .failure(ClientError(.network, reason)) }
            case .offline(.untrusted(let reason)): return .failure(ClientError(.untrusted, reason))
            case .offline(.storeFailed(let reason)): return .failure(ClientError(.store, reason))
            case .offline(.unauthorized(let reason)): return .failure(ClientError(.unauthorized, reason))
            case .offline(.wrongAccount(let user)):
                return .failure(ClientError(.storeMismatch, "the token is \(user)'s"))
            case .connecting, .offline: break
            }
        }
        return Task.isCancelled ? nil : .failure(ClientError(.closed, "the session ended"))
    }
}
