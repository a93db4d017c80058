import ThicketClient
import ThicketCommandLine
import ThicketOnions
import ThicketPlatform
import ThicketProtocol

/// `thicket audit`: what the server stores about the user, next to what the user sees.
enum AuditCommand {
    /// Characters in one line.
    private static let lineMax = 400

    static func run(_ call: Call) async throws(Failure) {
        let bucket = call.argument("BUCKET")
        if bucket.isEmpty { try await account(call) } else { try await objects(call, bucket) }
    }

    // MARK: - The account

    private static func account(_ call: Call) async throws(Failure) {
        let what = "cannot look"
        let keys = try KeyCall(call, what)
        let token = keys.account.profile.token
        let kept = try keys.open()
        let view = try await keyed(what) { () throws(AccountError) in
            try await keys.accounts.serverView(of: kept, accessToken: token)
        }
        let open = try await keyed(what) { () throws(AccountError) in
            try await keys.accounts.refresh(kept, accessToken: token)
        }
        try keys.keep(open)
        row("user", server: "the id \(open.user)", you: Screen.safe(keys.account.profile.user ?? ""))
        if keys.account.profile.kind == .keys {
            row(
                "password", server: "an HMAC of a key made of it, and how: \(stretch(view.pin))",
                you: "known only to you")
            row(
                "access key", server: "sealed under the password; an HMAC of a proof that you have it",
                you: "open here: 'thicket words' shows it")
        } else {
            let server =
                view.access.map { "sealed under your content passphrase, \($0.count) bytes; \(stretch(view.pin))" }
                ?? "nothing"
            row("access key", server: server, you: "open here: 'thicket words' shows it")
        }
        row(
            "bundle", server: "version \(view.version), \(view.bundle.count) sealed bytes: \(start(view.bundle))",
            you: "a vault secret, a tree secret, a signing key, an exchange key, \(modes(open.bundle))")
        row(
            "backup", server: "not known: it is in the bundle",
            you: open.needsBackup ? "never confirmed" : "confirmed")
        try await logins(call)
        Terminal.write(
            "Of each bucket the server also stores names of objects, versions, sizes and times; 'thicket audit BUCKET' shows "
                + "its objects.\n")
    }

    private static func logins(_ call: Call) async throws(Failure) {
        let devices = try await AccountCall.run(call, "cannot list the logins") {
            session throws(ClientError) in try await session.devices()
        }
        for device in devices {
            row(
                "login", server: "\(Screen.safe(device.id)), since \(Days.text(device.firstSeen)); a hash of its token",
                you: device.isThisOne ? "this machine" : "another one: 'thicket devices'")
        }
    }

    private static func stretch(_ pin: PasswordPin?) -> String {
        pin.map { "scrypt, N 2^\($0.log2N), r \($0.r), p \($0.p), salt \(Hex.encode($0.salt))" } ?? "no password"
    }

    private static func modes(_ bundle: AccountBundle) -> String {
        let names = bundle.buckets.sorted { $0.key < $1.key }.map {
            "\(Screen.safe($0.key)) (\(Screen.safe($0.value.mode)))"
        }
        return names.isEmpty ? "no modes of buckets" : "modes of buckets: \(names.joined(separator: ", "))"
    }

    private static func start(_ bytes: [UInt8]) -> String { Hex.encode(bytes.prefix(16)) + "…" }

    // MARK: - Objects

    private static func objects(_ call: Call, _ bucket: String) async throws(Failure) {
        let account = try Account(call)
        let stored = try await AccountCall.run(call, "cannot read \(bucket) at the server") {
            session throws(ClientError) in try await session.storedObjects(of: bucket)
        }
        // For encrypted notes nothing is stored on this machine, not even what the server holds of them.
        let noteKeys = same(bucket, Vault.bucket) ? try noteKeys(of: account) : nil
        let open = try await OpenBucket.open(
            account, bucket: bucket, store: noteKeys == nil ? .profile : .memory)
        do throws(Failure) {
            try await open.ready()
            let names = try await trying("cannot read \(bucket)") { () throws(ClientError) in
                try await open.bucket.namesByStoredKey()
            }
            for object in stored {
                let name: String? = open.isSealed ? names[object.key] : object.key
                let own: JSONObject? = try await trying("cannot read \(bucket)/\(object.key)") {
                    () throws(ClientError) in
                    guard let name else { return nil }
                    return try await open.bucket.get(name)
                }
                if let own, let note = noteKeys?.read(own, id: object.key) {
                    let server = "version \(object.version): \(cut(object.text))"
                    row("\(bucket)/\(Screen.safe(object.key))", server: server, you: shown(note))
                    continue
                }
                let text = own.map { JSONValue.object($0).serializedText }
                let reads = text.map { same($0, object.text) } == true ? " — the server can read it" : ""
                row(
                    "\(bucket)/\(Screen.safe(object.key))",
                    server: "version \(object.version): \(cut(object.text))\(reads)",
                    you: text.map { (open.isSealed ? "\(Screen.safe(name ?? "")): " : "") + cut($0) }
                        ?? "nothing under that name")
            }
        } catch {
            await open.close()
            throw error
        }
        await open.close()
        if stored.count == ClientSession.storedObjectsMax {
            Terminal.write("the first \(stored.count) objects are shown\n")
        }
        if stored.isEmpty { Terminal.write("the server stores no object in \(bucket)\n") }
    }

    /// The keys that open this account's notes; empty keys if this machine does not have them.
    private static func noteKeys(of account: Account) throws(Failure) -> NoteKeys {
        guard let kept = try account.home?.readKeys(account.profileName) else {
            return NoteKeys(user: "", password: nil)
        }
        do throws(AccountError) {
            let open = try kept.open()
            return NoteKeys(user: open.user, password: nil, vaultSecret: open.bundle.vaultSecret)
        } catch {
            throw Failure("the keys kept here cannot be used", keys: error)
        }
    }

    private static func shown(_ note: Result<NoteText, OnionError>) -> String {
        switch note {
        case .success(let text): "\(cut(text.title.shownText)): \(cut(text.info.shownText))"
        case .failure: "an encrypted note that the keys on this machine do not open"
        }
    }

    private static func cut(_ text: String) -> String {
        let safe = Screen.safe(text)
        return safe.count > lineMax ? safe.prefix(lineMax) + "…" : safe
    }

    private static func row(_ name: String, server: String, you: String) {
        Terminal.write("\(name)\n  server  \(server)\n  you     \(you)\n")
    }
}
