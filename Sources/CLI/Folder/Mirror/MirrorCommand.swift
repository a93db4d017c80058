import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket mirror`: keeps a folder and a bucket equal until Ctrl-C.
enum MirrorCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (directory, name) = (call.argument("DIR"), call.argument("BUCKET"))
        let account = try Account(call)
        try Keys.checkBucket(name)
        let limit = try RemovalLimit(call.value("allow-removals"))
        try Files.makeFolder(directory, mode: 0o755)
        let state = try MirrorState(
            directory: directory, server: account.profile.server, app: account.profile.app, bucket: name)
        // The mirror's memory must never be newer than its copy of the bucket, not even after a power loss.
        var open = try await self.open(account, name, state)
        open.mirror = directory
        let isOnce = call.flag("once")
        let signal = isOnce ? nil : FolderSignals.best(folder: directory)
        let mirror = Mirror(
            directory: directory, open: open, state: state, isOnce: isOnce, limit: limit, signal: signal)
        let inbox = MirrorInbox(renewal: open.renewal)
        let events = await open.bucket.changes
        let reader: Task<Void, Never> = Task { for await event in events { inbox.receive(event) } }
        let problem: Failure?
        do throws(Failure) {
            let isRead = try await mirror.resume()
            try await mirror.sendAgain()
            await open.session.goOnline()
            let isKnown = state.isComplete && isRead
            if !isKnown || isOnce { try await open.ready() }
            try await mirror.markComplete()
            if isOnce {
                try await once(mirror, open, inbox, directory)
            } else {
                guard let signal else { throw Failure("the system has no more pipes: \(Files.reason())") }
                try await forever(mirror, open, inbox, directory, signal)
            }
            problem = nil
        } catch { problem = error }
        // The events end with the session. Those that arrive until then are printed, however the mirror ended.
        await open.close(reportsRefused: false)
        await reader.value
        // Ctrl-C is the normal end of a mirror: refused files were reported at the time of the refusal.
        if !isOnce { open.refusals.forget() }
        if let problem { throw problem.isOfCopy && open.isSealed ? restartAdvice(problem, state) : problem }
        if isOnce, await mirror.problems > 0 { throw Failure("some files were left alone: see above") }
    }

    /// What to do where the copy does not open: the files have everything that it would contribute.
    private static func restartAdvice(_ problem: Failure, _ state: MirrorState) -> Failure {
        Failure(
            "\(problem.text). Nothing was changed. When \(state.path) is removed the mirror starts from the beginning: "
                + "it deletes no file, and sends what the server does not have", problem.code)
    }

    private static func open(
        _ account: Account, _ name: String, _ state: MirrorState
    ) async throws(Failure) -> OpenBucket {
        do throws(Failure) {
            return try await OpenBucket.open(
                account, bucket: name, store: .file(state.storePath), isOnline: false, durability: .power)
        } catch {
            guard error.code == .storeInUse else { throw error }
            throw Failure("another 'thicket mirror' runs on this folder: end it first", .storeInUse)
        }
    }

    /// Mirrors in both directions until nothing is left to do.
    private static func once(
        _ mirror: Mirror, _ open: OpenBucket, _ inbox: MirrorInbox, _ directory: String
    ) async throws(Failure) {
        var steps = 1
        for _ in 0..<Self.roundsMax where steps > 0 {
            steps = try await mirror.round(nil).steps
            try await open.ready()
            try await mirror.reportConfirmed()
        }
        if steps > 0 {
            throw Failure(
                "\(directory) and \(open.name) are not the same yet: files or objects changed all the time. Run it again, or "
                    + "without --once")
        }
        try await mirror.nameRefused()
        let same = Self.files(await mirror.sameCount)
        let outcome =
            await mirror.problems > 0
            ? "are the same except for what is named above: \(same)" : "are the same: \(same)"
        Terminal.writeError("\(directory) and \(open.name) \(outcome)\n")
    }

    /// How many rounds `--once` makes before it gives up on a folder that changes all the time.
    private static let roundsMax = 50

    private static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }

    private static func forever(
        _ mirror: Mirror, _ open: OpenBucket, _ inbox: MirrorInbox, _ directory: String, _ signal: any FolderSignal
    ) async throws(Failure) {
        let changes = FolderSignals.changes(signal)
        let interrupts = Interrupts.stream()
        let statuses = await open.session.status
        let result = await withTaskGroup { group in
            group.addTask { for await status in statuses { inbox.receive(status) } }
            group.addTask { for await _ in changes { inbox.look() } }
            group.addTask {
                for await _ in interrupts {}
                inbox.stop()
            }
            group.addTask { await inbox.ring() }
            let result = await loop(mirror, open, inbox, directory)
            group.cancelAll()
            signal.stop()
            inbox.stop()
            await open.close(reportsRefused: false)
            Interrupts.release()
            return result
        }
        try result.get()
    }

    private static func loop(
        _ mirror: Mirror, _ open: OpenBucket, _ inbox: MirrorInbox, _ directory: String
    ) async -> Result<Void, Failure> {
        do throws(Failure) {
            let first = try await mirror.round(nil)
            inbox.lookAgain(first.again)
            try await mirror.reportConfirmed()
            Terminal.writeError(
                "mirroring \(directory) and \(open.name): \(Self.files(await mirror.fileCount)); Ctrl-C ends it\n")
            for await _ in inbox.signals {
                let mail = inbox.empty()
                if mail.isStopped { break }
                if let problem = mail.problem { return .failure(problem) }
                for line in mail.lines { Terminal.writeError(line + "\n") }
                if mail.isRefused { try await mirror.nameRefused() }
                if mail.mustLook {
                    let keys = mail.isEverything ? nil : mail.keys
                    inbox.lookAgain(try await mirror.round(keys).again)
                }
                try await mirror.reportConfirmed()
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }
}

/// What has happened since the mirror's last round. The memory is bounded by the changed keys, not by the number of
/// events.
final class MirrorInbox: Sendable {
    struct Mail: Sendable {
        var keys = Set<String>()
        /// Events were missed: everything has to be compared.
        var isEverything = false
        var isStopped = false
        /// The folder or an object may have changed. If false, only the server has answered.
        var mustLook = false
        /// The server refused an edit.
        var isRefused = false
        /// Lines for the user.
        var lines = [String]()
        var problem: Failure?
    }

    /// Yields an element when mail has arrived.
    let signals: AsyncStream<Void>
    private let wakeup: AsyncStream<Void>.Continuation
    private let mail = Mutex(Mail())
    private let lastStatus = Mutex("connected")
    /// Milliseconds until the next round that no event causes.
    private let alarms: AsyncStream<Int64>
    private let alarm: AsyncStream<Int64>.Continuation

    /// What to do when the login has ended, as a sentence.
    private let renewal: String

    init(renewal: String) {
        self.renewal = renewal
        (signals, wakeup) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (alarms, alarm) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
    }

    func receive(_ event: BucketEvent) {
        mail.withLock { mail in
            mail.mustLook = true
            switch event {
            case .changed(let change): if change.origin == .remote { mail.keys.insert(change.key) }
            case .removed(let removal): if removal.origin == .remote { mail.keys.insert(removal.key) }
            case .refused: mail.isRefused = true
            case .overrun: mail.isEverything = true
            case .unavailable(let reason):
                Terminal.writeError("the server does not open the bucket (\(reason.detail)); trying again\n")
            case .integrity, .conflict: OpenBucket.report(event)
            case .caughtUp: break
            }
        }
        wakeup.yield(())
    }

    func receive(_ status: SyncStatus) {
        let text: String
        switch status {
        case .connecting, .indexing, .syncing, .upToDate:
            if case .connecting = status { return }
            text = "connected"
            // The server may have acknowledged something.
            wakeup.yield(())
        case .offline(.unreachable(let reason)), .offline(.untrusted(let reason)):
            text = "offline (\(reason)): changes in the folder are kept and go out later"
        case .offline(.storeFailed(let reason)): text = "the mirror's copy cannot be written (\(reason)); trying again"
        case .offline(.unauthorized(let reason)):
            mail.withLock {
                $0.problem = Failure(
                    "the login has ended (\(reason)). \(renewal)", .unauthorized)
            }
            wakeup.yield(())
            return
        case .offline(.wrongAccount(let user)):
            mail.withLock {
                $0.problem = Failure(
                    "this folder mirrors another user's bucket, and the token is \(Screen.safe(user))'s: use another folder",
                    .usage)
            }
            wakeup.yield(())
            return
        case .offline: return
        }
        let isNew = lastStatus.withLock { last in
            defer { last = text }
            return !same(last, text)
        }
        guard isNew else { return }
        mail.withLock {
            $0.lines.append(text)
            $0.mustLook = true
        }
        wakeup.yield(())
    }

    /// The folder may have changed.
    func look() {
        mail.withLock { $0.mustLook = true }
        wakeup.yield(())
    }

    func stop() {
        mail.withLock { $0.isStopped = true }
        alarm.finish()
        wakeup.yield(())
    }

    func lookAgain(_ milliseconds: Int64?) {
        if let milliseconds { alarm.yield(milliseconds) }
    }

    /// Wakes the mirror after the requested delays.
    func ring() async {
        for await milliseconds in alarms {
            guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
            look()
        }
    }

    func empty() -> Mail {
        mail.withLock { mail in
            defer { mail = Mail(isStopped: mail.isStopped) }
            return mail
        }
    }
}
