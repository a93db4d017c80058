import Testing
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol

@testable import ThicketServer

/// What operators' commands do with key logs, on the folder of a real server.
@Suite("Key log: operators")
struct KeyLogAdminTests {
    /// A folder with two users in the log of `notes`, whose server has stopped after giving out a head.
    private static func folder() throws -> KeyLogServer {
        let bench = try KeyLogServer()
        let token = try bench.token(of: KeyLogServer.Person("ann", 2))
        _ = try bench.token(of: KeyLogServer.Person("bob", 3))
        #expect(try bench.ask("GET", "keylog/head", token: token).status == 200)
        bench.stop()
        return bench
    }

    private static func export(_ bench: KeyLogServer) throws -> KeyLogExport {
        let key = try LogKey.load(bench.folder + "/keylog.key").key(of: "notes").verifyingKey
        return try KeyLogAdmin(path: bench.path).export("notes", key: key)
    }

    @Test("an exported log is verified without the folder, and each change of it is found")
    func exported() throws {
        let bench = try Self.folder()
        let export = try Self.export(bench)
        #expect(export.findings.isEmpty && export.entries.count == 4)
        let admin = try KeyLogAdmin(path: bench.path)
        #expect(try admin.hasApp("notes"))
        #expect(try !admin.hasApp("other"))
        let text = export.lines.joined(separator: "\n")
        #expect(KeyLogExport(Array(text.utf8)) == export)
        #expect(KeyLogExport(Array(text.utf8.dropLast(500))) == nil, "cut short")
        var swapped = export.entries
        swapped.swapAt(0, 2)
        var forged = export.entries
        forged[1][forged[1].count - 5] ^= 1
        for entries in [swapped, forged, Array(export.entries.dropLast())] {
            let other = KeyLogExport(
                app: "notes", key: export.key, head: export.head, rotations: [], entries: entries)
            #expect(!other.findings.isEmpty)
        }
        let otherKey = KeyLogExport(
            app: "notes", key: Ed25519.SigningKey.random().verifyingKey.octets, head: export.head, rotations: [],
            entries: export.entries)
        #expect(!otherKey.findings.isEmpty)
    }

    @Test("a replaced log key is stated for each app, devices can follow it, and the old file did not sign the logs")
    func rotation() throws {
        let bench = try Self.folder()
        let path = bench.folder + "/keylog.key"
        let old = try LogKey.load(path)
        let report = try LogKeyChange.run(path, database: bench.path, now: bench.clock.now)
        #expect(report.apps == 2)
        let new = try LogKey.load(path)
        let export = try Self.export(bench)
        #expect(export.findings.isEmpty && export.rotations.count == 1)
        let statement = try LogKeyRotation(export.rotations[0])
        try statement.check(app: "notes", trusted: old.key(of: "notes").verifyingKey)
        #expect(statement.new == new.key(of: "notes").verifyingKey)
        let admin = try KeyLogAdmin(path: bench.path)
        #expect(try admin.isForeign(old))
        #expect(try !admin.isForeign(new))
        let again = try KeyLogServer(after: bench)
        defer { again.stop() }
        let token = try again.token(of: KeyLogServer.Person("cem", 4))
        let answer = try again.ask("GET", "keylog/head", token: token)
        #expect(try answer.bytes("key") == statement.new.octets)
        #expect(answer.object?["rotations"]?.arrayValue?.count == 1)
    }

    @Test("a change of the log key that was interrupted before its commit is undone, once")
    func interrupted() throws {
        let bench = try Self.folder()
        let path = bench.folder + "/keylog.key"
        let before = try LogKey.load(path).key(of: "notes").verifyingKey
        // Before the commit: only the new file is there.
        _ = try LogKey.load(LogKeyChange.fresh(path))
        #expect(try LogKeyChange.finishInterrupted(path, database: bench.path) == false)
        #expect(try LogKey.load(path).key(of: "notes").verifyingKey == before)
        #expect(try LogKeyChange.finishInterrupted(path, database: bench.path) == nil)
    }
}
