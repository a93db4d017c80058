import Glibc
import ThicketAuth
import ThicketCommandLine

/// `thicketd partner …`: organisations whose servers sign the tokens of their users.
enum PartnerCommands {
    static func create(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        try doing(config) { (admin: PartnerAdmin) throws(PartnerAdminError) in
            let made = try admin.create(id: call.value("id"), now: UnixTime.now().milliseconds)
            Terminal.write("partner  \(made.id)\napi key  \(made.apiKey)\nauth key \(made.authKey)\n")
            Terminal.writeError(
                "The auth key is shown only once: give it only to the partner's server.\n")
        }
    }

    static func add(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let file = call.value("auth-key-file")
        guard (file != nil) != call.flag("no-auth-key") else {
            throw CommandFailure("give either --auth-key-file FILE or --no-auth-key", .usage)
        }
        let authKey = try file.map { (path) throws(CommandFailure) in try line(path, "auth key") }
        try doing(config) { (admin: PartnerAdmin) throws(PartnerAdminError) in
            let id = call.value("id") ?? ""
            try admin.add(
                id: id, apiKey: call.value("api-key") ?? "", authKey: authKey, now: UnixTime.now().milliseconds)
            Terminal.write(
                authKey == nil
                    ? "added partner \(id); its users can log in after 'thicketd partner rotate \(id)'\n"
                    : "added partner \(id)\n")
        }
    }

    static func list(_ config: ServerConfig) throws(CommandFailure) {
        try doing(config) { (admin: PartnerAdmin) throws(PartnerAdminError) in
            if admin.isKeyForeign {
                Terminal.writeError(
                    "thicketd: the key file is not the one by which the database is sealed, so it opens no key; "
                        + "restore the original key file\n")
            }
            let all = try admin.list()
            if all.isEmpty { Terminal.write("no partners; 'thicketd partner create' makes one\n") }
            for each in all {
                let state = each.isEnabled ? "enabled" : "disabled"
                let apps = each.apps.isEmpty ? "no app" : each.apps.joined(separator: " ")
                let apiKey = each.apiKey ?? "lost, see 'thicketd partner api-key'"
                Terminal.write(
                    "\(each.id)\t\(state)\(each.keepsPasswords ? ", keeps passwords" : "")\tapi key \(apiKey)\t\(each.authKeys) auth key\(each.authKeys == 1 ? "" : "s")\t\(each.users) user\(each.users == 1 ? "" : "s")\t\(apps)\n"
                )
            }
        }
    }

    static func replaceAPIKey(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let id = call.argument("ID") ?? ""
        let file = call.value("file")
        guard (file != nil) != call.flag("new") else {
            throw CommandFailure("give either --new or --file FILE", .usage)
        }
        let given = try file.map { (path) throws(CommandFailure) in try line(path, "API key") }
        try doing(config) { (admin: PartnerAdmin) throws(PartnerAdminError) in
            let made = try admin.replaceAPIKey(id: id, by: given)
            Terminal.write(given == nil ? "api key \(made)\n" : "partner \(id) has that API key\n")
            Terminal.writeError(
                "Requests with another API key of this partner are refused from now on: its apps must send this one.\n"
            )
        }
    }

    static func rotate(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let id = call.argument("ID") ?? ""
        let file = call.value("auth-key-file")
        let given = try file.map { (path) throws(CommandFailure) in try line(path, "auth key") }
        if call.flag("finish"), given != nil {
            throw CommandFailure("--finish takes no new key: leave out --auth-key-file", .usage)
        }
        try doing(config) { (admin: PartnerAdmin) throws(PartnerAdminError) in
            if call.flag("finish") {
                let dropped = try admin.dropOld(id: id)
                Terminal.write(
                    dropped == 0
                        ? "partner \(id) had one auth key only; it stays\n"
                        : "partner \(id): only the newest auth key is good from now on\n")
                return
            }
            let before = try admin.list().first { $0.id.utf8.elementsEqual(id.utf8) }?.authKeys ?? 0
            let made = try admin.rotate(id: id, authKey: given, now: UnixTime.now().milliseconds)
            if given == nil {
                Terminal.write("auth key \(made)\n")
                Terminal.writeError("It is shown only once: give it only to the partner's server.\n")
            }
            guard before > 0 else {
                Terminal.writeError("Partner \(id) has an auth key: its users can log in from now on.\n")
                return
            }
            let oldest = before > 1 ? " The older one is no longer valid." : ""
            Terminal.writeError(
                "The auth key before it stays good.\(oldest) When the partner signs with the new one: 'thicketd partner "
                    + "rotate \(id) --finish'.\n")
        }
    }

    static func setEnabled(_ isEnabled: Bool, _ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let id = call.argument("ID") ?? ""
        try doing(config) { (admin: PartnerAdmin) throws(PartnerAdminError) in
            try admin.setEnabled(isEnabled, id: id)
            Terminal.write(
                isEnabled
                    ? "partner \(id) is enabled\n"
                    : "partner \(id) is disabled: its tokens are refused, its users' data stays\n")
        }
    }

    static func setPasswords(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let id = call.argument("ID") ?? ""
        let keeps = !call.flag("off")
        try doing(config) { (admin: PartnerAdmin) throws(PartnerAdminError) in
            try admin.setKeepsPasswords(keeps, id: id)
            Terminal.write(
                keeps
                    ? "partner \(id): its users may register and log in with passwords on this server\n"
                    : "partner \(id): logins with passwords are refused; stored passwords stay\n")
        }
    }

    /// The text of a file with one key; a line end after it is not part of the key.
    private static func line(_ path: String, _ what: String) throws(CommandFailure) -> String {
        guard var text = FileText.read(path, bytesMax: 4_096) else {
            throw CommandFailure("the \(what) file \(path) cannot be read: \(DataFolder.reason(errno))")
        }
        if text.utf8.last == 0x0A { text.unicodeScalars.removeLast() }
        if text.utf8.last == 0x0D { text.unicodeScalars.removeLast() }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw CommandFailure("\(path): an \(what) is one line without white space")
        }
        return text
    }

    /// Opens the partners of a folder.
    static func open(_ folder: DataFolder, _ key: ServerKey) throws(CommandFailure) -> PartnerAdmin {
        try AdminCommands.bringingUpToDate(folder) { () throws(StoreError) in
            try PartnerAdmin(path: folder.databasePath, key: key)
        }
    }

    static func list(_ admin: PartnerAdmin, _ folder: DataFolder) throws(CommandFailure) -> [PartnerAdmin.Listed] {
        do throws(PartnerAdminError) {
            return try admin.list()
        } catch {
            throw CommandFailure("\(folder.path): \(error)")
        }
    }

    private static func doing(
        _ config: ServerConfig, _ body: (PartnerAdmin) throws(PartnerAdminError) -> Void
    ) throws(CommandFailure) {
        let folder = try AdminCommands.folder(config, creating: true)
        try AdminCommands.expectWhole(folder)
        try KeyFileCommands.expectNoKeyRotation(config, folder)
        let admin = try open(folder, try KeyFileCommands.load(config, folder))
        do throws(PartnerAdminError) {
            try body(admin)
        } catch {
            if case .foreignKeyFile = error { throw KeyFileCommands.foreign(folder.place(of: config.keyFile)) }
            throw CommandFailure("\(folder.path): \(error)")
        }
    }
}
