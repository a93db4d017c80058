public import ThicketAuth
import ThicketCrypto
public import ThicketKeyLog
import ThicketProtocol
import ThicketSQLite

/// Built-in accounts in the store's file. Belongs to one thread; changes by other processes are visible at once.
public final class AccountStore: AccountDirectory {
    let database: Database
    /// What follows the entries of the key log that are written with accounts.
    private let keyLogs: KeyLogs?

    /// Opens an existing store; throws when it cannot be opened or has another schema.
    /// - Parameter keyLogs: logs in memory that follow what is written here.
    public init(path: String, settings: StoreSettings = .init(), keyLogs: KeyLogs? = nil) throws(StoreError) {
        self.keyLogs = keyLogs
        database = try SQLiteStore.connect(path, .readWrite, settings)
        try Schema.check(database)
    }

    /// The rights of an app key, given its SHA-256; nil when the app does not have it.
    public func key(_ hash: [UInt8], of app: String) throws(DirectoryError) -> AppKey? {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT is_admin FROM app_key WHERE hash = ?1 AND app = ?2")
                .bind(1, hash).bind(2, app).first { $0.integer(0) != 0 ? .admin : .api }
        }
    }

    /// For an unknown name as much is read as for a known one: the next account in the order of names, or the first
    /// of all. Otherwise the time of an answer would reveal whether a name exists, by two microseconds (`./dev soak
    /// --timing`).
    public func account(named folded: String, in app: String) throws(DirectoryError) -> Account? {
        try asking { () throws(SQLiteError) in
            let first: String? = try database.statement(
                "SELECT user FROM account WHERE app = ?1 ORDER BY folded LIMIT 1"
            ).bind(1, app).first { $0.text(0) }
            let next: String? = try database.statement(
                "SELECT user FROM account WHERE app = ?1 AND folded >= ?2 ORDER BY folded LIMIT 1"
            ).bind(1, app).bind(2, folded).first { $0.text(0) }
            guard let user: String = next ?? first else { return nil }
            let found: (account: Account, name: String)? = try database.statement(
                Self.selection + "WHERE user = ?1"
            ).bind(1, user).first { (Self.account($0), $0.text(11)) }
            return found.flatMap { $0.name.utf8.elementsEqual(folded.utf8) ? $0.account : nil }
        }
    }

    /// The account of a user id; nil when the app does not have it.
    public func account(_ user: String, in app: String) throws(DirectoryError) -> Account? {
        try asking { () throws(SQLiteError) in
            try database.statement(Self.selection + "WHERE user = ?1 AND app = ?2").bind(1, user).bind(2, app)
                .first(Self.account)
        }
    }

    /// Adds an account with its first token; false, and nothing is added, when the name is taken. `now`: milliseconds.
    public func add(
        _ account: Account, bundle: [UInt8]?, entries: [KeyLogEntry] = [], token: NewToken, now: Int64
    ) throws(DirectoryError) -> Bool {
        try writing(entries, of: account) { () throws(SQLiteError) in
            guard try !isNameTaken(account) else { return false }
            try insert(account, bundle: bundle, now: now)
            try insert(token, of: account.user, in: account.app)
            return true
        }
    }

    /// Inserts the row of an account, and its bundle if it has one.
    func insert(_ account: Account, bundle: [UInt8]?, now: Int64) throws(SQLiteError) {
        let row = try database.statement(
            """
            INSERT INTO account (user, app, name, folded, scheme, salt, n, r, p, verifier, recovery, access, created,
                changed, keys)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?14)
            """)
        bind(account, to: row)
        try row.bind(13, now).run()
        guard let bundle else { return }
        try database.statement("INSERT INTO bundle (user, version, content) VALUES (?1, 1, ?2)")
            .bind(1, account.user).bind(2, bundle).run()
    }

    /// Whether no account has the user id and no erasure of it is pending.
    public func isFree(_ user: String, in app: String) throws(DirectoryError) -> Bool {
        try asking { () throws(SQLiteError) in
            for table in ["account", "erasure"] {
                let isThere = try database.statement("SELECT 1 FROM \(table) WHERE user = ?1").bind(1, user)
                    .first { _ in true }
                if isThere != nil { return false }
            }
            return true
        }
    }

    /// Replaces an account's name and proof; false, and nothing changes, when the proof is not `before` or the name
    /// is taken.
    public func change(
        _ account: Account, from before: Account.Proof, endsTokens: Bool, token: NewToken?, now: Int64
    ) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in
            let kept = try database.statement(Self.selection + "WHERE user = ?1").bind(1, account.user)
                .first(Self.account)
            guard kept?.proof == before, try !isNameTaken(account) else { return false }
            try update(account, now: now)
            try keepWrap(of: account, from: before)
            if endsTokens { _ = try deleteTokens(nil, of: account.user, in: account.app) }
            if let token { try insert(token, of: account.user, in: account.app) }
            return true
        }
    }

    /// Deletes an account with its guests and schedules the erasure of their data; false when it does not exist. `now`:
    /// milliseconds.
    public func remove(_ user: String, in app: String, now: Int64) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in try AccountRows.remove(user, in: app, now: now, database) }
    }

    /// A line of the operator's list.
    public struct Listed: Sendable, Hashable {
        /// The user's id.
        public let user: String
        /// The account's name.
        public let name: String
        /// False: the account has a key that the client derived.
        public let hasPassword: Bool
        /// Milliseconds since 1970.
        public let created: Int64
    }

    /// Most lines of one list.
    public static let listedMax = 10_000

    /// Accounts of an app in the order of their names, or the one with that name.
    public func accounts(of app: String, named name: String?) throws(DirectoryError) -> [Listed] {
        try asking { () throws(SQLiteError) in
            var listed = [Listed]()
            try database.statement(
                """
                SELECT user, name, scheme, created FROM account WHERE app = ?1 AND (?2 IS NULL OR folded = ?2)
                ORDER BY folded LIMIT ?3
                """
            ).bind(1, app).bind(2, name.map(Account.folded)).bind(3, Int64(Self.listedMax))
                .forEach { (row: Statement) throws(SQLiteError) in
                    listed.append(
                        Listed(
                            user: row.text(0), name: row.text(1), hasPassword: row.integer(2) == 0,
                            created: row.integer(3)))
                }
            return listed
        }
    }

    /// The user's bundle of sealed keys; nil when it has none.
    public func bundle(of user: String) throws(DirectoryError) -> Bundle? {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT version, content FROM bundle WHERE user = ?1").bind(1, user)
                .first { Bundle(version: $0.integer(0), content: $0.bytes(1)) }
        }
    }

    /// Writes a bundle if the stored one has that version (0: none is stored); returns whether it was written.
    public func putBundle(
        _ content: [UInt8], of user: String, replacing version: Int64
    ) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in
            if version == 0 {
                // IGNORE: a first version written by another client, or a missing account, is reported as a
                // conflict of versions.
                try database.statement(
                    """
                    INSERT OR IGNORE INTO bundle (user, version, content)
                    SELECT user, 1, ?2 FROM account WHERE user = ?1
                    """
                ).bind(1, user).bind(2, content).run()
            } else {
                try database.statement(
                    "UPDATE bundle SET version = version + 1, content = ?2 WHERE user = ?1 AND version = ?3"
                ).bind(1, user).bind(2, content).bind(3, version).run()
            }
            return database.changedRows == 1
        }
    }

    /// Replaces proof and bundle together; false, and nothing changes, when either is not the expected one.
    public func renew(
        _ account: Account, from before: Account.Proof, bundle: [UInt8], replacing version: Int64, now: Int64
    ) throws(DirectoryError) -> Bool {
        try writing { () throws(SQLiteError) in
            let kept = try database.statement(Self.selection + "WHERE user = ?1").bind(1, account.user)
                .first(Self.account)
            let there = try database.statement("SELECT version FROM bundle WHERE user = ?1")
                .bind(1, account.user).first { $0.integer(0) }
            guard kept?.proof == before, there == version else { return false }
            try update(account, now: now)
            try database.statement("UPDATE bundle SET version = version + 1, content = ?2 WHERE user = ?1")
                .bind(1, account.user).bind(2, bundle).run()
            return true
        }
    }

    // MARK: Rows

    static let selection =
        "SELECT user, app, name, scheme, salt, n, r, p, verifier, recovery, access, folded, keys FROM account "

    static func account(_ row: Statement) -> Account {
        let salt = row.bytes(4)
        let proof: Account.Proof =
            row.integer(3) == 0
            ? .password(salt: salt, hash: row.bytes(8))
            : .key(
                Account.KeyProof(
                    stretch: Account.Stretch(salt: salt, n: row.integer(5), r: row.integer(6), p: row.integer(7)),
                    verifier: row.bytes(8), recovery: row.bytes(9), access: row.bytes(10), keyNumber: row.integer(12)))
        return Account(user: row.text(0), app: row.text(1), name: row.text(2), proof: proof)
    }

    /// Writes name and proof into the existing row.
    func update(_ account: Account, now: Int64) throws(SQLiteError) {
        let row = try database.statement(
            """
            UPDATE account SET name = ?3, folded = ?4, scheme = ?5, salt = ?6, n = ?7, r = ?8, p = ?9,
                verifier = ?10, recovery = ?11, access = ?12, changed = ?13, keys = ?14 WHERE user = ?1 AND app = ?2
            """)
        bind(account, to: row)
        try row.bind(13, now).run()
    }

    private func bind(_ account: Account, to row: Statement) {
        row.bind(1, account.user).bind(2, account.app).bind(3, account.name).bind(4, Account.folded(account.name))
        switch account.proof {
        case .password(let salt, let hash):
            row.bind(5, 0).bind(6, salt).bind(7, nil as Int64?).bind(8, nil as Int64?).bind(9, nil as Int64?)
                .bind(10, hash).bind(11, nil as [UInt8]?).bind(12, nil as [UInt8]?).bind(14, 1)
        case .key(let proof):
            row.bind(5, 1).bind(6, proof.stretch.salt).bind(7, proof.stretch.n).bind(8, proof.stretch.r)
                .bind(9, proof.stretch.p).bind(10, proof.verifier).bind(11, proof.recovery).bind(12, proof.access)
                .bind(14, proof.keyNumber)
        }
    }

    /// Whether another user has the name, or keeps it for a login from before an upgrade.
    func isNameTaken(_ account: Account) throws(SQLiteError) -> Bool {
        for table in ["account", "old_login"] {
            let isThere = try database.statement(
                "SELECT 1 FROM \(table) WHERE app = ?1 AND folded = ?2 AND user <> ?3"
            ).bind(1, account.app).bind(2, Account.folded(account.name)).bind(3, account.user).first { _ in true }
            if isThere != nil { return true }
        }
        return false
    }

    // MARK: Asking

    func asking<Result>(_ body: () throws(SQLiteError) -> Result) throws(DirectoryError) -> Result {
        do throws(SQLiteError) {
            return try body()
        } catch {
            throw DirectoryError("\(error)")
        }
    }

    /// One transaction that appends the first entries of an account to the key log, too; `body` does the rest, and
    /// returns whether it is done. An earlier account with this name may have left entries, which a reset follows.
    func writing(
        _ entries: [KeyLogEntry], of account: Account, _ body: () throws(SQLiteError) -> Bool
    ) throws(DirectoryError) -> Bool {
        guard let app = entries.first?.app else { return try writing(body) }
        var refusal: DirectoryError?
        let isDone = try writing { () throws(SQLiteError) in
            // Before the entries: those of a name that is taken cannot follow either.
            guard try !isNameTaken(account) else { return false }
            let rows = KeyLogRows(database: database)
            switch try rows.plan(entries, mayReset: { $0.user != account.user }) {
            case .refused(let error, let newest):
                refusal = DirectoryError(error, newest: newest)
                return false
            case .append(let new):
                guard try body() else { return false }
                try rows.append(new)
                return true
            }
        }
        if let refusal { throw refusal }
        // The account is on disk: if the log in memory cannot follow now, its next use does.
        if isDone { try? keyLogs?.follow(app) }
        return isDone
    }

    /// One transaction, on disk when it returns.
    func writing<Result>(_ body: () throws(SQLiteError) -> Result) throws(DirectoryError) -> Result {
        try asking { () throws(SQLiteError) in try database.transaction(.immediate, body) }
    }
}
