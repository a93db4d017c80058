import Testing
import ThicketAuth
import ThicketProtocol
import ThicketSQLite

@testable import ThicketServer

@Suite("Keys of apps and tokens of users") struct StoreKeyTests {
    private let folder = StoreFolder()
    private let admin: StoreAdmin
    private let app: AppID
    private let ann: UserID
    private let now: Int64 = 1_700_000_000_000

    init() throws {
        admin = try .init(path: folder.path("thicket.db"), settings: .testing)
        (app, ann) = (try AppID("notes"), try UserID("ann"))
        try admin.createApp(app, now: now)
    }

    @Test("a key has 32 digits, is listed by eight digits of its hash, and is invalid once it is revoked")
    func keys() throws {
        let key: String = try admin.addKey(of: app, isAdmin: false, now: now)
        _ = try admin.addKey(of: app, isAdmin: true, now: now + 1)
        #expect(key.utf8.count == 32)
        let listed: [StoreAdmin.ListedKey] = try admin.keys(of: app)
        #expect(listed.map(\.isAdmin) == [false, true])
        #expect(listed.map(\.created) == [now, now + 1])
        #expect(listed.allSatisfy { $0.id.utf8.count == 8 && !key.hasPrefix($0.id) })
        let store = try AccountStore(path: folder.path("thicket.db"), settings: .testing)
        #expect(try store.key(AppKey.hash(of: key), of: "notes") == .api)
        #expect(try store.key(AppKey.hash(of: key), of: "other") == nil)
        #expect(throws: StoreAdminError.unknownKey("")) { try admin.revokeKey("", of: app) }
        #expect(throws: StoreAdminError.unknownKey("%")) { try admin.revokeKey("%", of: app) }
        try admin.revokeKey(listed[0].id, of: app)
        #expect(try store.key(AppKey.hash(of: key), of: "notes") == nil)
        #expect(throws: StoreAdminError.unknownKey(listed[0].id)) { try admin.revokeKey(listed[0].id, of: app) }
        #expect(try admin.keys(of: app) == [listed[1]])
    }

    @Test("an unknown app has no keys and no tokens")
    func unknownApp() throws {
        let other = try AppID("other")
        #expect(throws: StoreAdminError.unknownApp(other)) { try admin.addKey(of: other, isAdmin: false, now: now) }
        #expect(throws: StoreAdminError.unknownApp(other)) { try admin.keys(of: other) }
        #expect(throws: StoreAdminError.unknownApp(other)) { try admin.tokens(of: other, user: nil) }
        #expect(throws: StoreAdminError.unknownApp(other)) { try admin.revokeTokens(nil, of: other, user: ann) }
    }

    @Test("tokens are listed and revoked by user, one or all")
    func tokens() throws {
        let bob = try UserID("bob")
        let first: String = try admin.createToken(.init(app: app, user: ann, isReadOnly: false), now: now)
        _ = try admin.createToken(.init(app: app, user: ann, isReadOnly: true, expires: now + 5), now: now + 1)
        _ = try admin.createToken(.init(app: app, user: bob, isReadOnly: false), now: now + 2)
        let own: [StoreAdmin.ListedToken] = try admin.tokens(of: app, user: ann)
        #expect(own.map(\.isReadOnly) == [false, true])
        #expect(own.map(\.expires) == [nil, now + 5])
        #expect(try admin.tokens(of: app, user: nil).map(\.user) == [ann, ann, bob])
        let reader: any StoreReader = try SQLiteStore(path: folder.path("thicket.db")).makeReader()
        #expect(try admin.revokeTokens(own[0].id, of: app, user: bob) == 0)
        #expect(try reader.grant(tokenHash: StoreAdmin.hash(ofToken: first)) != nil)
        #expect(try admin.revokeTokens(own[0].id, of: app, user: ann) == 1)
        #expect(try reader.grant(tokenHash: StoreAdmin.hash(ofToken: first)) == nil)
        #expect(try admin.revokeTokens(nil, of: app, user: ann) == 1)
        #expect(try admin.tokens(of: app, user: nil).map(\.user) == [bob])
    }

    @Test("tokens of a file from before tokens had an expiry are valid without one")
    func migrated() throws {
        let token = "0123456789abcdef0123456789abcdef"
        let old = try Database(path: folder.path("old.db"))
        _ = try old.text("PRAGMA journal_mode=WAL")
        for migration in Schema.migrations.prefix(4) { try old.execute(migration) }
        try Meta.seed(old) { Array(repeating: 7, count: $0) }
        try old.execute("INSERT INTO app (name, created) VALUES ('notes', 1)")
        try old.statement("INSERT INTO token (hash, app, user, read_only, created) VALUES (?1, 'notes', 'ann', 1, 1)")
            .bind(1, StoreAdmin.hash(ofToken: token)).run()
        try old.execute("PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=4")
        let reader: any StoreReader = try SQLiteStore(path: folder.path("old.db")).makeReader()
        let grant: TokenGrant = try #require(try reader.grant(tokenHash: StoreAdmin.hash(ofToken: token)))
        #expect(grant == TokenGrant(app: app, user: ann, isReadOnly: true))
        #expect(grant.isGood(at: .max))
    }
}
