import ThicketAuth
import ThicketProtocol
import ThicketSQLite

/// Why a command about partners was refused.
public enum PartnerAdminError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No partner has this id.
    case unknownPartner(String)
    /// A partner has this id already.
    case partnerTaken(String)
    /// The API key belongs to another partner.
    case apiKeyTaken
    /// A partner id is 1 to 9 digits without leading zeros.
    case badID
    /// An API key is 8 to 64 letters, digits and dashes.
    case badAPIKey
    /// The auth key has too few or too many bytes (`Partner.authKeyBytesMin`, `authKeyBytesMax`).
    case badAuthKey(bytes: Int)
    /// The database is sealed by another key file; nothing was written.
    case foreignKeyFile
    /// The store could not be read or written.
    case store(StoreError)

    /// One line for the operator.
    public var description: String {
        switch self {
        case .unknownPartner(let id): "there is no partner \(id); 'thicketd partner list' shows them"
        case .partnerTaken(let id):
            "there is a partner \(id) already; 'thicketd partner rotate \(id)' gives it another auth key"
        case .apiKeyTaken: "the API key belongs to another partner"
        case .badID: "a partner id is 1 to 9 digits without leading zeros"
        case .badAPIKey: "an API key is 8 to 64 letters, digits and dashes"
        case .badAuthKey(let bytes):
            "an auth key has \(Partner.authKeyBytesMin) to \(Partner.authKeyBytesMax) bytes, this one \(bytes)"
        case .foreignKeyFile: "the key file is not the one by which the database is sealed; nothing was changed"
        case .store(let error): error.description
        }
    }
}

/// Administration of partners. Works beside a running server, from any process.
public final class PartnerAdmin {
    /// A line of the list; secrets are not in it.
    public struct Listed: Sendable, Hashable {
        /// The partner's id: 1 to 9 digits.
        public let id: String
        /// nil: it is sealed by a key file that is lost.
        public let apiKey: String?
        /// Auth keys that the key file opens.
        public let authKeys: Int
        /// Whether its users may log in.
        public let isEnabled: Bool
        /// Whether its users may have passwords on this server.
        public let keepsPasswords: Bool
        /// The apps tied to the partner, by name.
        public let apps: [String]
        /// The number of its users.
        public let users: Int64
    }

    private let database: Database
    private let key: ServerKey
    private let random: @Sendable (Int) -> [UInt8]

    /// Opens the store; creates it if it does not exist.
    public init(path: String, key: ServerKey, settings: StoreSettings = .init()) throws(StoreError) {
        database = try SQLiteStore.connect(path, .create, settings)
        self.key = key
        random = settings.random
        try Schema.prepare(database) { () throws(SQLiteError) in try Meta.seed(database, random: settings.random) }
    }

    /// Whether the database is sealed by another key file: then nothing can be changed.
    public var isKeyForeign: Bool { (try? ServerKeyMark.standing(of: key, database)) == .foreign }

    /// Makes a partner with new keys.
    /// - Parameters:
    ///   - id: nil takes the next free number.
    ///   - now: milliseconds since 1970.
    /// - Returns: the id, the API key and the auth key, which cannot be read again.
    public func create(
        id: String?, now: Int64
    ) throws(PartnerAdminError) -> (id: String, apiKey: String, authKey: String) {
        let number: String
        if let id { number = id } else { number = try nextID() }
        let (apiKey, authKey) = (Partner.newID(random: random), Partner.newAuthKey(random: random))
        try add(id: number, apiKey: apiKey, authKey: authKey, now: now)
        return (number, apiKey, authKey)
    }

    /// Adds a partner with existing keys.
    /// - Parameter authKey: nil when its users may not log in yet.
    public func add(id: String, apiKey: String, authKey: String?, now: Int64) throws(PartnerAdminError) {
        guard (1...9).contains(id.utf8.count), id.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            id.utf8.first != 0x30
        else { throw .badID }
        try Self.check(apiKey: apiKey)
        if let authKey { try Self.check(authKey) }
        try changing { () throws(SQLiteError) -> PartnerAdminError? in
            guard try !isKnown(id) else { return .partnerTaken(id) }
            guard try owner(ofAPIKey: apiKey) == nil else { return .apiKeyTaken }
            try database.statement(
                "INSERT INTO partner (id, name, api_key, enabled, created) VALUES (?1, ?2, ?3, 1, ?4)"
            ).bind(1, id).bind(2, key.name(of: apiKey)).bind(
                3, key.seal(Array(apiKey.utf8), of: PartnerRow.apiKeyOwner(id))
            )
            .bind(4, now).run()
            if let authKey { try insert(authKey, of: id, now) }
            return nil
        }
    }

    /// Replaces a partner's API key: requests that show the old one are refused from now on.
    /// - Parameter apiKey: nil makes one.
    /// - Returns: the key.
    public func replaceAPIKey(id: String, by apiKey: String?) throws(PartnerAdminError) -> String {
        let apiKey = apiKey ?? Partner.newID(random: random)
        try Self.check(apiKey: apiKey)
        try changing { () throws(SQLiteError) -> PartnerAdminError? in
            guard try isKnown(id) else { return .unknownPartner(id) }
            if let owner = try owner(ofAPIKey: apiKey), !owner.utf8.elementsEqual(id.utf8) {
                return .apiKeyTaken
            }
            try PartnerRow.set(apiKey: apiKey, of: id, key, database)
            return nil
        }
        return apiKey
    }

    /// Adds an auth key to a partner; the previous one stays good until the next call of this or of `dropOld`.
    /// - Parameter authKey: nil makes one.
    /// - Returns: the key.
    public func rotate(id: String, authKey: String?, now: Int64) throws(PartnerAdminError) -> String {
        let authKey = authKey ?? Partner.newAuthKey(random: random)
        try Self.check(authKey)
        try changing { () throws(SQLiteError) -> PartnerAdminError? in
            guard try isKnown(id) else { return .unknownPartner(id) }
            try keepNewest(Partner.authKeysMax - 1, of: id)
            try insert(authKey, of: id, now)
            return nil
        }
        return authKey
    }

    /// Ends a rotation: only the newest key is good from now on.
    /// - Returns: how many were dropped.
    @discardableResult
    public func dropOld(id: String) throws(PartnerAdminError) -> Int {
        var dropped = 0
        try changing { () throws(SQLiteError) -> PartnerAdminError? in
            guard try isKnown(id) else { return .unknownPartner(id) }
            try keepNewest(1, of: id)
            dropped = Int(database.changedRows)
            return nil
        }
        return dropped
    }

    /// Enables or disables a partner. Users of a disabled one cannot log in; they and their data stay.
    public func setEnabled(_ isEnabled: Bool, id: String) throws(PartnerAdminError) {
        try changing { () throws(SQLiteError) -> PartnerAdminError? in
            guard try isKnown(id) else { return .unknownPartner(id) }
            try database.statement("UPDATE partner SET enabled = ?2 WHERE id = ?1")
                .bind(1, id).bind(2, isEnabled ? 1 : 0).run()
            return nil
        }
    }

    /// Whether users of the partner may have passwords on this server. Existing passwords are kept, but cannot be
    /// used while this is off.
    public func setKeepsPasswords(_ keeps: Bool, id: String) throws(PartnerAdminError) {
        try changing { () throws(SQLiteError) -> PartnerAdminError? in
            guard try isKnown(id) else { return .unknownPartner(id) }
            try database.statement("UPDATE partner SET passwords = ?2 WHERE id = ?1").bind(1, id)
                .bind(2, keeps ? 1 : 0).run()
            return nil
        }
    }

    /// All partners in the order of their ids.
    public func list() throws(PartnerAdminError) -> [Listed] {
        do throws(SQLiteError) {
            var listed = [Listed]()
            for row in try PartnerRow.all(database) {
                var apps = [String]()
                try database.statement("SELECT name FROM app WHERE partner = ?1 ORDER BY name").bind(1, row.id)
                    .forEach { (app: Statement) throws(SQLiteError) in apps.append(app.text(0)) }
                let users = try database.statement("SELECT count(*) FROM entity WHERE partner = ?1")
                    .bind(1, row.id).first { $0.integer(0) }
                let apiKey = key.open(row.sealedAPIKey, of: PartnerRow.apiKeyOwner(row.id))
                listed.append(
                    Listed(
                        id: row.id, apiKey: apiKey.map { String(decoding: $0, as: UTF8.self) },
                        authKeys: row.partner(key).authKeys.count, isEnabled: row.isEnabled,
                        keepsPasswords: row.keepsPasswords, apps: apps, users: users ?? 0))
            }
            return listed
        } catch {
            throw .store(StoreError(error, "listing the partners"))
        }
    }

    // MARK: Parts

    private func nextID() throws(PartnerAdminError) -> String {
        do throws(SQLiteError) {
            let last = try database.integer("SELECT max(CAST(id AS INTEGER)) FROM partner") ?? 0
            return String(max(last, Self.firstID - 1) + 1)
        } catch {
            throw .store(StoreError(error, "listing the partners"))
        }
    }

    private static let firstID: Int64 = 1_000

    private static func isAPIKeyByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"): true
        default: false
        }
    }

    private static func check(apiKey: String) throws(PartnerAdminError) {
        guard (8...64).contains(apiKey.utf8.count), apiKey.utf8.allSatisfy(isAPIKeyByte) else { throw .badAPIKey }
    }

    /// The partner that has the API key; nil when no partner has it.
    private func owner(ofAPIKey apiKey: String) throws(SQLiteError) -> String? {
        try database.statement("SELECT id FROM partner WHERE name = ?1").bind(1, key.name(of: apiKey))
            .first { $0.text(0) }
    }

    private static func check(_ authKey: String) throws(PartnerAdminError) {
        guard (Partner.authKeyBytesMin...Partner.authKeyBytesMax).contains(authKey.utf8.count) else {
            throw .badAuthKey(bytes: authKey.utf8.count)
        }
    }

    private func isKnown(_ id: String) throws(SQLiteError) -> Bool {
        try database.statement("SELECT 1 FROM partner WHERE id = ?1").bind(1, id).first { _ in true } ?? false
    }

    private func insert(_ authKey: String, of id: String, _ now: Int64) throws(SQLiteError) {
        try database.statement("INSERT INTO partner_key (partner, sealed, created) VALUES (?1, ?2, ?3)")
            .bind(1, id).bind(2, key.seal(Array(authKey.utf8), of: PartnerRow.authKeyOwner(id))).bind(3, now).run()
    }

    private func keepNewest(_ count: Int, of id: String) throws(SQLiteError) {
        try database.statement(
            """
            DELETE FROM partner_key WHERE partner = ?1 AND id NOT IN
                (SELECT id FROM partner_key WHERE partner = ?1 ORDER BY id DESC LIMIT ?2)
            """
        ).bind(1, id).bind(2, Int64(count)).run()
    }

    /// One transaction, which also makes running servers read the partners again. Nothing is written under a key
    /// file other than the database's, because it would be lost as soon as the right file is back.
    private func changing(
        _ body: () throws(SQLiteError) -> PartnerAdminError?
    ) throws(PartnerAdminError) {
        var refusal: PartnerAdminError?
        do throws(SQLiteError) {
            try database.transaction(.immediate) { () throws(SQLiteError) in
                refusal = try ServerKeyMark.claim(key, database) ? try body() : .foreignKeyFile
                if refusal != nil { throw SQLiteError.refused("the partner's row") }
                try Meta.set(Meta.partners, (try Meta.integer(Meta.partners, database) ?? 0) + 1, database)
            }
        } catch {
            throw refusal ?? .store(StoreError(error, "changing a partner"))
        }
    }
}
