import ThicketAuth
import ThicketCommandLine
import ThicketProtocol

/// `thicketd app create`.
enum AppCommands {
    static func create(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let app: AppID = try AdminCommands.identifier(call.argument("NAME"))
        let given = try call.value("passwords").map(KeyCommands.passwords)
        let folder = try AdminCommands.folder(config, creating: true)
        try AdminCommands.expectWhole(folder)
        let admin = try AdminCommands.admin(folder)
        do throws(StoreAdminError) {
            guard try admin.hasApp(app) else { return try make(app, call.value("partner"), given, admin) }
            guard let partner = call.value("partner"), try admin.partner(of: app) == nil else {
                return try keep(app, call.value("partner"), given, admin)
            }
            try tie(app, to: partner, given, admin)
        } catch {
            throw CommandFailure("\(folder.path): \(error)")
        }
    }

    private static func make(
        _ app: AppID, _ partner: String?, _ given: AppPasswords?, _ admin: StoreAdmin
    ) throws(StoreAdminError) {
        let now = UnixTime.now().milliseconds
        try admin.createApp(app, partner: partner, now: now)
        // A partner vouches for its users; the app's key is not secret, and clients that only know it must not
        // create accounts.
        try admin.setPasswords(given ?? (partner == nil ? .sent : .closed), of: app)
        let key = try admin.addKey(of: app, isAdmin: false, now: now)
        let adminKey = try admin.addKey(of: app, isAdmin: true, now: now)
        Terminal.write("created the app \(app)\(tied(to: partner))\napi key   \(key)\nadmin key \(adminKey)\n")
        Terminal.writeError(
            "The keys are shown only once. The API key is part of the app; keep the admin key secret: it sets "
                + "passwords and deletes accounts.\n")
    }

    /// The app exists and is not changed; a partner other than its own is refused.
    private static func keep(
        _ app: AppID, _ partner: String?, _ given: AppPasswords?, _ admin: StoreAdmin
    ) throws(StoreAdminError) {
        try admin.createApp(app, partner: partner, now: UnixTime.now().milliseconds)
        Terminal.write("the app \(app) exists already\(tied(to: partner))\n")
        guard given != nil else { return }
        Terminal.writeError("It is unchanged: 'thicketd app passwords \(app)' sets which passwords it accepts.\n")
    }

    /// Ties an existing app to a partner. The command reports what happens to the app's own accounts: their owners
    /// must not be locked out silently, nor may further accounts be created unnoticed.
    private static func tie(
        _ app: AppID, to partner: String, _ given: AppPasswords?, _ admin: StoreAdmin
    ) throws(StoreAdminError) {
        let accounts = try admin.accountCount(of: app)
        let before = try admin.passwords(of: app)
        let passwords = given ?? (accounts == 0 ? .closed : before)
        try admin.tie(app, to: partner, taking: passwords)
        Terminal.write(
            "the app \(app) exists already\(tied(to: partner)) now; it accepts passwords: \(passwords.word)\n")
        let (users, goOn) =
            accounts == 1 ? ("1 account", "logs in") : ("\(accounts) accounts", "log in")
        let back = "'thicketd app passwords \(app) \(before.word)'"
        switch passwords {
        case .sent, .notes:
            Terminal.writeError(
                "Besides the partner's users, clients with the app's API key may still create accounts, and its "
                    + "\(users) \(goOn) as before. To end both: 'thicketd app passwords \(app) closed'.\n")
        case .none:
            Terminal.writeError(
                "Besides the partner's users, clients with the app's API key may still create accounts with keys; "
                    + "passwords of its \(users) are refused. To end account creation: 'thicketd app passwords \(app) "
                    + "closed'.\n")
        case .closed where accounts > 0:
            Terminal.writeError(
                "No account can be created any more, and passwords of its \(users) are refused; tokens stay valid. To "
                    + "undo: \(back).\n")
        case .closed:
            Terminal.writeError("The app had no accounts, and none can be created any more. To undo: \(back).\n")
        }
    }

    private static func tied(to partner: String?) -> String { partner.map { ", tied to partner \($0)" } ?? "" }
}
