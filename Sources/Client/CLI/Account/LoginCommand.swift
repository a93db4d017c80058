import ThicketClient
import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket login`: tries a token and keeps it.
enum LoginCommand {
    /// A bucket to open when only the token is of interest. Nothing is ever stored there.
    static let bucket: String = "login"

    static func run(_ call: Call) async throws(Failure) {
        let name: String = try Account.profileName(call)
        let home: ProfileHome = try ProfileHome(call.environment)
        // A damaged profile is what login repairs.
        let old: Profile? = (try? home.read(name)) ?? nil
        guard let server: String = call.setting("server") ?? old?.server else {
            throw Failure("which server? --server URL, such as https://sync.example.com", .usage)
        }
        guard let app: String = call.setting("app") ?? old?.app else {
            throw Failure("which app? --app APP, as it was named with 'thicketd app create'", .usage)
        }
        var profile: Profile = Profile(
            server: server, app: app, token: try token(call),
            certificates: try call.setting("ca").map { (path) throws(Failure) in try absolute(path) },
            proxy: call.setting("proxy"))
        profile.user = try await check(profile, call)
        if let old, !old.isSameAccount(as: profile) { try await replace(old, name, home, call) }
        try home.write(profile, name)
        let who: String = profile.user.map { " as \(Screen.safe($0))" } ?? ""
        let which: String = same(name, "default") ? "" : " (profile \(name))"
        Terminal.write("logged in to \(server), app \(app)\(who)\(which)\n")
    }

    /// `-` reads the token from standard input, so that it does not show in the list of processes.
    private static func token(_ call: Call) throws(Failure) -> String {
        guard let given: String = call.setting("token") else {
            throw Failure(
                "which token? --token TOKEN as printed by 'thicketd token create', or '--token -' to read it from "
                    + "standard input", .usage)
        }
        guard same(given, "-") else { return given }
        guard case .bytes(let bytes) = Files.read(STDIN_FILENO, bytesMax: 1 << 16) else {
            throw Failure("standard input holds no token", .usage)
        }
        let token: String = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        guard !token.isEmpty else { throw Failure("standard input holds no token", .usage) }
        return token
    }

    private static func absolute(_ path: String) throws(Failure) -> String {
        guard let resolved: UnsafeMutablePointer<CChar> = realpath(path, nil) else {
            throw Failure("the certificate file \(path) cannot be read: \(Files.reason())", .usage)
        }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Opens a bucket, which is when the server looks at the token. Nothing is stored there.
    private static func check(_ profile: Profile, _ call: Call) async throws(Failure) -> String? {
        let account: Account = try Account(call, trying: profile)
        let open: OpenBucket = try await OpenBucket.open(account, bucket: LoginCommand.bucket, store: .memory)
        do throws(Failure) { try await open.ready("nothing was kept") } catch {
            await open.close()
            guard error.code == .unauthorized else { throw error }
            throw Failure(
                "\(profile.server) does not accept this token for the app '\(profile.app)'; nothing was kept. "
                    + "Is the app's name right? 'thicketd token create --app \(profile.app) --user USER' makes a token.",
                .unauthorized)
        }
        let user: String? = try? await open.session.user
        await open.close()
        return user
    }

    /// Another account under the same name: its copies go, unless something in them was never sent.
    private static func replace(
        _ old: Profile, _ name: String, _ home: ProfileHome, _ call: Call
    ) async throws(Failure) {
        if !call.flag("discard") {
            let unsent: [String] = try await LogoutCommand.unsent(old, name, home, call)
            guard unsent.isEmpty else {
                throw Failure(
                    "the profile '\(name)' belongs to \(old.server), app \(old.app), and holds edits that were never "
                        + "sent (in \(unsent.joined(separator: ", "))). --profile OTHER keeps both; --discard gives the "
                        + "edits up.")
            }
        }
        try home.remove(name)
    }
}

/// `thicket logout`: forgets an account and its copies.
enum LogoutCommand {
    static func run(_ call: Call) async throws(Failure) {
        let name: String = try Account.profileName(call)
        let home: ProfileHome = try ProfileHome(call.environment)
        let old: Profile?
        do throws(Failure) { old = try home.read(name) } catch {
            guard call.flag("discard") else { throw error }
            old = nil
        }
        guard access(home.folder(name), F_OK) == 0 else {
            throw Failure("there is no profile '\(name)'; 'thicket status' lists them", .notFound)
        }
        if let old, !call.flag("discard") {
            let unsent: [String] = try await unsent(old, name, home, call)
            guard unsent.isEmpty else {
                throw Failure(
                    "edits were never sent (in \(unsent.joined(separator: ", "))). 'thicket ls BUCKET' sends them; "
                        + "--discard gives them up.")
            }
        }
        try home.remove(name)
        Terminal.write("logged out of the profile '\(name)'. The token itself stays valid at the server.\n")
    }

    /// Buckets whose copy holds edits that the server has not confirmed.
    static func unsent(
        _ profile: Profile, _ name: String, _ home: ProfileHome, _ call: Call
    ) async throws(Failure) -> [String] {
        var found: [String] = []
        for bucket: String in home.buckets(name) {
            let account: Account = try Account(call, trying: profile, folder: home.folder(name))
            let open: OpenBucket = try await OpenBucket.open(
                account, bucket: bucket, store: .profileOnly, isOnline: false)
            let count: Int = try await trying("cannot read the copy of \(bucket)") { () throws(ClientError) in
                try await open.bucket.pendingCount
            }
            await open.close()
            if count > 0 { found.append(bucket) }
        }
        return found
    }
}

extension Account {
    /// An account that no profile names yet.
    init(_ call: Call, trying profile: Profile, folder: String? = nil) throws(Failure) {
        self.profile = profile
        profileName = try Account.profileName(call)
        self.folder = folder
        timeout = try call.timeout()
    }
}
