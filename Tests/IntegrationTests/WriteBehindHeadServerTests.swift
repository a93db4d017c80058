import Synchronization
import Testing
import ThicketPlatform
import ThicketProtocol
import ThicketSQLite
import ThicketServer
import ThicketTestServer

/// A server whose table of heads refuses them (decision 0008): clients notice nothing, and the operator does.
@Suite("A table that refuses heads") struct WriteBehindHeadServerTests {
    /// The lines of a log.
    private final class Lines: LogSink {
        private let lines = Mutex<[String]>([])
        func write(_ line: [UInt8]) { lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
        func count(_ event: String) -> Int { lines.withLock { $0.count { $0.contains("event=\(event) ") } } }
    }

    private func run(_ sql: String, _ path: String) throws {
        let database = try Database(path: path, mode: .readWrite, busyTimeoutMilliseconds: 10_000)
        try database.execute(sql)
    }

    @Test("changes continue, the log reports it at most once a minute, and heads are written once accepted")
    func untaken() throws {
        let (folder, lines): (String, Lines) = (try TemporaryFolder.make(), .init())
        defer { TemporaryFolder.remove(folder) }
        let path = "\(folder)/thicket.db"
        let store = try SQLiteStore(path: path)
        let app = try AppID("app")
        let admin = try StoreAdmin(path: path)
        _ = try admin.createApp(app, now: 0)
        let grant = TokenGrant(app: app, user: try UserID("ann@example.com"), isReadOnly: false)
        _ = try admin.importTokens([ImportedToken(grant: grant, token: "ann-token")], now: 0)
        try run("CREATE TRIGGER broken BEFORE INSERT ON ent BEGIN SELECT RAISE(ABORT, 'no heads'); END", path)

        let begun = SystemClock.steadyTime()
        let server = try TestServer(store: store, log: Log(sink: lines, idKey: []))
        defer { server.stop() }
        let ann = try server.client("ann")
        for number in 0..<5 {
            #expect(try ann.ask(edit("k\(number)", "c\(number)", to: "x")).ccids == ["c\(number)"])
        }
        // Maintenance tries after a second without changes, and then each second.
        let tries = server.metrics.maintenanceSeconds.count
        #expect(waitUntil { server.metrics.maintenanceSeconds.count >= tries + 3 })
        #expect(waitUntil { lines.count("store.heads_failed") > 0 })
        #expect(lines.count("store.maintenance_failed") == 0)
        #expect(store.writeBehindHeadCount == 5)
        #expect(try ann.ask(edit("late", "l1", to: "x")).ccids == ["l1"])
        #expect(try ann.ask("0:e:k3.1").contains("\"x\""))

        try run("DROP TRIGGER broken", path)
        #expect(waitUntil { store.writeBehindHeadCount == 0 })
        // Once a minute.
        #expect(lines.count("store.heads_failed") <= 1 + Int((SystemClock.steadyTime() - begun) / .seconds(60)))
        #expect(try StoreCheck.run(path).findings == [])
    }
}
