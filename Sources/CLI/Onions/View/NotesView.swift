import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketOnions
import ThicketPlatform
import ThicketProtocol

/// `thicket onions view`: connects `NotesScreen` to a terminal and a vault.
///
/// The screen has a dedicated thread; its actions run on another one, and their answers wait in a queue that the screen
/// polls.
final class NotesView: Sendable {
    /// Milliseconds between polls for answers while no key is pressed.
    private static let lookMilliseconds: Int32 = 50

    private let onions: OnionCall
    private let username: SecureBytes?
    private let lockAfter: Int64
    /// At most one answer per action and one per list; the screen empties the queue 20 times a second.
    private let answers: Mutex<[NotesScreen.Event]> = Mutex([])
    private let vault: Mutex<Vault?> = Mutex(nil)
    /// Texts that could not be saved before a lock, sealed with the keys of the notes: one for each such lock, so there
    /// are few.
    let drafts: Mutex<[JSONObject]> = Mutex([])
    let saver = NoteSaver()
    /// The hint is shown only once.
    private let hasHinted = Mutex(false)
    /// Everything that a stopped program must not hold was dropped.
    private let mayStop = Mutex(false)
    /// Actions run one after the other.
    private let work: AsyncStream<NotesScreen.Action>.Continuation
    private let actions: AsyncStream<NotesScreen.Action>

    private init(_ onions: OnionCall, username: SecureBytes?, lockAfter: Int64) {
        (self.onions, self.username, self.lockAfter) = (onions, username, lockAfter)
        (actions, work) = AsyncStream.makeStream(of: NotesScreen.Action.self)
    }

    static func run(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        let minutes = try lockTime(call)
        let username = call.setting("user").map { SecureBytes(copying: Array($0.utf8)) }
        if let username { try onions.expectOld(username) }
        let view = NotesView(
            onions, username: username, lockAfter: minutes.components.seconds * 1_000)
        let worker: Task<Void, Never> = Task { await view.doWhatIsAsked() }
        let wasShown = await OwnThread.run("wait") { view.show() }
        view.work.finish()
        await worker.value
        await view.end()
        if view.drafts.withLock({ !$0.isEmpty }) {
            Terminal.writeError("a note that was being written could not be saved, and is lost\n")
        }
        guard wasShown else {
            throw Failure(
                "there is no terminal to draw on; 'thicket onions list' and 'thicket onions show' print lines", .usage)
        }
    }

    private static func lockTime(_ call: Call) throws(Failure) -> Duration {
        guard let text = call.value("lock-after") else { return .seconds(300) }
        guard let time = Duration(written: text), time >= .seconds(5), time <= .seconds(86_400) else {
            throw Failure("--lock-after is a time from 5s to 24h, such as 5m, not '\(text)'", .usage)
        }
        return time
    }

    // MARK: - The screen's thread

    /// - Returns: false without a terminal.
    private func show() -> Bool {
        guard let terminal = NotesTerminal() else { return false }
        let size = terminal.size
        var screen = NotesScreen(
            rows: size.rows, columns: size.columns, asksName: username == nil && !onions.isKeyed,
            secretName: onions.isPartners ? "Content passphrase" : "Password", lockAfter: lockAfter,
            now: Self.now(),
            width: NotesTerminal.width, standing: { [weak self] in self?.standing ?? "" })
        while true {
            terminal.show(screen.frame())
            var actions = [NotesScreen.Action]()
            switch terminal.input(milliseconds: Self.lookMilliseconds) {
            case .key(let key): actions += screen.handle(.key(key), now: Self.now())
            case .resized:
                let size = terminal.size
                actions += screen.handle(.size(rows: size.rows, columns: size.columns), now: Self.now())
            case .lost:
                // The terminal is gone; the note that is being written must not be lost: it is saved as before any
                // lock.
                for action in screen.lock("") { work.yield(action) }
                return true
            case .nothing where takeMayStop(): terminal.suspend()
            case .nothing: actions += screen.handle(.tick, now: Self.now())
            }
            for answer in takeAnswers() { actions += screen.handle(answer, now: Self.now()) }
            for action in actions {
                switch action {
                case .quit:
                    terminal.wipe()
                    return true
                default:
                    if Self.locks(action) { terminal.wipe() }
                    work.yield(action)
                }
            }
        }
    }

    private static func locks(_ action: NotesScreen.Action) -> Bool {
        switch action {
        case .lock, .save(_, _, _, thenLocks: true): true
        default: false
        }
    }

    private static func now() -> Int64 {
        let (seconds, attoseconds): (Int64, Int64) = ProgressBar.steadyTime().components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }

    private func takeAnswers() -> [NotesScreen.Event] {
        answers.withLock { answers in
            defer { answers = [] }
            return answers
        }
    }

    private func takeMayStop() -> Bool {
        mayStop.withLock { mayStop in
            defer { mayStop = false }
            return mayStop
        }
    }

    func report(_ event: NotesScreen.Event) { answers.withLock { $0.append(event) } }

    private var standing: String {
        guard let vault = vault.withLock({ $0 }) else { return "" }
        return vault.standing.isPro ? "Pro" : vault.standing.notesMax.map { "\($0) notes at most" } ?? ""
    }

    // MARK: - What is asked for

    private func doWhatIsAsked() async {
        for await action in actions {
            do throws(OnionError) { try await perform(action) } catch {
                switch error {
                case .ended: report(.ended("the session has ended"))
                // The user was not asked for a name.
                case .wrongLogin where onions.isKeyed:
                    report(.failed("the \(onions.isPartners ? "content passphrase" : "password") is wrong"))
                default: report(.failed(error.description))
                }
            }
        }
    }

    private func perform(_ action: NotesScreen.Action) async throws(OnionError) {
        // The saver's memory is valid only for consecutive saves.
        if case .save = action {} else { saver.forget() }
        switch action {
        case .login(let name, let password): try await logIn(name, password)
        case .open(let id, let consents):
            do throws(OnionError) {
                report(.opened(id: id, try await open().read(id, consents: consents)))
            } catch {
                guard case .needsConsent(let rounds) = error else { throw error }
                report(.costly(id: id, rounds: rounds))
            }
        case .save(let id, let text, let before, let thenLocks):
            guard !thenLocks else { return await saveAndLock(id, text, before) }
            try await saveAndTell(id, text, before)
            try await list()
        case .remove(let id):
            try await remove(id)
            try await list()
        case .lock: await end()
        // The lock was queued earlier and has been carried out by now.
        case .suspend: mayStop.withLock { $0 = true }
        case .quit: break
        }
    }

    func open() throws(OnionError) -> Vault {
        guard let vault = vault.withLock({ $0 }) else { throw .ended }
        return vault
    }

    private func logIn(_ name: SecureBytes?, _ password: SecureBytes) async throws(OnionError) {
        let vault: Vault
        if onions.isKeyed {
            vault = try await KeyedNotes(onions.call).unlock(password)
        } else {
            guard let name = name ?? username else { throw .wrongLogin }
            do throws(Failure) { try onions.expectOld(name) } catch { throw .refused(error.text) }
            vault = try await onions.account.signIn(username: name, password: password)
        }
        self.vault.withLock { $0 = vault }
        // Both at once, so that no key comes between them.
        let drafts = try await takeDraft(vault)
        answers.withLock { $0 += [.loggedIn] + drafts }
        let migration = try await vault.migrate()
        try await list()
        // The message about a restored text takes precedence over all others.
        if drafts.isEmpty { await reportNews(migration) }
        follow(vault)
    }

    private func reportNews(_ migration: OnionMigration) async {
        if migration.failed > 0 {
            report(
                .notice("notes of the app's first format that could not be saved in the second: \(migration.failed)"))
        } else if let newest = try? await onions.account.newerVersion() {
            report(.notice("version \(Screen.safe(newest)) of thicket is the newest; this is \(Thicket.version)"))
        } else if !onions.isKeyed, !hasHinted.withLock({ $0 }) {
            hasHinted.withLock { $0 = true }
            report(.notice("an account of the old app: 'thicket onions upgrade' protects it better"))
        }
    }

    /// Sends all titles to the screen as they are opened.
    private func list() async throws(OnionError) {
        var found = [OnionTitle]()
        for await title in try await open().titles() {
            found.append(title)
        }
        found.sort { ($0.onion.createdAt, $0.onion.id) < ($1.onion.createdAt, $1.onion.id) }
        report(
            .rows(
                found.map { title in
                    let isReadable = if case .success = title.title { true } else { false }
                    return NotesScreen.Row(
                        id: title.onion.id, title: OnionCommands.shown(title), isReadable: isReadable)
                }))
    }

    /// Shows changes by other devices.
    private func follow(_ vault: Vault) {
        Task { [weak self] in
            for await _ in await vault.changes() {
                guard let self, await !vault.isEnded else { return }
                do throws(OnionError) { try await list() } catch { return }
            }
        }
    }

    func end() async {
        saver.forget()
        let ending = vault.withLock { vault in
            defer { vault = nil }
            return vault
        }
        await ending?.end()
    }
}
