import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSQLite

/// The reason why an administrative command was refused.
public enum StoreAdminError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The app must be created first.
    case unknownApp(AppID)
    /// The token already exists with another app, user or permission. `place` is its index in the given tokens, from 0.
    case tokenTaken(place: Int)
    /// The token is empty or longer than `StoreAdmin.tokenBytesMax`.
    case badToken(place: Int)
    /// The partner must be created first.
    case unknownPartner(String)
    /// The app belongs to another partner.
    case appTaken(AppID)
    /// The app has no key with this id.
    case unknownKey(String)
    /// This many users have objects in their buckets of that name, which would be in the wrong mode.
    case bucketsInUse(BucketName, users: Int64)
    /// The options bucket is always open.
    case options
    /// Only the `init` of a device makes a tree.
    case treeMode
    /// The store failed.
    case store(StoreError)

    /// The message for the operator; it contains no token.
    public var description: String {
        switch self {
        case .unknownPartner(let id): "there is no partner \(id); 'thicketd partner list' shows them"
        case .appTaken(let app): "the app \(app) belongs to another partner"
        case .unknownKey(let id): "the app has no key \(id); 'thicketd app key list' shows them"
        case .unknownApp(let app): "there is no app \(app)"
        case .tokenTaken(let place): "token \(place + 1) is in use for something else"
        case .badToken(let place): "token \(place + 1) is empty or longer than \(StoreAdmin.tokenBytesMax) bytes"
        case .bucketsInUse(let name, let users):
            """
            \(users == 1 ? "1 user has" : "\(users) users have") objects in the bucket \(name), and the mode of a bucket never \
            changes while it has objects. Nothing was changed. Give the other mode to a new name.
            """
        case .options: "the options bucket is always open"
        case .treeMode: "a bucket becomes a tree when a device opens it as one; give 'open' or 'sealed'"
        case .store(let error): error.description
        }
    }
}

/// A token that was created elsewhere, with the access it grants.
public struct ImportedToken: Hashable, Sendable {
    /// The access that the token grants.
    public let grant: TokenGrant
    /// The token as clients send it.
    public let token: String

    /// Creates a token to import.
    public init(grant: TokenGrant, token: String) {
        self.grant = grant
        self.token = token
    }
}

/// Manages apps and tokens. Works beside a running server, from any process, because the server reads the tables at
/// each `init`.
///
/// Tokens are stored as their SHA-256, so that an attacker who can read the file cannot act as a user.
public final class StoreAdmin {
    /// Maximum bytes of a token.
    public static let tokenBytesMax = 4_096
    /// Random bytes in a token made here; the token has twice as many hex digits.
    public static let tokenRandomBytes = 16

    let database: Database
    let random: @Sendable (Int) -> [UInt8]

    /// Opens the store; creates it if it does not exist.
    public init(path: String, settings: StoreSettings = .init()) throws(StoreError) {
        database = try SQLiteStore.connect(path, .create, settings)
        random = settings.random
        try Schema.prepare(database) { () throws(SQLiteError) in try Meta.seed(database, random: settings.random) }
    }

    /// The stored form of a token, which is the argument of `StoreReader.grant(tokenHash:)`.
    public static func hash(ofToken token: String) -> [UInt8] { Hash.sha256(Array(token.utf8)) }

    /// Registers an app.
    /// - Parameters:
    ///   - partner: the partner that signs tokens for the app's users; nil leaves the app's partner unchanged. The
    ///     partner of an app never changes, because the app's data belongs to the partner's users.
    ///   - now: milliseconds since 1970.
    /// - Returns: false if the app was already registered.
    @discardableResult
    public func createApp(_ app: AppID, partner: String? = nil, now: Int64) throws(StoreAdminError) -> Bool {
        var refusal: StoreAdminError?
        return try doing("creating an app") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try database.statement("INSERT OR IGNORE INTO app (name, created) VALUES (?1, ?2)")
                    .bind(1, app.text).bind(2, now).run()
                let isNew = database.changedRows == 1
                if let partner {
                    refusal = try tie(app, to: partner)
                    if refusal != nil { throw SQLiteError.refused("the app's partner") }
                }
                return isNew
            }
        } orElse: {
            refusal
        }
    }

    /// Assigns the app to a partner; must be called inside a transaction. Returns the reason for a refusal.
    func tie(_ app: AppID, to partner: String) throws(SQLiteError) -> StoreAdminError? {
        let isKnown =
            try database.statement("SELECT 1 FROM partner WHERE id = ?1").bind(1, partner).first { _ in true } ?? false
        guard isKnown else { return .unknownPartner(partner) }
        try database.statement("UPDATE app SET partner = ?2 WHERE name = ?1 AND (partner IS NULL OR partner = ?2)")
            .bind(1, app.text).bind(2, partner).run()
        return database.changedRows == 1 ? nil : .appTaken(app)
    }

    /// Whether the app is registered.
    public func hasApp(_ app: AppID) throws(StoreAdminError) -> Bool {
        try doing("looking for an app") { () throws(SQLiteError) in try isKnown(app) }
    }

    /// Names of all apps, in ascending order.
    public func apps() throws(StoreAdminError) -> [AppID] {
        var texts = [String]()
        try doing("listing the apps") { () throws(SQLiteError) in
            try database.statement("SELECT name FROM app ORDER BY name")
                .forEach { (row) throws(SQLiteError) in texts.append(row.text(0)) }
        }
        var apps = [AppID]()
        do {
            for text in texts { apps.append(try .stored(text)) }
        } catch {
            throw .store(error)
        }
        return apps
    }

    /// Creates a token and returns it: 32 hex digits. The store keeps only its hash.
    /// - Parameter now: milliseconds since 1970.
    public func createToken(_ grant: TokenGrant, now: Int64) throws(StoreAdminError) -> String {
        let token = Hex.encode(random(Self.tokenRandomBytes))
        try importTokens([ImportedToken(grant: grant, token: token)], now: now)
        return token
    }

    /// Adds tokens that were created elsewhere: all of them or, if one is refused, none.
    /// - Returns: the number of new tokens.
    @discardableResult
    public func importTokens(_ tokens: [ImportedToken], now: Int64) throws(StoreAdminError) -> Int {
        for (place, token) in tokens.enumerated()
        where token.token.utf8.isEmpty || token.token.utf8.count > Self.tokenBytesMax {
            throw .badToken(place: place)
        }
        var refusal: StoreAdminError?
        let added = try doing("importing tokens") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                var added = 0
                for (place, token) in tokens.enumerated() {
                    guard try isKnown(token.grant.app) else {
                        refusal = .unknownApp(token.grant.app)
                        throw SQLiteError.refused("unknown app")
                    }
                    switch try add(token, now) {
                    case true?: added += 1
                    case false?: continue
                    case nil:
                        refusal = .tokenTaken(place: place)
                        throw SQLiteError.refused("token taken")
                    }
                }
                return added
            }
        } orElse: {
            refusal
        }
        return added
    }

    /// True: added. False: it already exists with the same access. nil: it already exists with other access.
    private func add(_ token: ImportedToken, _ now: Int64) throws(SQLiteError) -> Bool? {
        let hash = Self.hash(ofToken: token.token)
        let same = try database.statement("SELECT app, user, read_only FROM token WHERE hash = ?1")
            .bind(1, hash).first { row in
                row.bytes(0) == Array(token.grant.app.text.utf8) && row.bytes(1) == Array(token.grant.user.text.utf8)
                    && (row.integer(2) != 0) == token.grant.isReadOnly
            }
        if let same { return same ? false : nil }
        try database.statement(
            "INSERT INTO token (hash, app, user, read_only, created, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        ).bind(1, hash).bind(2, token.grant.app.text).bind(3, token.grant.user.text)
            .bind(4, token.grant.isReadOnly ? 1 : 0).bind(5, now).bind(6, token.grant.expires).run()
        return true
    }

    /// Revokes a token.
    /// - Returns: whether the token existed.
    @discardableResult
    public func removeToken(_ token: String) throws(StoreAdminError) -> Bool {
        try doing("removing a token") { () throws(SQLiteError) in
            try database.statement("DELETE FROM token WHERE hash = ?1").bind(1, Self.hash(ofToken: token)).run()
            return database.changedRows == 1
        }
    }

    func isKnown(_ app: AppID) throws(SQLiteError) -> Bool {
        try database.statement("SELECT 1 FROM app WHERE name = ?1").bind(1, app.text).first { _ in true } ?? false
    }

    func doing<Result>(
        _ what: StaticString, _ body: () throws(SQLiteError) -> Result, orElse refusal: () -> StoreAdminError? = { nil }
    ) throws(StoreAdminError) -> Result {
        do {
            return try body()
        } catch {
            throw refusal() ?? .store(StoreError(error, "\(what)"))
        }
    }
}
