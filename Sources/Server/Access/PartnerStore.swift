public import ThicketAuth
import ThicketProtocol
import ThicketSQLite

/// Partners and their users in the store's file. Belongs to one thread; changes by other processes are visible at
/// once.
public final class PartnerStore: PartnerDirectory {
    /// Devices kept of one user; of more the one not seen for longest is deleted.
    public static let devicesPerUserMax = 64
    /// Seconds for which a device that was seen is not written again.
    private static let seenAgainSeconds: Double = 3_600

    let database: Database
    let key: ServerKey
    /// What follows the entries of the key log that are written with bundles.
    let keyLogs: KeyLogs?
    /// All partners by the hashes of their API keys: they are few, and an unknown key must take as long to look up
    /// as a known one.
    private var partners = [[UInt8]: Partner]()
    private var partnersByID = [String: Partner]()
    /// Partners that were found disabled and have not been reported yet.
    private var disabled = Set<String>()
    /// `Meta.partners` when the partners were read.
    private var read: Int64 = -1

    /// Opens an existing store; throws when it cannot be opened or has another schema.
    /// - Parameter keyLogs: logs in memory that follow what is written here.
    public init(
        path: String, key: ServerKey, settings: StoreSettings = .init(), keyLogs: KeyLogs? = nil
    ) throws(StoreError) {
        self.keyLogs = keyLogs
        database = try SQLiteStore.connect(path, .readWrite, settings)
        try Schema.check(database)
        self.key = key
    }

    /// The partner with this API key; nil when no partner has it.
    public func partner(apiKey: String) throws(DirectoryError) -> Partner? {
        try asking { () throws(SQLiteError) in
            try refresh()
            return partners[key.name(of: apiKey)]
        }
    }

    /// The partner of an app; nil when it has none.
    public func partner(ofApp app: String) throws(DirectoryError) -> Partner? {
        try asking { () throws(SQLiteError) in
            try refresh()
            let id = try database.statement("SELECT partner FROM app WHERE name = ?1 AND partner IS NOT NULL")
                .bind(1, app).first { $0.text(0) }
            return id.flatMap { partnersByID[$0] }
        }
    }

    /// Partners found disabled since the last call, in the order of their ids.
    public func disabledPartners() throws(DirectoryError) -> [String] {
        try asking { () throws(SQLiteError) in try refresh() }
        defer { disabled = [] }
        return disabled.sorted()
    }

    /// The user with this entity id; nil when it does not exist.
    public func entity(_ id: String) throws(DirectoryError) -> Entity? {
        try asking { () throws(SQLiteError) in
            try database.statement(
                "SELECT id, partner, partner_entity, public_key, sign_key FROM entity WHERE id = ?1"
            ).bind(1, id).first(Self.entity)
        }
    }

    /// The partner's user with that id, created under `newID` if it does not exist. `now`: seconds since 1970.
    public func register(
        partner: String, partnerEntity: String, email: String, newID: String, now: Double
    ) throws(DirectoryError) -> Entity {
        try asking { () throws(SQLiteError) in
            if let known = try entity(of: partner, partnerEntity) { return known }
            try insertEntity(newID, partner, partnerEntity, email: email, now)
            guard let made = try entity(of: partner, partnerEntity) else {
                throw SQLiteError.refused("the user was not kept")
            }
            return made
        }
    }

    /// Changes nothing when the partner has a user with that id.
    func insertEntity(
        _ id: String, _ partner: String, _ partnerEntity: String, email: String, _ now: Double
    ) throws(SQLiteError) {
        try database.statement(
            "INSERT OR IGNORE INTO entity (id, partner, partner_entity, email, created) VALUES (?1, ?2, ?3, ?4, ?5)"
        ).bind(1, id).bind(2, partner).bind(3, partnerEntity).bind(4, email).bind(5, Self.milliseconds(now)).run()
    }

    /// Stores the user's public keys if it has none; returns whether it has these keys now.
    public func setKeys(
        public publicKey: [UInt8], sign signKey: [UInt8], of entity: String
    ) throws(DirectoryError) -> Bool {
        try asking { () throws(SQLiteError) in
            try database.statement(
                """
                UPDATE entity SET public_key = ?2, sign_key = ?3
                WHERE id = ?1 AND public_key IS NULL AND sign_key IS NULL
                """
            ).bind(1, entity).bind(2, publicKey).bind(3, signKey).run()
            if database.changedRows == 1 { return true }
            return try database.statement("SELECT 1 FROM entity WHERE id = ?1 AND public_key = ?2 AND sign_key = ?3")
                .bind(1, entity).bind(2, publicKey).bind(3, signKey).first { _ in true } ?? false
        }
    }

    /// Records that a device was seen, at most once an hour. `now`: seconds since 1970.
    public func saw(device: String, of entity: String, now: Double) throws(DirectoryError) {
        let time = Self.milliseconds(now)
        try asking { () throws(SQLiteError) in
            let last = try database.statement("SELECT last FROM device WHERE entity = ?1 AND device = ?2")
                .bind(1, entity).bind(2, device).first { $0.integer(0) }
            if let last, abs(time - last) < Self.milliseconds(Self.seenAgainSeconds) { return }
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try database.statement(
                    """
                    INSERT INTO device (entity, device, first, last) VALUES (?1, ?2, ?3, ?3)
                    ON CONFLICT (entity, device) DO UPDATE SET last = ?3
                    """
                ).bind(1, entity).bind(2, device).bind(3, time).run()
                try database.statement(
                    """
                    DELETE FROM device WHERE entity = ?1 AND device IN
                        (SELECT device FROM device WHERE entity = ?1 ORDER BY last DESC, device LIMIT -1 OFFSET ?2)
                    """
                ).bind(1, entity).bind(2, Int64(Self.devicesPerUserMax)).run()
            }
        }
    }

    /// The user's devices, the one seen last first; at most `devicesPerUserMax`.
    public func devices(of entity: String) throws(DirectoryError) -> [KnownDevice] {
        try asking { () throws(SQLiteError) in
            var devices = [KnownDevice]()
            try database.statement(
                "SELECT device, first, last FROM device WHERE entity = ?1 ORDER BY last DESC, device"
            )
            .bind(1, entity).forEach { (row: Statement) throws(SQLiteError) in
                devices.append(KnownDevice(id: row.text(0), first: row.integer(1), last: row.integer(2)))
            }
            return devices
        }
    }

    /// Denies tokens until their own ends; deletes entries whose time is over.
    public func deny(_ tokens: [DeniedToken], now: Double) throws(DirectoryError) {
        try asking { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try database.statement("DELETE FROM denied WHERE until <= ?1").bind(1, Self.milliseconds(now)).run()
                for token in tokens {
                    try database.statement("INSERT OR REPLACE INTO denied (hash, until) VALUES (?1, ?2)")
                        .bind(1, token.hash).bind(2, Self.milliseconds(token.until)).run()
                }
            }
        }
    }

    /// Whether the token with this SHA-256 is denied.
    public func isDenied(_ hash: [UInt8]) throws(DirectoryError) -> Bool {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT 1 FROM denied WHERE hash = ?1").bind(1, hash).first { _ in true } ?? false
        }
    }

    func entity(of partner: String, _ partnerEntity: String) throws(SQLiteError) -> Entity? {
        try database.statement(
            """
            SELECT id, partner, partner_entity, public_key, sign_key FROM entity
            WHERE partner = ?1 AND partner_entity = ?2
            """
        ).bind(1, partner).bind(2, partnerEntity).first(Self.entity)
    }

    static func entity(_ row: Statement) -> Entity {
        Entity(
            id: row.text(0), partner: row.text(1), partnerEntity: row.text(2), publicKey: row.optionalBytes(3),
            signKey: row.optionalBytes(4))
    }

    /// Reads the partners again when one has changed.
    private func refresh() throws(SQLiteError) {
        let current = try Meta.integer(Meta.partners, database) ?? 0
        guard current != read else { return }
        var found = [[UInt8]: Partner]()
        var byID = [String: Partner]()
        for row in try PartnerRow.all(database) {
            let partner = row.partner(key)
            (found[row.name], byID[row.id]) = (partner, partner)
            if !partner.isEnabled, read < 0 || partnersByID[row.id]?.isEnabled == true { disabled.insert(row.id) }
        }
        (partners, partnersByID, read) = (found, byID, current)
    }

    func asking<Result>(
        _ body: () throws(SQLiteError) -> Result
    ) throws(DirectoryError) -> Result {
        do throws(SQLiteError) {
            return try body()
        } catch {
            throw DirectoryError("\(error)")
        }
    }

    static func milliseconds(_ seconds: Double) -> Int64 { Int64(max(-1e15, min(1e15, seconds * 1_000))) }
}
