import ThicketCrypto
import ThicketProtocol
import ThicketSQLite
import ThicketTree
import ThicketTreeShape

/// What the store keeps of messages.
extension TreeStore {
    /// Added to the tables of version 1:
    ///
    /// - `operation.receiver`, `conversation`: of operations on trees of others (`MessageTarget`).
    /// - `node.origin`: what is known of a message's author (`MessageOrigin`).
    /// - `awaiting`: nodes that are not verified, because keys of their author are not known; `baseline` for those of
    ///   the first reading of the tree.
    /// - `chain`: what was received of each device of an author in a conversation (`OriginChain`).
    /// - `chain_gap`: messages behind which numbers are missing.
    /// - `fork`: statements that contradict each other, as evidence.
    /// - `own_chain`: the last answered statement of this device in a conversation, and the one in flight.
    /// - `delivery`: which node was delivered to whom.
    /// - `digest`: SHA-256 of sealed contents in blobs.
    static let messageSchema = """
        ALTER TABLE operation ADD COLUMN receiver TEXT;
        ALTER TABLE operation ADD COLUMN conversation BLOB;
        ALTER TABLE node ADD COLUMN origin BLOB;
        CREATE TABLE awaiting (
            node BLOB PRIMARY KEY, user TEXT NOT NULL, key TEXT NOT NULL, baseline INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE chain (name BLOB PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE chain_gap (
            name BLOB NOT NULL, counter INTEGER NOT NULL, first INTEGER NOT NULL, node BLOB NOT NULL,
            PRIMARY KEY (name, counter)) WITHOUT ROWID;
        CREATE TABLE fork (
            name BLOB NOT NULL, counter INTEGER NOT NULL, known BLOB NOT NULL, other BLOB NOT NULL,
            statement BLOB NOT NULL, PRIMARY KEY (name, counter, known, other)) WITHOUT ROWID;
        CREATE TABLE own_chain (
            conversation BLOB PRIMARY KEY, counter INTEGER NOT NULL, hash BLOB NOT NULL, next_counter INTEGER,
            next_hash BLOB) WITHOUT ROWID;
        CREATE TABLE delivery (
            node BLOB NOT NULL, receiver TEXT NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (node, receiver)
        ) WITHOUT ROWID;
        CREATE TABLE digest (data BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;
        """

    // MARK: - Nodes that wait for keys

    func setAwaiting(_ id: NodeID, _ question: KeyQuestion, isBaseline: Bool) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR IGNORE INTO awaiting (node, user, key, baseline) VALUES (?1, ?2, ?3, ?4)")
                .bind(1, id.octets).bind(2, question.user.text).bind(3, question.keyID ?? "")
                .bind(4, isBaseline ? 1 : 0).run()
        }
    }

    /// - Returns: whether the node is one of the first reading; nil when it does not wait.
    func awaitsSinceBaseline(_ id: NodeID) throws(TreeError) -> Bool? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT baseline FROM awaiting WHERE node = ?1").bind(1, id.octets)
                .first { $0.integer(0) != 0 }
        }
    }

    func endAwaiting(_ id: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("DELETE FROM awaiting WHERE node = ?1").bind(1, id.octets).run()
        }
    }

    func awaiting() throws(TreeError) -> [KeyQuestion: Set<NodeID>] {
        try sql { (database) throws(SQLiteError) in
            var found = [KeyQuestion: Set<NodeID>]()
            try database.statement("SELECT node, user, key FROM awaiting").forEach { row in
                guard let id = NodeID(octets: row.bytes(0)), let user = try? UserID(row.text(1)) else { return }
                found[KeyQuestion(user, keyID: row.text(2)), default: []].insert(id)
            }
            return found
        }
    }

    /// Messages in the inbox that are not shown because they are not verified yet.
    package func awaitingCount() throws(TreeError) -> Int {
        Int(
            try sql { (database) throws(SQLiteError) in
                try database.integer("SELECT count(*) FROM node WHERE state <> 0 AND state = 5") ?? 0
            })
    }

    // MARK: - Chains of authors

    func chain(_ name: [UInt8]) throws(TreeError) -> OriginChain {
        let octets = try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT state FROM chain WHERE name = ?1").bind(1, name).first { $0.bytes(0) }
        }
        return octets.flatMap { OriginChain(octets: $0) } ?? OriginChain()
    }

    func setChain(_ name: [UInt8], _ chain: OriginChain) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR REPLACE INTO chain (name, state) VALUES (?1, ?2)")
                .bind(1, name).bind(2, chain.octets).run()
        }
    }

    /// Numbers from `first` on are missing before the message with this number.
    func setGap(_ name: [UInt8], before counter: UInt64, from first: UInt64, _ node: NodeID) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement(
                "INSERT OR REPLACE INTO chain_gap (name, counter, first, node) VALUES (?1, ?2, ?3, ?4)"
            ).bind(1, name).bind(2, Int64(counter)).bind(3, Int64(first)).bind(4, node.octets).run()
        }
    }

    /// The message behind the gap in which a number is.
    func gap(
        _ name: [UInt8], around counter: UInt64
    ) throws(TreeError) -> (node: NodeID, numbers: Range<UInt64>)? {
        try sql { (database) throws(SQLiteError) in
            try database.statement(
                """
                SELECT node, first, counter FROM chain_gap WHERE name = ?1 AND counter > ?2 AND first <= ?2
                ORDER BY counter LIMIT 1
                """
            ).bind(1, name).bind(2, Int64(counter)).first { row in
                NodeID(octets: row.bytes(0)).map { ($0, UInt64(row.integer(1))..<UInt64(row.integer(2))) }
            } ?? nil
        }
    }

    func keepFork(_ name: [UInt8], _ fork: OriginFork, _ statement: [UInt8]) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement(
                "INSERT OR IGNORE INTO fork (name, counter, known, other, statement) VALUES (?1, ?2, ?3, ?4, ?5)"
            ).bind(1, name).bind(2, Int64(fork.counter)).bind(3, fork.known.bytes).bind(4, fork.other.bytes)
                .bind(5, statement).run()
        }
    }

    // MARK: - The chains of this device

    func ownLink(_ conversation: ConversationID) throws(TreeError) -> AuthorChains.Link? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT counter, hash FROM own_chain WHERE conversation = ?1 AND counter > 0")
                .bind(1, conversation.octets).first { row in
                    Digest256(row.bytes(1)).map { AuthorChains.Link(counter: UInt64(row.integer(0)), hash: $0) }
                } ?? nil
        }
    }

    /// Notes the statements of the request in flight.
    func setOwnNext(_ chains: AuthorChains) throws(TreeError) {
        for (conversation, link) in chains.links {
            try sql { (database) throws(SQLiteError) in
                try database.statement(
                    """
                    INSERT INTO own_chain (conversation, counter, hash, next_counter, next_hash)
                    VALUES (?1, 0, ?4, ?2, ?3)
                    ON CONFLICT (conversation) DO UPDATE SET next_counter = ?2, next_hash = ?3
                    """
                ).bind(1, conversation.octets).bind(2, Int64(link.counter)).bind(3, link.hash.bytes)
                    .bind(4, Digest256.zero.bytes).run()
            }
        }
    }

    /// The request in flight was answered.
    ///
    /// - Parameter isMade: whether its statements count.
    func endOwnNext(isMade: Bool) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            if isMade {
                try database.statement(
                    "UPDATE own_chain SET counter = next_counter, hash = next_hash WHERE next_counter IS NOT NULL"
                ).run()
            }
            try database.statement(
                "UPDATE own_chain SET next_counter = NULL, next_hash = NULL WHERE next_counter IS NOT NULL"
            ).run()
        }
    }

    // MARK: - Deliveries and digests

    func setDelivered(_ node: NodeID, to receiver: UserID, at time: Int64) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR REPLACE INTO delivery (node, receiver, time) VALUES (?1, ?2, ?3)")
                .bind(1, node.octets).bind(2, receiver.text).bind(3, time).run()
        }
    }

    package func delivered(_ node: NodeID) throws(TreeError) -> [(receiver: UserID, time: Int64)] {
        try sql { (database) throws(SQLiteError) in
            var found = [(receiver: UserID, time: Int64)]()
            try database.statement("SELECT receiver, time FROM delivery WHERE node = ?1 ORDER BY receiver")
                .bind(1, node.octets).forEach { row in
                    if let user = try? UserID(row.text(0)) { found.append((user, row.integer(1))) }
                }
            return found
        }
    }

    func digest(_ data: DataID) throws(TreeError) -> Digest256? {
        try sql { (database) throws(SQLiteError) in
            try database.statement("SELECT digest FROM digest WHERE data = ?1").bind(1, data.octets)
                .first { Digest256($0.bytes(0)) } ?? nil
        }
    }

    package func setDigest(_ data: DataID, _ digest: [UInt8]) throws(TreeError) {
        try sql { (database) throws(SQLiteError) in
            try database.statement("INSERT OR REPLACE INTO digest (data, digest) VALUES (?1, ?2)")
                .bind(1, data.octets).bind(2, digest).run()
        }
    }
}
