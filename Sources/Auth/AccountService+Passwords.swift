import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

/// `create/`, `authorize/`, `update/`, `reset_password/` and `delete/`, as Simperium's clients send them.
extension AccountService {
    /// Longest password, bytes, and shortest new one.
    static let passwordBytesMax = 1_024
    static let passwordBytesMin = 4

    mutating func create(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admitPassword(body, asked)
        let name = try Self.newName(body.text("username"))
        let password = try Self.newPassword(body.text("password"))
        try admitRegistration(asked)
        let (salt, hash) = try stretched(password)
        let account = Account(
            user: Account.newID(random: random), app: asked.app.text, name: name,
            proof: .password(salt: salt, hash: hash))
        let token = try add(account, bundle: nil, asked)
        return Self.granted(account, token)
    }

    mutating func authorize(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admitPassword(body, asked)
        let account = try prove(body, asked)
        return Self.granted(account, try admitToken(account, asked))
    }

    mutating func update(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        _ = try key(asked, body)
        try admitPassword(body, asked)
        guard body.has("new_username") || body.has("new_password") else {
            throw .badRequest("new_username or new_password is required")
        }
        let name = body.has("new_username") ? try Self.newName(body.text("new_username")) : nil
        let password = body.has("new_password") ? try Self.newPassword(body.text("new_password")) : nil
        let before = try prove(body, asked)
        // Changing the old name or password would not affect the account's own login.
        guard case .password = before.proof else {
            throw .badRequest("this account is being upgraded to client-side keys; finish that first")
        }
        var account = before
        if let name { account.name = name }
        if let password {
            let (salt, hash) = try stretched(password)
            account.proof = .password(salt: salt, hash: hash)
        }
        try change(account, from: before.proof, endsTokens: password != nil, asked)
        return AccountAnswer.done
    }

    mutating func resetPassword(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        guard try key(asked, body) == .admin else { throw .needsAdminKey }
        let password = try Self.newPassword(body.text("new_password"))
        let before = try known(body, asked)
        guard case .password = before.proof else {
            throw .badRequest("this user's password is never sent to the server, so the server cannot set it")
        }
        var account = before
        let (salt, hash) = try stretched(password)
        account.proof = .password(salt: salt, hash: hash)
        try change(account, from: before.proof, endsTokens: true, asked)
        names.succeeded(Self.place(account.name, asked))
        return AccountAnswer.done
    }

    mutating func delete(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let body = try AccountBody(asked.request.body)
        let account: Account
        switch try key(asked, body) {
        case .admin: account = try known(body, asked)
        case .api:
            guard body.has("password") else { throw .needsAdminKey }
            try admitPassword(body, asked)
            account = try prove(body, asked)
        }
        try end(account, asked)
        return AccountAnswer.ended
    }

    // MARK: Parts

    /// Throws unless the app accepts passwords, and this kind. Checked before any name is looked up.
    func admitPassword(_ body: AccountBody, _ asked: Asked) throws(AccountRefusal) {
        let app = asked.app.text
        let admitted = try directory { (d) throws(DirectoryError) in try d.passwords(of: app) }
        switch admitted {
        case .notes: return
        case .none: throw .notHere("this app accepts no passwords; its clients log in under auth/")
        case .closed: throw .notHere(Self.closed)
        case .sent:
            guard Self.isStretched(body.text("username")), Self.isStretched(body.text("password")) else { return }
            throw .notHere(
                "this app accepts no logins of the old notes app: 'thicketd app passwords \(app) notes' permits them; "
                    + "accounts with keys ('thicket signup', 'thicket login') log in without it")
        }
    }

    private static let closed = "accounts cannot be created in this app; its users log in through its partner"

    /// Throws unless accounts can be made in the app. Checked before the name is looked up.
    func admitSignup(_ asked: Asked) throws(AccountRefusal) {
        let app = asked.app.text
        let admitted = try directory { (d) throws(DirectoryError) in try d.passwords(of: app) }
        if admitted == .closed { throw .notHere(Self.closed) }
    }

    /// Whether a text has the form in which the old notes app sends a name or a password: base64 of a SHA-256.
    private static func isStretched(_ text: String?) -> Bool {
        guard let bytes: [UInt8] = text.map({ Array($0.utf8) }), bytes.count == stretchedBytes else { return false }
        return bytes.last == UInt8(ascii: "=")
            && bytes.dropLast().allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
                default: false
                }
            }
    }

    private static let stretchedBytes = 44

    /// The account whose name and password the body contains: by its own login, or by the one before its upgrade.
    /// An unknown name takes as long and gets the same answer.
    mutating func prove(_ body: AccountBody, _ asked: Asked) throws(AccountRefusal) -> Account {
        guard body.text("username") != nil, let password = body.text("password"), !password.utf8.isEmpty,
            password.utf8.count <= Self.passwordBytesMax
        else { throw .badRequest("username and password are required") }
        let name = try Self.name(body.text("username"))
        let place = Self.place(name, asked)
        try admitProof(place, asked)
        var found = try find(name, asked)
        // Used for an unknown name and for an account with the other kind of proof.
        var (salt, hash): ([UInt8], [UInt8]?) = (Array(repeating: 0, count: 16), nil)
        if case .password(let keptSalt, let keptHash)? = found?.proof { (salt, hash) = (keptSalt, keptHash) }
        if let old = try oldLogin(name, asked), hash == nil {
            found = try directory { (d) throws(DirectoryError) in try d.account(old.user, in: asked.app.text) }
            (salt, hash) = (old.salt, old.hash)
        }
        let made = try stretch(Array(password.utf8), salt)
        let isEqual = ConstantTime.equal(made, hash ?? Array(repeating: 0, count: made.count))
        guard let found, hash != nil, isEqual else { throw failed(place, asked) }
        proved(place)
        return found
    }

    /// The account that an operator's program names.
    private func known(_ body: AccountBody, _ asked: Asked) throws(AccountRefusal) -> Account {
        guard body.text("username") != nil else { throw .badRequest("username is required") }
        let name = try Self.name(body.text("username"))
        guard let account = try find(name, asked) else { throw .unknownUser }
        return account
    }

    func stretched(_ password: [UInt8]) throws(AccountRefusal) -> (salt: [UInt8], hash: [UInt8]) {
        let salt = random(16)
        return (salt, try stretch(password, salt))
    }

    private func stretch(_ password: [UInt8], _ salt: [UInt8]) throws(AccountRefusal) -> [UInt8] {
        guard let made = Scrypt.derive(password, salt: salt, cost: cost) else {
            throw .unavailable(DirectoryError("memory is lacking to hash a password"))
        }
        return made
    }

    private static func granted(_ account: Account, _ token: String) -> HTTPResponse {
        AccountAnswer.success([
            "username": .string(account.name), "access_token": .string(token), "userid": .string(account.user),
        ])
    }

    static func newPassword(_ text: String?) throws(AccountRefusal) -> [UInt8] {
        guard let text, (passwordBytesMin...passwordBytesMax).contains(text.utf8.count) else {
            throw .badRequest("a password of \(passwordBytesMin) to \(passwordBytesMax) bytes is required")
        }
        return Array(text.utf8)
    }
}

// Shared by both kinds of accounts.
extension AccountService {
    /// The name of a new user.
    static func newName(_ text: String?) throws(AccountRefusal) -> String { try name(text, isNew: true) }

    /// The name that a user logs in with.
    static func name(_ text: String?, isNew: Bool = false) throws(AccountRefusal) -> String {
        guard let text else {
            throw .badRequest("a user name of 1 to \(Account.nameBytesMax) bytes is required")
        }
        if let problem = Account.problem(ofName: text, isNew: isNew) {
            throw .badRequest("the user name \(problem)")
        }
        return text
    }

    /// The name under which failures are counted.
    static func place(_ name: String, _ asked: Asked) -> String { "\(asked.app.text) \(Account.folded(name))" }

    func find(_ name: String, _ asked: Asked) throws(AccountRefusal) -> Account? {
        let (folded, app) = (Account.folded(name), asked.app.text)
        return try directory { (d) throws(DirectoryError) in try d.account(named: folded, in: app) }
    }

    func oldLogin(_ name: String, _ asked: Asked) throws(AccountRefusal) -> OldLogin? {
        let (folded, app) = (Account.folded(name), asked.app.text)
        return try directory { (d) throws(DirectoryError) in try d.oldLogin(named: folded, in: app) }
    }

    /// Throws when a proof may not be tried now. Checked before the name is looked up.
    func admitProof(_ place: String, _ asked: Asked) throws(AccountRefusal) {
        try admitAddress(asked)
        if let seconds = names.wait(place, now: asked.now) { throw .limited(.account, seconds: seconds) }
    }

    mutating func failed(_ place: String, _ asked: Asked) -> AccountRefusal {
        names.failed(place, now: asked.now)
        addresses.add(asked.address, now: asked.now)
        notes.isProved = false
        return .wrongLogin
    }

    mutating func proved(_ place: String) {
        names.succeeded(place)
        notes.isProved = true
    }

    mutating func admitRegistration(_ asked: Asked) throws(AccountRefusal) {
        try admitAddress(asked)
        try admit(registrations, asked.app.text, .registrations, asked)
        registrations.add(asked.app.text, now: asked.now)
    }

    /// Stores a new account with its first token.
    mutating func add(
        _ account: Account, bundle: [UInt8]?, entries: [KeyLogEntry] = [], _ asked: Asked, device: String = ""
    ) throws(AccountRefusal) -> String {
        let (text, token) = makeToken(asked, device: device)
        let now = asked.milliseconds
        let isNew = try directory { (d) throws(DirectoryError) in
            try d.add(account, bundle: bundle, entries: entries, token: token, now: now)
        }
        guard isNew else {
            // A taken name is revealed, but each one counts against the address, so that few can be tried.
            addresses.add(asked.address, now: asked.now)
            throw .nameTaken
        }
        return text
    }

    mutating func change(
        _ account: Account, from before: Account.Proof, endsTokens: Bool, token: NewToken? = nil, _ asked: Asked
    ) throws(AccountRefusal) {
        let now = asked.milliseconds
        let user = try identity(of: account)
        let isDone = try directory { (d) throws(DirectoryError) in
            try d.change(account, from: before, endsTokens: endsTokens, token: token, now: now)
        }
        guard isDone else { throw try whyNot(account, asked) }
        if endsTokens { notes.ended = user }
    }

    /// Why the directory did not change an account.
    func whyNot(_ account: Account, _ asked: Asked) throws(AccountRefusal) -> AccountRefusal {
        let holders = [try find(account.name, asked)?.user, try oldLogin(account.name, asked)?.user]
        return holders.contains { $0 != nil && $0 != account.user } ? .nameTaken : .overtaken
    }

    mutating func end(_ account: Account, _ asked: Asked) throws(AccountRefusal) {
        let now = asked.milliseconds
        let user = try identity(of: account)
        _ = try directory { (d) throws(DirectoryError) in try d.remove(account.user, in: account.app, now: now) }
        notes.ended = user
    }

    /// The user whose connections end with its tokens, parsed before any token is ended: an invalid id in the
    /// directory must not let a connection outlive its token.
    func identity(of account: Account) throws(AccountRefusal) -> UserID {
        do throws(IdentifierError) {
            return try UserID(account.user)
        } catch {
            throw .unavailable(DirectoryError("the user of an account: \(error)"))
        }
    }
}
