import Glibc
import Testing
import ThicketCrypto
import ThicketFaultDisk
@testable import ThicketPlatform
import ThicketProtocol
import ThicketSQLite

@testable import ThicketAuth
@testable import ThicketServer

/// Replacing the server's key file: wherever it is interrupted, one of the two files opens everything.
@Suite("Key file rotation")
struct KeyRotationTests {
    /// A database with one of everything that a key file seals or hashes.
    private final class Bench {
        let folder: StoreFolder
        var key: String { folder.path("server.key") }
        var database: String { folder.path("thicket.db") }

        init(_ folder: StoreFolder = .init()) { self.folder = folder }

        /// Opens the key file as a server does.
        func own() throws -> ServerKey {
            let key: ServerKey = try #require(try ServerKey.read(key))
            return try #require(try ServerKeyMark.claim(key, path: database), "the key file is another one")
        }
    }

    private static let apiKey = "72278fb2-34a0-7058-b26f"
    private static let authKeys: [String] = ["a", "b"].map { String(repeating: $0, count: 64) }
    private static let secret = [UInt8](repeating: 7, count: 32)
    private static let words = [UInt8](repeating: 8, count: 32)
    private static let code: [UInt8] = Array("a code".utf8)
    private static let nobody: [UInt8] = Array("nobody".utf8)

    private func filled() throws -> Bench {
        let bench = Bench()
        let key: ServerKey = try .load(bench.key)
        let partners = try PartnerAdmin(path: bench.database, key: key, settings: .testing)
        try partners.add(id: "12", apiKey: Self.apiKey, authKey: Self.authKeys[0], now: 1)
        _ = try partners.rotate(id: "12", authKey: Self.authKeys[1], now: 2)
        let accounts = try AccountStore(path: bench.database, settings: .testing)
        let secrets: AccountSecrets = key.accountSecrets
        let proof = Account.KeyProof(
            stretch: .init(salt: .init(repeating: 1, count: 16)), verifier: secrets.verifier(Self.secret),
            recovery: secrets.verifier(Self.words), access: [1])
        let token = NewToken(hash: [1], created: 1, expires: nil, device: "")
        #expect(
            try accounts.add(
                Account(user: "u1", app: "notes", name: "Ann", proof: .key(proof)), bundle: nil, token: token, now: 1))
        let sent: Account.Proof = .password(salt: [2], hash: [3])
        let second = NewToken(hash: [2], created: 1, expires: nil, device: "")
        #expect(
            try accounts.add(
                Account(user: "u2", app: "notes", name: "Bob", proof: sent), bundle: nil, token: second, now: 1))
        #expect(try accounts.keep(code: secrets.verifier(Self.code), of: "u1", now: 1))
        let bundle = EntityBundle(
            bundle: Bundle(version: 1, content: [9]), recovery: secrets.verifier(Self.words), wrap: nil)
        #expect(try PartnerStore(path: bench.database, key: key).put(bundle, of: "e1", in: "shop"))
        return bench
    }

    @Test("every column with keyed data is known to the key rotation or needs no rotation")
    func columns() throws {
        let bench: Bench = try filled()
        let database = try Database(path: bench.database)
        var found: [String] = []
        try database.prepare(
            """
            SELECT t.name || '.' || c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
            WHERE t.type = 'table' AND c.name IN ('sealed', 'api_key', 'verifier', 'recovery', 'code') ORDER BY 1
            """
        ).forEach { (row: Statement) throws(SQLiteError) in found.append(row.text(0)) }
        let resealed: [String] = [
            "account.recovery", "account.verifier", "account_code.code", "entity_bundle.recovery", "partner.api_key",
            "partner_key.sealed", "reset_code.code",
        ]
        // scrypt hashes with their own salt.
        let apart: [String] = ["credential.verifier", "old_login.verifier"]
        #expect(found == (resealed + apart).sorted(), "a keyed column must be known to KeyReseal")
    }

    /// Everything that the first key file sealed opens under the current one, `rotations` files later.
    private func expectAll(_ bench: Bench, rotations: Int, like first: ServerKey) throws {
        let key: ServerKey = try bench.own()
        #expect(key.keyHistory.peppers.count == rotations + 1)
        let partner: Partner? = try PartnerStore(path: bench.database, key: key).partner(apiKey: Self.apiKey)
        #expect(partner == Partner(id: "12", authKeys: Self.authKeys.reversed().map { Array($0.utf8) }))
        #expect(try PartnerAdmin(path: bench.database, key: key).list().first?.apiKey == Self.apiKey)
        let accounts = try AccountStore(path: bench.database, settings: .testing)
        guard case .key(let proof)? = try accounts.account("u1", in: "notes")?.proof else {
            Issue.record("Ann has no key")
            return
        }
        let secrets: AccountSecrets = key.accountSecrets
        #expect(proof.verifier == secrets.verifier(Self.secret) && proof.recovery == secrets.verifier(Self.words))
        #expect(
            try PartnerStore(path: bench.database, key: key).bundle(of: "e1", in: "shop")?.recovery
                == secrets.verifier(Self.words))
        #expect(try accounts.account("u2", in: "notes")?.proof == .password(salt: [2], hash: [3]))
        #expect(secrets.pretence(Self.nobody) == first.accountSecrets.pretence(Self.nobody), "no account: as before")
        let copy = Bench(bench.folder.copied())
        #expect(
            try AccountStore(path: copy.database, settings: .testing).redeem(
                code: secrets.verifier(Self.code), of: "u1", now: 2))
        try PartnerAdmin(path: bench.database, key: key).setEnabled(true, id: "12")
    }

    @Test(
        "everything that a key file sealed opens under each of three later ones and no longer under the old one")
    func rotation() throws {
        let bench: Bench = try filled()
        let first: ServerKey = try bench.own()
        for number: Int in 1...3 {
            let before: ServerKey = try bench.own()
            let report: KeyRotation.Report = try KeyRotation.inPlace(bench.key, database: bench.database)
            #expect(report.replaced == bench.key + ".replaced-\(number)")
            #expect(report.resealed == KeyReseal.Report(apiKeys: 1, authKeys: 2, accounts: 1, unopened: 0))
            try expectAll(bench, rotations: number, like: first)
            #expect(try PartnerStore(path: bench.database, key: before).partner(apiKey: Self.apiKey) == nil)
            #expect(try PartnerStore(path: bench.database, key: before).partner(ofApp: "notes") == nil)
            #expect(try ServerKey.read(report.replaced)?.mark == before.mark, "it is kept for older backups")
            #expect(try bench.folder.rights("server.key") == 0o600)
        }
        #expect(bench.folder.names.filter { $0.contains("server.key") }.count == 4)
    }

    @Test("data sealed with the old key file does not stay in the database's files")
    func nothingStays() throws {
        let bench: Bench = try filled()
        let sealed: [UInt8] = try {
            let database = try Database(path: bench.database)
            return try #require(try PartnerRow.all(database).first?.sealedAPIKey)
        }()
        #expect(try Self.holds(bench, sealed), "the search finds it before the rotation")
        _ = try KeyRotation.inPlace(bench.key, database: bench.database)
        #expect(try !Self.holds(bench, sealed))
    }

    private static func holds(_ bench: Bench, _ part: [UInt8]) throws -> Bool {
        let names: [String] = bench.folder.names.filter { $0.hasPrefix("thicket.db") && !$0.hasSuffix("-shm") }
        return try names.contains { Self.text(try bench.folder.bytes($0)).contains(Self.text(part)) }
    }

    private static func text(_ bytes: [UInt8]) -> String { Hex.encode(bytes) }

    @Test("after an interruption between two steps the old key file is valid, or the next start installs the new one")
    func everyStop() throws {
        let bench: Bench = try filled()
        let first: ServerKey = try bench.own()
        var stops: [StoreFolder] = []
        _ = try KeyRotation.inPlace(bench.key, database: bench.database) { stops.append(bench.folder.copied()) }
        var outcomes: [String] = []
        for stop in stops {
            let bench = Bench(stop)
            #expect(stop.names.contains("server.key"), "a key file exists at each moment")
            let outcome: KeyRotation.Interrupted? = try KeyRotation.finishInterrupted(
                bench.key, database: bench.database)
            #expect(!KeyRotation.isUnderWay(bench.key))
            #expect(try KeyRotation.finishInterrupted(bench.key, database: bench.database) == nil)
            switch outcome {
            case .finished(let replaced):
                outcomes.append("finished")
                #expect(replaced == bench.key + ".replaced-1")
                #expect(!stop.names.contains("server.key.replaced-2"))
            case .undone: outcomes.append("undone")
            case nil: outcomes.append("nothing to do")
            }
            let isNew: Bool = try bench.own().mark != first.mark
            try expectAll(bench, rotations: isNew ? 1 : 0, like: first)
            _ = try KeyRotation.inPlace(bench.key, database: bench.database)
            try expectAll(bench, rotations: isNew ? 2 : 1, like: first)
        }
        #expect(outcomes == ["nothing to do", "undone", "finished", "finished", "nothing to do"])
    }

    @Test("a power cut at any disk call leaves a key file that opens everything", arguments: 0..<24)
    func everyPowerCut(point: Int) throws {
        let bench: Bench = try filled()
        let first: ServerKey = try bench.own()
        let disk = FaultVFS(name: "key-power-\(point)")
        var settings: StoreSettings = .testing
        settings.vfs = disk.name
        settings.mappedBytes = 0
        disk.fail(FaultRule(.change, .crash, skipping: point))
        let isDone: Bool =
            (try? KeyRotation.inPlace(bench.key, database: bench.database, settings: settings)) != nil
        disk.heal()
        disk.restart()
        let outcome: KeyRotation.Interrupted? = try KeyRotation.finishInterrupted(
            bench.key, database: bench.database, settings: settings)
        #expect(!isDone || outcome == nil)
        #expect(!KeyRotation.isUnderWay(bench.key))
        let isNew: Bool = try bench.own().mark != first.mark
        #expect(!isDone || isNew, "a reported rotation is in effect")
        try expectAll(bench, rotations: isNew ? 1 : 0, like: first)
    }

    @Test("after a failed disk call the rotation did not happen or is finished later", arguments: 0..<6)
    func everyFailure(point: Int) throws {
        let bench: Bench = try filled()
        let first: ServerKey = try bench.own()
        let count = Counter("calls", "")
        var settings: StoreSettings = .testing
        settings.fileFault = { _, _ in
            count.add()
            return count.value == point + 1 ? EIO : 0
        }
        let isDone: Bool =
            (try? KeyRotation.inPlace(bench.key, database: bench.database, settings: settings)) != nil
        #expect(isDone == (count.value <= point), "a failed call is reported")
        _ = try KeyRotation.finishInterrupted(bench.key, database: bench.database)
        try expectAll(bench, rotations: try bench.own().mark == first.mark ? 0 : 1, like: first)
    }

    @Test(
        "a key in another path takes over, the old file stays untouched, and the same call again changes nothing")
    func toAnotherPlace() throws {
        let bench: Bench = try filled()
        let first: ServerKey = try bench.own()
        let other: String = bench.folder.path("other.key")
        let report: KeyReseal.Report? = try KeyRotation.to(other, from: bench.key, database: bench.database)
        #expect(report?.apiKeys == 1)
        #expect(try KeyRotation.to(other, from: bench.key, database: bench.database) == nil)
        #expect(try ServerKey.read(bench.key)?.mark == first.mark)
        #expect(try ServerKeyMark.claim(first, path: bench.database) == nil)
        #expect(rename(other, bench.key) == 0)
        try expectAll(bench, rotations: 1, like: first)
    }

    @Test("with a foreign key file neither rotation nor any partner command changes anything")
    func foreign() throws {
        let bench: Bench = try filled()
        let first: ServerKey = try bench.own()
        #expect(rename(bench.key, bench.key + ".away") == 0)
        let foreign: ServerKey = try .load(bench.key)
        #expect(throws: KeyChangeError.foreign(path: bench.key)) {
            try KeyRotation.inPlace(bench.key, database: bench.database)
        }
        #expect(!KeyRotation.isUnderWay(bench.key))
        let admin = try PartnerAdmin(path: bench.database, key: foreign)
        #expect(admin.isKeyForeign)
        let good = String(repeating: "k", count: 64)
        let attempts: [(String, () throws -> Void)] = [
            ("create", { _ = try admin.create(id: nil, now: 3) }),
            ("add", { try admin.add(id: "77", apiKey: "another-key", authKey: good, now: 3) }),
            ("rotate", { _ = try admin.rotate(id: "12", authKey: nil, now: 3) }),
            ("finish", { try admin.dropOld(id: "12") }), ("disable", { try admin.setEnabled(false, id: "12") }),
            ("passwords", { try admin.setKeepsPasswords(true, id: "12") }),
            ("api-key", { _ = try admin.replaceAPIKey(id: "12", by: nil) }),
        ]
        for (name, attempt) in attempts {
            #expect(throws: PartnerAdminError.foreignKeyFile, "\(name)") { try attempt() }
        }
        #expect(try admin.list().map(\.apiKey) == [nil])
        #expect(try admin.list().map(\.authKeys) == [0])
        #expect(rename(bench.key + ".away", bench.key) == 0)
        try expectAll(bench, rotations: 0, like: first)
    }

    @Test(
        "abandoning a lost key file gives partners new keys, and the old file, found again, opens what it sealed"
    )
    func abandoned() throws {
        let bench: Bench = try filled()
        let first: ServerKey = try bench.own()
        #expect(try KeyRotation.abandonOld(bench.key, database: bench.database) == false, "nothing is lost")
        #expect(rename(bench.key, bench.key + ".away") == 0)
        #expect(try KeyRotation.abandonOld(bench.key, database: bench.database))
        let key: ServerKey = try bench.own()
        #expect(key.mark != first.mark)
        let admin = try PartnerAdmin(path: bench.database, key: key)
        #expect(try admin.list().map(\.apiKey) == [nil])
        let found = Bench(bench.folder.copied())
        #expect(rename(found.key + ".away", found.key) == 0)
        #expect(try KeyRotation.abandonOld(found.key, database: found.database))
        try expectAll(found, rotations: 0, like: first)
        #expect(try admin.replaceAPIKey(id: "12", by: Self.apiKey) == Self.apiKey)
        let made: String = try admin.rotate(id: "12", authKey: nil, now: 3)
        #expect(
            try PartnerStore(path: bench.database, key: key).partner(apiKey: Self.apiKey)
                == Partner(id: "12", authKeys: [Array(made.utf8)]))
        let report: KeyRotation.Report = try KeyRotation.inPlace(bench.key, database: bench.database)
        #expect(report.resealed.apiKeys == 1 && report.resealed.authKeys == 1 && report.resealed.unopened == 1)
    }

    @Test("a replaced API key no longer finds its partner, the new one does, and no two partners share a key")
    func apiKey() throws {
        let bench: Bench = try filled()
        let key: ServerKey = try bench.own()
        let admin = try PartnerAdmin(path: bench.database, key: key)
        let store = try PartnerStore(path: bench.database, key: key)
        let other: (id: String, apiKey: String, authKey: String) = try admin.create(id: nil, now: 3)
        #expect(throws: PartnerAdminError.apiKeyTaken) { try admin.replaceAPIKey(id: "12", by: other.apiKey) }
        #expect(throws: PartnerAdminError.badAPIKey) { try admin.replaceAPIKey(id: "12", by: "short") }
        #expect(throws: PartnerAdminError.unknownPartner("9")) { try admin.replaceAPIKey(id: "9", by: nil) }
        #expect(try store.partner(apiKey: Self.apiKey)?.id == "12")
        let made: String = try admin.replaceAPIKey(id: "12", by: nil)
        #expect(try store.partner(apiKey: made)?.authKeys.count == 2)
        #expect(try store.partner(apiKey: Self.apiKey) == nil)
        #expect(try admin.replaceAPIKey(id: "12", by: made) == made, "a partner may set its own key again")
    }
}
