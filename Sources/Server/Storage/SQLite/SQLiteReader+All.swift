import ThicketProtocol
import ThicketSQLite

// Changes in all users' buckets of one name, for administrators.
extension SQLiteReader {
    final func floor(ofAll name: BucketName, in app: AppID) throws(StoreError) -> GlobalID {
        try storing("reading the buckets") { () throws(SQLiteError) in
            try database.statement("SELECT max(floor) FROM bucket WHERE app = ?1 AND name = ?2")
                .bind(1, app.text).bind(2, name.text).first { $0.integer(0) } ?? 0
        }
    }

    final func changes(
        ofAll name: BucketName, in app: AppID, after: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> WidePage {
        try reading { () throws(StoreError) in
            let end = try lastGlobalID()
            let upTo = min(end, after + GlobalID(WidePage.positionsMax))
            var found = [(gid: GlobalID, user: String)]()
            try storing("reading the log") { () throws(SQLiteError) in
                // CROSS JOIN fixes the order of the loops: along the log, with a look-up of each row's bucket.
                try database.statement(
                    """
                    SELECT c.gid, b.owner FROM chg AS c CROSS JOIN bucket AS b
                    WHERE c.gid > ?1 AND c.gid <= ?2 AND b.id = c.b AND b.app = ?3 AND b.name = ?4
                        AND NOT EXISTS (SELECT 1 FROM erasure AS e WHERE e.app = b.app AND e.user = b.owner)
                    ORDER BY c.gid LIMIT ?5
                    """
                ).bind(1, after).bind(2, upTo).bind(3, app.text).bind(4, name.text).bind(5, Int64(limit))
                    .forEach { (row) throws(SQLiteError) in found.append((row.integer(0), row.text(1))) }
            }
            var changes = [WideChange]()
            var bytes = 0
            for (gid, user) in found where bytes < byteLimit {
                guard let change = try changeRecord(gid) else { continue }
                bytes += change.diff.count
                changes.append(WideChange(change: change, user: try .stored(user)))
            }
            let isWhole = changes.count == found.count && found.count < limit
            return WidePage(
                changes: changes, through: isWhole ? upTo : changes.last?.change.gid ?? upTo,
                isAtEnd: isWhole && upTo == end)
        }
    }

    final func name(of user: UserID, in app: AppID) throws(StoreError) -> UserID? {
        let text = try storing("looking for an account") { () throws(SQLiteError) in
            try database.statement("SELECT name FROM account WHERE user = ?1 AND app = ?2")
                .bind(1, user.text).bind(2, app.text).first { $0.text(0) }
        }
        return text.flatMap { try? UserID($0) }
    }
}
