import ThicketAuth
import ThicketCrypto
import ThicketSQLite

// Users that partners' apps log in on this server (`PartnerUsers`).
extension PartnerStore {
    /// The partner's user with that id, created as a guest if it does not exist. `now`: seconds since 1970.
    public func registerGuest(
        partner: String, partnerEntity: String, newID: String, now: Double
    ) throws(DirectoryError) -> Profile {
        try writing { () throws(SQLiteError) in
            let known = try entity(of: partner, partnerEntity)
            if known == nil {
                try insertEntity(newID, partner, partnerEntity, email: "", now)
                try insertProfile(newID, isGuest: true, now)
            }
            guard let profile = try profile(of: known?.id ?? newID, now) else {
                throw SQLiteError.refused("the guest was not kept")
            }
            return profile
        }
    }

    /// Counts one more login; nil when the user does not exist.
    public func loggedIn(_ entity: String, now: Double) throws(DirectoryError) -> Profile? {
        try writing { () throws(SQLiteError) in
            guard try profile(of: entity, now) != nil else { return nil }
            try database.statement("UPDATE profile SET logins = logins + 1 WHERE entity = ?1").bind(1, entity).run()
            return try profile(of: entity, now)
        }
    }

    /// Adds a user with a password; nil, and nothing is added, when the partner has a user of that name.
    public func add(_ user: NewUser, now: Double) throws(DirectoryError) -> Profile? {
        try writing { () throws(SQLiteError) in
            guard try find(user.username, user.partner) == nil else { return nil }
            let email = PartnerService.isEmail(user.username) ? user.username : ""
            try insertEntity(user.entity, user.partner, user.partnerEntity, email: email, now)
            try insertProfile(user.entity, username: user.username, phone: user.phone, now)
            try database.statement(
                "INSERT INTO credential (partner, username, entity, salt, verifier) VALUES (?1, ?2, ?3, ?4, ?5)"
            ).bind(1, user.partner).bind(2, user.username).bind(3, user.entity).bind(4, user.verifier.salt)
                .bind(5, user.verifier.hash).run()
            return try profile(of: user.entity, now)
        }
    }

    /// The user id and password hash of a username; nil when it is unknown.
    public func verifier(of username: String, partner: String) throws(DirectoryError) -> (
        entity: String, verifier: PasswordVerifier
    )? {
        try asking { () throws(SQLiteError) in try find(username, partner) }
    }

    /// The name under which the user has a password; nil when it has none.
    public func username(of entity: String) throws(DirectoryError) -> String? {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT username FROM credential WHERE entity = ?1").bind(1, entity)
                .first { $0.text(0) }
        }
    }

    /// Replaces the user's password; ends its sessions but `keeping`, and its reset code.
    public func setVerifier(
        _ verifier: PasswordVerifier, of entity: String, keeping session: [UInt8]?, now: Double
    ) throws(DirectoryError) {
        try writing { () throws(SQLiteError) in
            try database.statement("UPDATE credential SET salt = ?2, verifier = ?3 WHERE entity = ?1")
                .bind(1, entity).bind(2, verifier.salt).bind(3, verifier.hash).run()
            try database.statement("UPDATE profile SET updated = ?2 WHERE entity = ?1")
                .bind(1, entity).bind(2, Self.milliseconds(now)).run()
            try database.statement("DELETE FROM login WHERE entity = ?1 AND hash <> ?2")
                .bind(1, entity).bind(2, session ?? []).run()
            try database.statement("DELETE FROM reset_code WHERE entity = ?1").bind(1, entity).run()
        }
    }

    // MARK: Sessions

    /// Begins a session. The one on the same device ends, and the oldest beyond `LoginSession.perUserMax`.
    public func begin(_ session: LoginSession, now: Double) throws(DirectoryError) {
        let time = Self.milliseconds(now)
        try writing { () throws(SQLiteError) in
            try database.statement("DELETE FROM login WHERE entity = ?1 AND (device = ?2 OR ends <= ?3)")
                .bind(1, session.entity).bind(2, session.device).bind(3, time).run()
            try database.statement(
                "INSERT INTO login (hash, entity, device, begun, ends) VALUES (?1, ?2, ?3, ?4, ?5)"
            ).bind(1, session.hash).bind(2, session.entity).bind(3, session.device).bind(4, time)
                .bind(5, Self.milliseconds(session.ends)).run()
            try database.statement(
                """
                DELETE FROM login WHERE entity = ?1 AND hash IN
                    (SELECT hash FROM login WHERE entity = ?1 ORDER BY begun DESC, hash LIMIT -1 OFFSET ?2)
                """
            ).bind(1, session.entity).bind(2, Int64(LoginSession.perUserMax)).run()
        }
    }

    /// The session with this hash; nil when it is unknown. It may be over.
    public func session(_ hash: [UInt8]) throws(DirectoryError) -> LoginSession? {
        try asking { () throws(SQLiteError) in
            try database.statement("SELECT entity, device, ends FROM login WHERE hash = ?1").bind(1, hash)
                .first { row in
                    LoginSession(
                        hash: hash, entity: row.text(0), device: row.text(1), ends: Double(row.integer(2)) / 1_000)
                }
        }
    }

    /// Ends a session.
    public func endSession(_ hash: [UInt8]) throws(DirectoryError) {
        try asking { () throws(SQLiteError) in
            try database.statement("DELETE FROM login WHERE hash = ?1").bind(1, hash).run()
        }
    }

    // MARK: Codes

    /// Keeps a reset code; false when another was kept less than `ResetCode.pause` ago. `now`: seconds since 1970.
    public func keep(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool {
        let time = Self.milliseconds(now)
        return try writing { () throws(SQLiteError) in
            let last = try database.statement("SELECT made FROM reset_code WHERE entity = ?1")
                .bind(1, entity).first { $0.integer(0) }
            if let last, abs(time - last) < Self.milliseconds(ResetCode.pause) { return false }
            try database.statement("DELETE FROM reset_code WHERE made < ?1")
                .bind(1, time - Self.milliseconds(ResetCode.seconds)).run()
            try database.statement(
                "INSERT OR REPLACE INTO reset_code (entity, code, made, tries) VALUES (?1, ?2, ?3, 0)"
            ).bind(1, entity).bind(2, key.code(code, of: entity)).bind(3, time).run()
            return true
        }
    }

    /// Whether the code is the kept one, in time and not used up; every call counts as a try.
    public func redeem(code: String, of entity: String, now: Double) throws(DirectoryError) -> Bool {
        let time = Self.milliseconds(now)
        return try writing { () throws(SQLiteError) in
            let kept: (code: [UInt8], made: Int64, tries: Int64)? = try database.statement(
                "SELECT code, made, tries FROM reset_code WHERE entity = ?1"
            ).bind(1, entity).first { ($0.bytes(0), $0.integer(1), $0.integer(2)) }
            guard let kept, kept.tries < ResetCode.triesMax,
                abs(time - kept.made) < Self.milliseconds(ResetCode.seconds)
            else { return false }
            let isSame = ConstantTime.equal(kept.code, key.code(code, of: entity))
            // A used code is not good again; its row stays so that no other code is sent too soon.
            try database.statement("UPDATE reset_code SET tries = ?2 WHERE entity = ?1").bind(1, entity)
                .bind(2, isSame ? Int64(ResetCode.triesMax) : kept.tries + 1).run()
            return isSame
        }
    }

    // MARK: Parts

    private func find(
        _ username: String, _ partner: String
    ) throws(SQLiteError) -> (entity: String, verifier: PasswordVerifier)? {
        try database.statement("SELECT entity, salt, verifier FROM credential WHERE partner = ?1 AND username = ?2")
            .bind(1, partner).bind(2, username)
            .first { ($0.text(0), PasswordVerifier(salt: $0.bytes(1), hash: $0.bytes(2))) }
    }

    private func insertProfile(
        _ entity: String, username: String = "", phone: String = "", isGuest: Bool = false, _ now: Double
    ) throws(SQLiteError) {
        try database.statement(
            "INSERT INTO profile (entity, username, phone, guest, updated, logins) VALUES (?1, ?2, ?3, ?4, ?5, 0)"
        ).bind(1, entity).bind(2, username).bind(3, phone).bind(4, isGuest ? 1 : 0).bind(5, Self.milliseconds(now))
            .run()
    }

    /// The user's profile, created if it does not exist: partners register users without one.
    private func profile(of id: String, _ now: Double) throws(SQLiteError) -> Profile? {
        if let found = try readProfile(of: id) { return found }
        guard try database.statement("SELECT 1 FROM entity WHERE id = ?1").bind(1, id).first({ _ in true }) != nil
        else { return nil }
        try insertProfile(id, now)
        return try readProfile(of: id)
    }

    private func readProfile(of id: String) throws(SQLiteError) -> Profile? {
        try database.statement(
            """
            SELECT e.id, e.partner, e.partner_entity, e.public_key, e.sign_key, p.number, p.username, p.phone, e.email,
                p.guest, e.created, p.updated, p.logins
            FROM profile AS p JOIN entity AS e ON e.id = p.entity WHERE p.entity = ?1
            """
        ).bind(1, id).first { row in
            Profile(
                number: row.integer(5), entity: Self.entity(row), username: row.text(6), phone: row.text(7),
                email: row.text(8), isGuest: row.integer(9) != 0, created: row.integer(10), updated: row.integer(11),
                logins: row.integer(12))
        }
    }

    /// One transaction, on disk when the call returns.
    private func writing<Result>(
        _ body: () throws(SQLiteError) -> Result
    ) throws(DirectoryError) -> Result {
        try asking { () throws(SQLiteError) in
            var result: Result?
            try database.transaction(.immediate) { () throws(SQLiteError) in result = try body() }
            guard let result else { throw SQLiteError.refused("the transaction gave nothing") }
            return result
        }
    }
}
