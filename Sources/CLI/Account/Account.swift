import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// The server, the user and the place of the local copies for one call of a command: flags take precedence over the
/// environment, the environment over the profile.
struct Account: Sendable {
    let profile: Profile
    let profileName: String
    /// The profile's folder if this call works for the account of that profile; nil: nothing is stored on this machine.
    let folder: String?
    /// The key file of the copies in `folder`.
    let keyFile: StoreKeyFile?
    /// Where a renewed token is stored; nil: nowhere.
    let home: ProfileHome?
    let timeout: Duration
    /// `timeout`, less the time that this command has already waited.
    let wait: WaitBudget
    /// The call says that its bucket is sealed.
    let isSealed: Bool
    /// The buckets that this call has opened.
    let opened: OpenedBuckets
    /// Alarms of the key log, printed when the call ends.
    let alarms: AlarmReports
    /// Derives keys from passwords in the place of the library; nil outside of tests.
    let stretch: AccountAPIClient.Stretch?
    /// Settings of this call that differ from the profile's, so that the profile's login is not used; empty if the
    /// login is used, or if the profile has none.
    let strays: [String]

    static func profileName(_ call: Call) throws(Failure) -> String {
        try ProfileHome.checked(call.setting("profile") ?? "default")
    }

    /// - Throws: `unauthorized` when neither a profile nor the settings name a server, an app and a token.
    init(_ call: Call) throws(Failure) {
        let name = try Account.profileName(call)
        let given = [call.setting("server"), call.setting("app"), try Secrets.token(call)]
        let isWhole = given.allSatisfy { $0 != nil }
        // A call that gives server, app and token itself needs no home folder; a container has none.
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
        alarms = call.alarms
        stretch = CheapPasswords.stretch(call)
        let isKept = kept?.agrees(with: profile) ?? false
        strays = kept.map { Account.strays(profile, of: $0) } ?? []
        folder = isKept ? home?.folder(name) : nil
        keyFile = isKept ? home?.keyFile(name) : nil
        self.home = isKept ? home : nil
    }

    /// An account without a profile.
    init(profile: Profile, timeout: Duration, wait: WaitBudget, _ call: Call) {
        (self.profile, self.timeout, self.wait) = (profile, timeout, wait)
        (profileName, folder, keyFile, home, isSealed, strays) = ("", nil, nil, nil, false, [])
        (opened, alarms, stretch) = (call.opened, call.alarms, CheapPasswords.stretch(call))
    }

    private static func strays(_ profile: Profile, of kept: Profile) -> [String] {
        var strays = [String]()
        if !same(profile.server, kept.server) { strays.append("--server (THICKET_SERVER)") }
        if !same(profile.app, kept.app) { strays.append("--app (THICKET_APP)") }
        if !same(profile.token, kept.token) { strays.append("--token-file (THICKET_TOKEN_FILE, THICKET_TOKEN)") }
        return strays
    }

    /// Refuses the call unless it uses the profile's login. Without this check the user would be told that the login is
    /// of another kind, about a login other than the one that they mean.
    ///
    /// - Parameter what: what is not done, as the beginning of a sentence.
    /// - Throws: `usage` when settings of this call differ from the profile's.
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

    /// A wait for callers that count whole seconds: at least one.
    static func wholeSeconds(_ time: Duration) -> Int { max(1, Int(clamping: time.components.seconds)) }

    /// The connection options of this account's sessions.
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

/// Where a command stores its copy of the bucket.
enum StoreChoice: Sendable {
    /// The profile's copy, or one in memory while another command uses the profile's.
    case profile
    /// The profile's copy only: edits made offline must survive.
    case profileOnly
    /// A separate copy for long-running commands, so that others can run at the same time; a second one uses memory.
    case watch
    /// A file that belongs to this command.
    case file(String)
    case memory
}
