import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketOnions
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket onions …`: the commands for encrypted notes.
enum OnionCommands {
    // MARK: - Reading

    static func list(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        try await onions.with("cannot list the notes") { vault throws(Failure) in
            await onions.reportNewerVersion()
            let titles = try await titles(of: vault)
            for (number, title) in zip(1..., titles) {
                guard Terminal.write(call.flag("json") ? json(title) : row(number, title)) else { break }
            }
            let standing = vault.standing
            guard !call.flag("json"), Terminal.isTerminal(Terminal.standardError) else { return }
            let most = standing.notesMax.map { " of \($0)" } ?? ""
            Terminal.writeError(
                "\(titles.count)\(most) notes\(standing.isPro ? ", Pro" : ""); your id here is \(vault.user)\n")
        }
    }

    /// All titles, in the order of the list.
    private static func titles(of vault: Vault) async throws(Failure) -> [OnionTitle] {
        let stream = try await OnionCall.trying("cannot list the notes") {
            () throws(OnionError) in try await vault.titles()
        }
        var found = [OnionTitle]()
        for await title in stream { found.append(title) }
        return found.sorted { ($0.onion.createdAt, $0.onion.id) < ($1.onion.createdAt, $1.onion.id) }
    }

    private static func row(_ number: Int, _ title: OnionTitle) -> String {
        "\(number)\t\(title.onion.id.prefix(8))\t\(Screen.line(shown(title), columns: 200))\n"
    }

    static func shown(_ title: OnionTitle) -> String {
        switch title.title {
        case .success(let text): text.count == 0 ? "(no title)" : text.shownText
        case .failure(.needsConsent(let rounds)): "(asks for \(rounds) rounds; open it with --slow)"
        case .failure(.unreadable): "(does not open)"
        case .failure(let error): "(\(error))"
        }
    }

    private static func json(_ title: OnionTitle) -> String {
        var object: JSONObject = ["id": .string(title.onion.id), "created": .number(JSONNumber(title.onion.createdAt))]
        switch title.title {
        case .success(let text): object["title"] = .string(text.shownText)
        case .failure(let error): object["error"] = .string(error.description)
        }
        return JSONValue.object(object).serializedText + "\n"
    }

    static func show(_ call: Call) async throws(Failure) {
        try await OnionCall(call).with("cannot show the note") { vault throws(Failure) in
            let id = try await find(call.argument("NOTE"), in: vault)
            let text = try await read(id, in: vault, call, "cannot show the note")
            if call.flag("json") {
                let object: JSONObject = [
                    "id": .string(id), "title": .string(text.title.shownText), "info": .string(text.info.shownText),
                ]
                Terminal.write(JSONValue.object(object).serializedText + "\n")
            } else {
                let isScreen = Terminal.isTerminal(Terminal.standardOutput)
                let (title, info) = (text.title.shownText, text.info.shownText)
                let whole = "\(title)\n\n\(info)" + (info.utf8.last == 0x0A ? "" : "\n")
                Terminal.write(isScreen ? Screen.safe(whole) : whole)
            }
        }
    }

    static func read(_ id: String, in vault: Vault, _ call: Call, _ what: String) async throws(Failure) -> NoteText {
        try await OnionCall.trying(what) { () throws(OnionError) in
            try await vault.read(id, consents: call.flag("slow"))
        }
    }

    /// The note that an argument names: its number in the list, or the beginning of its id, at least four letters.
    static func find(_ name: String, in vault: Vault) async throws(Failure) -> String {
        let onions = try await OnionCall.trying("cannot look for the note") { () throws(OnionError) in
            try await vault.list()
        }
        if name.utf8.count < 4, let number = Int(name) {
            guard onions.indices.contains(number - 1) else {
                throw Failure("there is no note \(number): there are \(onions.count)", .notFound)
            }
            return onions[number - 1].id
        }
        let found = onions.filter { $0.id.utf8.starts(with: name.utf8) }
        guard name.utf8.count >= 4, let first = found.first else {
            throw Failure(
                "there is no note '\(name)': name it by its number or id, as 'thicket onions list' does", .notFound)
        }
        guard found.count == 1 else { throw Failure("'\(name)' is the beginning of \(found.count) ids", .usage) }
        return first.id
    }

    // MARK: - Writing

    static func new(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        let opener = try await onions.opener()
        let text = try NoteInput.read(call)
        let vault = try await onions.open(opener)
        let result = await make(text, in: vault)
        await onions.end(vault)
        let id = try await OnionCall.trying("no note was made") { () throws(OnionError) in try result.get() }
        Terminal.write("made the note \(id.prefix(8))\n")
    }

    private static func make(_ text: NoteText, in vault: Vault) async -> Result<String, OnionError> {
        do throws(OnionError) { return .success(try await vault.create(text)) } catch { return .failure(error) }
    }

    static func edit(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        let opener = try await onions.opener()
        let text = try NoteInput.read(call)
        let vault = try await onions.open(opener)
        let outcome: Result<Void, Failure>
        do throws(Failure) {
            let id = try await find(call.argument("NOTE"), in: vault)
            let before = try await read(id, in: vault, call, "the note was not changed")
            try await OnionCall.trying("the note was not changed") { () throws(OnionError) in
                try await vault.save(text, in: id, over: before, consents: call.flag("slow"))
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await onions.end(vault)
        try outcome.get()
        Terminal.write("changed the note\n")
    }

    static func remove(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        let removed = try await onions.with("cannot remove notes") { vault throws(Failure) in
            // All notes are looked up before the first is removed, since each removal changes the numbers.
            var ids = [String]()
            for name in call.arguments("NOTE") { ids.append(try await find(name, in: vault)) }
            for id in ids {
                try await OnionCall.trying("cannot remove the note \(id.prefix(8))") { () throws(OnionError) in
                    try await vault.remove(id)
                }
                Terminal.write("removed the note \(id.prefix(8))\n")
            }
            return ids
        }
        if onions.isKeyed { try await NoteAttachments.removeAll(of: removed, call) }
    }

    // MARK: - Accounts

    /// `thicket onions upgrade`: gives keys to an account of the old notes app.
    static func upgrade(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call, .old)
        let login = try await onions.login()
        let name = try await newName(call)
        let password = try await Secrets.secret(
            call, "new-password", label: "New password, which the server never sees: ", isNew: true)
        guard password != login.password else {
            throw Failure("the new password is the old one, which the server may have guessed: take another", .usage)
        }
        let isBegun = Mutex<Bool>(false)
        let done: OnionUpgrade
        do throws(OnionError) {
            done = try await onions.account.upgrade(
                username: login.username, password: login.password, to: name, newPassword: password,
                consents: call.flag("slow"), leavesUnreadable: call.flag("leave-unreadable"),
                whenBegun: { isBegun.withLock { $0 = true } })
        } catch {
            throw stopped(error, isBegun: isBegun.withLock { $0 })
        }
        try report(done)
    }

    private static func stopped(_ error: OnionError, isBegun: Bool) -> Failure {
        guard !isBegun else {
            return OnionCall.failure("the upgrade is not finished; the same command goes on with it", error)
        }
        let what = "nothing was upgraded"
        switch error {
        case .wrongLogin, .keys(.wrongPassword):
            return Failure(
                "\(what): the old user name or the old password is wrong. An account that has keys needs no upgrade: 'thicket login'.",
                .unauthorized)
        default: return OnionCall.failure(what, error)
        }
    }

    /// The name that the server will see. The old name is used only if the user gives it.
    private static func newName(_ call: Call) async throws(Failure) -> String {
        if let name = call.setting("new-user") { return name }
        let typed = try await Secrets.asked(
            "New user name, which the server sees (not shown): ",
            "which name is the account to have? There is no terminal to ask at: --new-user NAME says it")
        guard typed.count > 0, typed.isUTF8 else { throw Failure("the new user name is empty or no text", .usage) }
        return typed.shownText
    }

    private static func report(_ done: OnionUpgrade) throws(Failure) {
        for (id, error) in done.notes.left.sorted(by: { $0.key < $1.key }) {
            Terminal.writeError("stays as it was: \(id.prefix(8)): \(error)\n")
        }
        Terminal.write("\(Words.notes(done.notes.resealed)) sealed with the account's own keys\n")
        guard done.isFinished else {
            let isUnreadable = done.notes.isDoneExceptUnreadable
            throw Failure(
                "the upgrade is not finished: \(Words.notes(done.notes.left.count)) could not be taken along, so the old login "
                    + "stays valid beside the new one. "
                    + (isUnreadable
                        ? "--leave-unreadable ends it without them; they stay as they are."
                        : "The same command goes on with it; --slow opens notes that ask for many rounds."),
                .refused)
        }
        Terminal.write(
            "The account '\(Screen.safe(done.name))' has keys now; the old name and password are not valid any more.\n"
                + "Now 'thicket login --user \(Screen.safe(done.name))' with the new password, then 'thicket words': without the "
                + "24 words a forgotten password costs all notes.\n")
    }

    static func signUp(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call, .old)
        let login = try await onions.login(isNew: true)
        let vault: Vault
        do throws(OnionError) {
            vault = try await onions.account.signUp(username: login.username, password: login.password)
        } catch {
            throw OnionCall.failure(
                "no account was made", error, lost: "'thicket onions list --old-account' with the same words shows it.")
        }
        let user = vault.user
        await onions.end(vault)
        Terminal.write("made a notes account; its id is \(user). The other commands need --old-account for it.\n")
    }

    static func delete(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        if onions.isKeyed { return try await KeyedNotes(call).delete() }
        let login = try await onions.login()
        let vault = try await OnionCall.trying("nothing was deleted") { () throws(OnionError) in
            try await onions.account.signIn(username: login.username, password: login.password)
        }
        do throws(OnionError) {
            try await onions.account.delete(vault, username: login.username, password: login.password)
        } catch {
            await vault.end()
            throw OnionCall.failure(
                "the account was not deleted; notes may have been", error,
                lost: "The notes are deleted; 'thicket onions list --old-account' shows whether the account is.")
        }
        Terminal.write("the notes and the account are deleted\n")
    }
}

extension SecureBytes {
    /// For display: an ordinary string, which is not overwritten in memory.
    var shownText: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}
