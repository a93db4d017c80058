import Testing
import ThicketProtocol

@testable import ThicketServer

@Suite("Store administration") struct StoreAdminTests {
    private let now: Int64 = 1_700_000_000_000

    @Test("apps and tokens created beside an open server are visible to its readers at once")
    func seenAtOnce() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let reader: any StoreReader = try store.makeReader()
        let app = try AppID("notes")
        #expect(try !reader.hasApp(app))
        let admin = try StoreAdmin(path: store.path, settings: .testing)
        #expect(try admin.createApp(app, now: now))
        #expect(try !admin.createApp(app, now: now))
        #expect(try reader.hasApp(app))
        let grant = TokenGrant(app: app, user: try UserID("ann@example.com"), isReadOnly: true)
        let token: String = try admin.createToken(grant, now: now)
        #expect(token.utf8.count == 32)
        #expect(try reader.grant(tokenHash: StoreAdmin.hash(ofToken: token)) == grant)
        #expect(try reader.grant(tokenHash: StoreAdmin.hash(ofToken: token + "0")) == nil)
        #expect(try admin.removeToken(token))
        #expect(try reader.grant(tokenHash: StoreAdmin.hash(ofToken: token)) == nil)
    }

    @Test("the files hold no token in clear")
    func onlyHashes() throws {
        let folder = StoreFolder()
        let admin = try StoreAdmin(path: folder.path("thicket.db"), settings: .testing)
        try admin.createApp(AppID("notes"), now: now)
        let grant = TokenGrant(app: try AppID("notes"), user: try UserID("ann"), isReadOnly: false)
        let token: String = try admin.createToken(grant, now: now)
        for name in folder.names {
            let bytes: [UInt8] = try folder.bytes(name)
            #expect(!contains(bytes, Array(token.utf8)), "\(name)")
        }
    }

    @Test("the files of a store and of a backup have mode 0600")
    func privateFiles() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let writer: any StoreWriter = try store.makeWriter()
        _ = try StoreBackup.run(from: store.path, to: folder.path("copy.db"), settings: .testing)
        #expect(folder.names == ["copy.db", "thicket.db", "thicket.db-shm", "thicket.db-wal"])
        for name in folder.names { #expect(try folder.rights(name) == 0o600, "\(name)") }
        #expect(try writer.lastGlobalID() == 0)
    }

    @Test("an import is applied whole or not at all, and may be repeated")
    func imports() throws {
        let folder = StoreFolder()
        let admin = try StoreAdmin(path: folder.path("thicket.db"), settings: .testing)
        let app = try AppID("notes")
        try admin.createApp(app, now: now)
        let ann = TokenGrant(app: app, user: try UserID("ann"), isReadOnly: false)
        let bob = TokenGrant(app: app, user: try UserID("bob"), isReadOnly: false)
        let good: [ImportedToken] = [.init(grant: ann, token: "a"), .init(grant: bob, token: "b")]
        #expect(try admin.importTokens(good, now: now) == 2)
        #expect(try admin.importTokens(good, now: now) == 0)
        #expect(throws: StoreAdminError.tokenTaken(place: 1)) {
            try admin.importTokens([.init(grant: ann, token: "c"), .init(grant: ann, token: "b")], now: now)
        }
        let other = TokenGrant(app: try AppID("other"), user: try UserID("ann"), isReadOnly: false)
        #expect(throws: StoreAdminError.unknownApp(other.app)) {
            try admin.importTokens([.init(grant: ann, token: "d"), .init(grant: other, token: "e")], now: now)
        }
        #expect(throws: StoreAdminError.badToken(place: 0)) {
            try admin.importTokens([.init(grant: ann, token: "")], now: now)
        }
        let reader: any StoreReader = try SQLiteStore(path: folder.path("thicket.db")).makeReader()
        for token: String in ["c", "d"] { #expect(try reader.grant(tokenHash: StoreAdmin.hash(ofToken: token)) == nil) }
    }

    @Test("a file of another program is refused")
    func foreignFile() throws {
        let folder = StoreFolder()
        try folder.run("CREATE TABLE t (a); INSERT INTO t VALUES (1)", in: "thicket.db")
        let error: StoreError? = #expect(throws: StoreError.self) {
            try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        }
        #expect(error?.kind == .schema)
        try folder.write(Array("this is no database at all, but long enough to look".utf8), to: "text.db")
        let second: StoreError? = #expect(throws: StoreError.self) {
            try SQLiteStore(path: folder.path("text.db"), settings: .testing)
        }
        #expect(second?.kind == .corrupt)
    }

    @Test("a store of a later schema is refused")
    func laterSchema() throws {
        let folder = StoreFolder()
        _ = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        try folder.run("PRAGMA user_version = 99", in: "thicket.db")
        let error: StoreError? = #expect(throws: StoreError.self) {
            try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        }
        #expect(error?.kind == .newer)
    }

    @Test("packed ccids decode to the original text")
    func packedChangeIDs() throws {
        let texts: [(String, Int?)] = [
            ("0123456789abcdef0123456789abcdef", 16), ("01234567-89ab-cdef-0123-456789abcdef", 17),
            ("0123456789ABCDEF0123456789abcdef", nil), ("01234567-89AB-cdef-0123-456789abcdef", nil),
            ("0123456789abcdef0123456789abcde", nil), ("0123456-789ab-cdef-0123-456789abcdef", nil),
            ("x", nil), (String(repeating: "f", count: 256), nil),
        ]
        for (text, length) in texts {
            let packed = PackedChangeID(try ChangeID(text))
            #expect(packed.changeIDText == text)
            if case .bytes(let bytes) = packed { #expect(bytes.count == length) } else { #expect(length == nil) }
        }
    }

    @Test("SipHash gives the published value")
    func sipHash() {
        // Aumasson and Bernstein, "SipHash: a fast short-input PRF", appendix A.
        let message: [UInt8] = Array(0..<15)
        let hash: UInt64 = message.withUnsafeBytes { SipHash.hash(key: Array(0..<16), $0) }
        #expect(hash == 0xa129_ca61_49be_45e5)
    }

    private func contains(_ bytes: [UInt8], _ wanted: [UInt8]) -> Bool {
        guard bytes.count >= wanted.count else { return false }
        return (0...bytes.count - wanted.count).contains {
            bytes[$0] == wanted[0] && Array(bytes[$0..<$0 + wanted.count]) == wanted
        }
    }
}
