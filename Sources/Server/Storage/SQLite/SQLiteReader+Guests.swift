import ThicketProtocol
import ThicketSQLite
import ThicketTreeShape

/// The table `guest` as the store's readers and its writer use it: bounds of guests, and their end.
extension SQLiteReader {
    final func guest(_ user: UserID, in app: AppID) throws(StoreError) -> GuestBounds? {
        typealias Row = (owner: String, root: String, expires: Int64, deposits: Int64, bytes: Int64)
        let found: Row? = try storing("looking for a guest") { () throws(SQLiteError) in
            try database.statement(
                """
                SELECT owner, root, expires, deposits_max - deposits, bytes_max - bytes FROM guest
                WHERE user = ?1 AND app = ?2
                """
            ).bind(1, user.text).bind(2, app.text).first {
                ($0.text(0), $0.text(1), $0.integer(2), $0.integer(3), $0.integer(4))
            }
        }
        guard let found, let root = NodeID(text: found.root) else { return nil }
        return GuestBounds(
            owner: try .stored(found.owner), root: root, expires: found.expires, depositsLeft: found.deposits,
            bytesLeft: found.bytes)
    }

    final func endedGuests(by time: Int64, limit: Int) throws(StoreError) -> [EndedGuest] {
        var found = [(app: String, user: String)]()
        try storing("looking for guests that have ended") { () throws(SQLiteError) in
            try database.statement("SELECT app, user FROM guest WHERE expires <= ?1 ORDER BY expires LIMIT ?2")
                .bind(1, time).bind(2, Int64(limit))
                .forEach { (row: Statement) throws(SQLiteError) in found.append((row.text(0), row.text(1))) }
        }
        return try found.map { (guest) throws(StoreError) in
            EndedGuest(app: try .stored(guest.app), user: try .stored(guest.user))
        }
    }
}

extension GuestUse {
    /// Adds it to the guest's row, inside the open transaction.
    ///
    /// - Parameter time: of the changes, milliseconds since 1970.
    /// - Returns: false, and nothing is changed, when the guest was removed, has ended, or would exceed a bound.
    func write(at time: Int64, _ database: Database) throws(SQLiteError) -> Bool {
        try database.statement(
            """
            UPDATE guest SET deposits = deposits + ?3, bytes = bytes + ?4 WHERE user = ?1 AND app = ?2
                AND expires > ?5 AND deposits + ?3 <= deposits_max AND bytes + ?4 <= bytes_max
            """
        ).bind(1, user.text).bind(2, app.text).bind(3, deposits).bind(4, bytes).bind(5, time).run()
        return database.changedRows == 1
    }
}

extension SQLiteWriter {
    /// Removes guests that have ended, with their accounts, inside the open transaction.
    ///
    /// - Parameter now: milliseconds since 1970. A guest that has been removed meanwhile is left out.
    func end(_ guests: [EndedGuest], now: Int64) throws(SQLiteError) {
        for guest in guests {
            let isEnded = try database.statement("SELECT 1 FROM guest WHERE user = ?1 AND app = ?2 AND expires <= ?3")
                .bind(1, guest.user.text).bind(2, guest.app.text).bind(3, now).first { _ in true }
            if isEnded != nil { _ = try AccountRows.remove(guest.user.text, in: guest.app.text, now: now, database) }
        }
    }
}
