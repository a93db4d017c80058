import ThicketAuth
import ThicketCommandLine
import ThicketProtocol

/// `thicketd app key …`, `thicketd token list` and `thicketd token revoke`.
enum KeyCommands {
    static func setPasswords(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.argument("APP"))
        let wanted = try call.argument("WORD").map(passwords)
        try doing(config) { (admin: StoreAdmin) throws(StoreAdminError) in
            if let wanted { try admin.setPasswords(wanted, of: app) }
            let word = try admin.passwords(of: app).word
            Terminal.write(wanted == nil ? word + "\n" : "the app \(app) accepts passwords: \(word)\n")
        }
    }

    static func setNotes(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.argument("APP"))
        var wanted: AppNotes?
        if let word = call.argument("WORD") {
            wanted = AppNotes.allCases.first { $0.word.utf8.elementsEqual(word.utf8) }
            guard wanted != nil else {
                throw CommandFailure("notes are one of off, on, pro; '\(SettingValue.shown(word))' is not", .usage)
            }
        }
        try doing(config) { (admin: StoreAdmin) throws(StoreAdminError) in
            if let wanted { try admin.setNotes(wanted, of: app) }
            let word = try admin.notes(of: app).word
            Terminal.write(wanted == nil ? word + "\n" : "encrypted notes of the app \(app): \(word)\n")
        }
    }

    /// The value of `--passwords WORD`.
    static func passwords(_ word: String) throws(CommandFailure) -> AppPasswords {
        guard let found = AppPasswords.allCases.first(where: { $0.word.utf8.elementsEqual(word.utf8) })
        else {
            throw CommandFailure(
                "passwords are one of sent, notes, none, closed; '\(SettingValue.shown(word))' is not", .usage)
        }
        return found
    }

    static func addKey(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.argument("APP"))
        try doing(config) { (admin: StoreAdmin) throws(StoreAdminError) in
            let key = try admin.addKey(
                of: app, isAdmin: call.flag("admin"), now: UnixTime.now().milliseconds)
            Terminal.write(key + "\n")
        }
    }

    static func listKeys(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.argument("APP"))
        try doing(config) { (admin: StoreAdmin) throws(StoreAdminError) in
            let keys = try admin.keys(of: app)
            if keys.isEmpty { Terminal.write("no keys; 'thicketd app key add \(app)' makes one\n") }
            for key in keys {
                Terminal.write("\(key.id)\t\(key.isAdmin ? "admin" : "api")\tmade \(date(key.created))\n")
            }
        }
    }

    static func revokeKey(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.argument("APP"))
        let id = call.argument("KEY") ?? ""
        try doing(config) { (admin: StoreAdmin) throws(StoreAdminError) in
            try admin.revokeKey(id, of: app)
            Terminal.write("the key \(id) of the app \(app) is revoked\n")
        }
    }

    static func listTokens(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.value("app"))
        let user: UserID? = try call.value("user").map { (text) throws(CommandFailure) in
            try AdminCommands.identifier(text)
        }
        try doing(config) { (admin: StoreAdmin) throws(StoreAdminError) in
            var tokens = [StoreAdmin.ListedToken]()
            if let user {
                for user in try users(named: user, of: app, admin) {
                    tokens += try admin.tokens(of: app, user: user)
                }
            } else {
                tokens = try admin.tokens(of: app, user: nil)
            }
            if tokens.isEmpty { Terminal.write("no tokens\n") }
            for token in tokens {
                let right = token.isReadOnly ? "read-only" : "read-write"
                let end = token.expires.map { "ends \(date($0))" } ?? "no end"
                Terminal.write(
                    "\(token.id)\t\(token.user)\t\(right)\tmade \(date(token.created))\t\(end)\t\(token.device)\n")
            }
        }
    }

    static func revokeTokens(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.value("app"))
        let user: UserID = try AdminCommands.identifier(call.value("user"))
        let id = call.argument("TOKEN")
        guard (id != nil) != call.flag("all") else {
            throw CommandFailure("name one token, as 'thicketd token list' does, or give --all", .usage)
        }
        var ended = 0
        var losers = [UserID]()
        try doing(config) { (admin: StoreAdmin) throws(StoreAdminError) in
            for user in try users(named: user, of: app, admin) {
                let count = try admin.revokeTokens(id, of: app, user: user)
                if count > 0 { losers.append(user) }
                ended += count
            }
        }
        guard ended > 0 else {
            throw CommandFailure("\(user) has no such token in the app \(app); nothing was revoked")
        }
        Terminal.write(ended == 1 ? "revoked 1 token\n" : "revoked \(ended) tokens\n")
        for user in losers { try signOut(app, user, config) }
    }

    /// The users a name can refer to: the user that tokens were given to under this name, and the account with this
    /// name.
    private static func users(
        named user: UserID, of app: AppID, _ admin: StoreAdmin
    ) throws(StoreAdminError) -> [UserID] {
        guard let account = try admin.account(named: user, of: app), account != user else { return [user] }
        return [user, account]
    }

    /// Makes a running server close the connections that the tokens opened.
    static func signOut(_ app: AppID, _ user: UserID, _ config: ServerConfig) throws(CommandFailure) {
        let folder = try AdminCommands.folderWithData(config)
        do throws(ControlError) {
            try ControlClient.signOut(app, user, folder: folder)
        } catch {
            if error.isNoServer { return }
            throw CommandFailure("connections opened with the tokens may still be open: \(error)")
        }
    }

    static func date(_ milliseconds: Int64) -> String {
        String(UnixTime(milliseconds: milliseconds).text.prefix("2026-01-31T12:00:00".utf8.count)) + "Z"
    }

    private static func doing(
        _ config: ServerConfig, _ body: (StoreAdmin) throws(StoreAdminError) -> Void
    ) throws(CommandFailure) {
        let folder = try AdminCommands.folderWithData(config)
        let admin = try AdminCommands.admin(folder)
        do throws(StoreAdminError) {
            try body(admin)
        } catch {
            throw CommandFailure("\(folder.path): \(AdminCommands.explained(error, admin))")
        }
    }
}
