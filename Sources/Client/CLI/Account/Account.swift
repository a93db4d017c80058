import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// The server, the user and the place of the local copies, as one call of a command sees them: flags over environment
/// over profile.
struct Account: Sendable {
    let profile: Profile
    let profileName: String
    /// Folder of the profile when this call works for the account it was made for; nil: nothing is kept on this
    /// machine.
    let folder: String?
    /// Of the copies in `folder`.
    let keyFile: StoreKeyFile?
    /// Where a renewed token is kept; nil: nowhere.
    let home: ProfileHome?
    let timeout: Duration
    /// The same, less what this command has waited already.
    let wait: WaitBudget
    /// The call says that its bucket is sealed.
    let isSealed: Bool
    /// What the call has opened.
    let opened: OpenedBuckets
    /// Settings of this call that are others than the profile's, so that its login is not used; empty where it is, or
    /// there is none.
    let strays: [String]

    static func profileName(_ call: Call) throws(Failure) -> String {
        try ProfileHome.checked(call.setting("profile") ?? "default")
    }

    /// - Throws: `unauthorized` when neither a profile nor the settings name a server, an app and a token.
    init(_ call: Call) throws(Failure) {
        let name = try Account.profileName(call)
        let given = [call.setting("server"), call.setting("app"), try Secrets.token(call)]
        let isWhole = given.allSatisfy { $0 != nil }
        // Settings that say everything need no home folder: a container has none.
        let home: ProfileHome?
        do throws(Failure) { home = try ProfileHome(call.environment) } catch {
            guard isWhole else { throw error }
            home = nil
        }
        let kept = try home?.read(name)
        guard let server = ServerSpelling.of(given[0], like: kept?.server),
            let app = given[1] ?? kept?.app,
            let token = given[2] ?? kept?.token
        else { throw Account.missing(call, name) }
        var profile = Profile(
            server: server, app: app, token: token, certificates: call.setting("ca") ?? kept?.certificates,
            proxy: call.setting("proxy") ?? kept?.proxy, pins: call.setting("pin") ?? kept?.pins)
        if let kept, kept.agrees(with: profile) {
            (profile.kind, profile.login, profile.user) = (kept.kind, kept.login, kept.user)
        }
        self.profile = profile
        profileName = name
        timeout = try call.timeout()
        wait = try call.wait()
        isSealed = call.flag("sealed")
        opened = call.opened
        let isKept = kept?.agrees(with: profile) ?? false
        strays = kept.map { Account.strays(profile, of: $0) } ?? []
        folder = isKept ? home?.folder(name) : nil
        keyFile = isKept ? home?.keyFile(name) : nil
        self.home = isKept ? home : nil
    }

    private static func strays(_ profile: Profile, of kept: Profile) -> [String] {
        var strays = [String]()
        if !same(profile.server, kept.server) { strays.append("--server (THICKET_SERVER)") }
        if !same(profile.app, kept.app) { strays.append("--app (THICKET_APP)") }
        if !same(profile.token, kept.token) { strays.append("--token-file (THICKET_TOKEN_FILE, THICKET_TOKEN)") }
        return strays
    }

    /// For what works with a profile's login and nothing else. Without this the user would be told that the login is of
    /// another kind, and it is not the one that they mean.
    ///
    /// - Parameter what: what is not done, as the beginning of a sentence.
    /// - Throws: `usage` when settings of this call are others than the profile's.
    func expectProfile(_ what: String) throws(Failure) {
        guard !strays.isEmpty else { return }
        let (are, them) = strays.count == 1 ? ("is", "it") : ("are", "them")
        throw Failure(
            "\(what): \(strays.joined(separator: " and ")) of this call \(are) not what the profile '\(profileName)' has, so its "
                + "login is not used. Leave \(them) out, or choose the profile that you mean with --profile NAME.",
            .usage)
    }

    private static func missing(_ call: Call, _ name: String) -> Failure {
        let login = "thicket login --server URL --app APP"
        if call.setting("profile") == nil {
            return Failure(
                "not logged in: begin with '\(login)', or with 'thicket signup' at a server that takes new accounts",
                .unauthorized)
        }
        return Failure("there is no profile '\(name)': '\(login) --profile \(name)' makes it", .unauthorized)
    }

    /// A wait for who counts in seconds: at least one.
    static func wholeSeconds(_ time: Duration) -> Int { max(1, Int(clamping: time.components.seconds)) }

    /// How sessions of this account connect.
    func sessionOptions(isOnline: Bool) -> SessionOptions {
        var options = SessionOptions()
        options.certificateFile = profile.certificates
        options.pinnedKeys = profile.pins
        options.proxy = profile.proxy
        options.startsOnline = isOnline
        options.answerTimeoutSeconds = Self.wholeSeconds(timeout)
        options.userAgent = "thicket-cli/" + Thicket.version
        return options
    }
}

/// Where a command keeps its copy of the bucket.
enum StoreChoice: Sendable {
    /// The profile's copy; in memory while another command uses that.
    case profile
    /// The profile's copy and nothing else: what is edited offline must be kept.
    case profileOnly
    /// A copy of its own for commands that run long, so that others may run beside it; in memory for a second one.
    case watch
    /// A file of the command's own.
    case file(String)
    case memory
}
