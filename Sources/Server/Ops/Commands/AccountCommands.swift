import ThicketAuth
import ThicketCommandLine
import ThicketProtocol

/// `thicketd account …`: the built-in accounts.
enum AccountCommands {
    static func list(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.value("app"))
        try doing(app, config) { (store: AccountStore) throws(DirectoryError) in
            let accounts = try store.accounts(of: app.text, named: call.argument("NAME"))
            if accounts.isEmpty { Terminal.write("no such account\n") }
            for account in accounts {
                let kind = account.hasPassword ? "password" : "key"
                Terminal.write("\(account.user)\t\(account.name)\t\(kind)\tmade \(KeyCommands.date(account.created))\n")
            }
        }
    }

    static func delete(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.value("app"))
        let name = call.argument("NAME") ?? ""
        var ended: String?
        try doing(app, config) { (store: AccountStore) throws(DirectoryError) in
            guard let account = try store.account(named: Account.folded(name), in: app.text),
                try store.remove(account.user, in: app.text, now: UnixTime.now().milliseconds)
            else { return }
            ended = account.user
        }
        guard let ended else { throw CommandFailure("there is no account \(name) in the app \(app)") }
        Terminal.write("the account \(name) has ended; its data is erased by the server. Backups keep it.\n")
        try KeyCommands.signOut(app, try AdminCommands.identifier(ended), config)
    }

    /// Largest receipt, bytes.
    private static let receiptBytesMax = 4_096

    /// `thicketd account pro`.
    static func setPro(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.value("app"))
        let (name, receipt) = (call.argument("NAME") ?? "", call.value("receipt") ?? "")
        guard receipt.utf8.count <= receiptBytesMax else {
            throw CommandFailure("a receipt has \(receiptBytesMax) bytes at most", .usage)
        }
        let ends = call.flag("end")
        guard !ends || receipt.isEmpty else { throw CommandFailure("--end takes no receipt", .usage) }
        let (isPartners, now) = (call.flag("partner"), UnixTime.now().milliseconds)
        var users = [String]()
        try doing(app, config) { (store: AccountStore) throws(DirectoryError) in
            let kept = ends ? nil : receipt
            guard isPartners else {
                users = try store.setPro(name, in: app.text, receipt: kept, now: now).map { [$0] } ?? []
                return
            }
            users = try store.partnerUsers(name, in: app.text)
            guard users.count == 1 else { return }
            try store.setPro(user: users[0], in: app.text, receipt: kept, now: now)
        }
        guard let user = users.first else { throw nobody(name, app, isPartners: isPartners) }
        guard users.count == 1 else {
            throw CommandFailure(
                "\(name) is one user's id at the partner and another's id here; nothing was changed. Give the other id "
                    + "of the user: the server's id is \(users.joined(separator: " or ")).")
        }
        Terminal.write("the user \(user) is \(ends ? "no longer " : "")Pro\n")
    }

    private static func nobody(_ name: String, _ app: AppID, isPartners: Bool) -> CommandFailure {
        CommandFailure(
            isPartners
                ? "the app \(app) has no partner with a user \(name)"
                : "there is no account \(name) in the app \(app); --partner searches the users of its partner")
    }

    private static func doing(
        _ app: AppID, _ config: ServerConfig, _ body: (AccountStore) throws(DirectoryError) -> Void
    ) throws(CommandFailure) {
        let folder = try AdminCommands.folderWithData(config)
        // Migrates an older database and checks that the app exists.
        let admin = try AdminCommands.admin(folder)
        do throws(StoreAdminError) {
            guard try admin.hasApp(app) else { throw .unknownApp(app) }
        } catch {
            throw CommandFailure("\(folder.path): \(AdminCommands.explained(error, admin))")
        }
        let store: AccountStore
        do throws(StoreError) {
            store = try AccountStore(path: folder.databasePath)
        } catch {
            throw AdminCommands.failure(folder.databasePath, error)
        }
        do throws(DirectoryError) {
            try body(store)
        } catch {
            throw CommandFailure("\(folder.path): \(error)")
        }
    }
}
