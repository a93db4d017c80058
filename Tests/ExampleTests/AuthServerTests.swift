import Glibc
import Testing
import ThicketClient
import ThicketProcesses
import ThicketProtocol

/// The auth servers of `Examples/auth-server`, as they stand there, with a real thicketd and a session of the library.
@Suite("Examples: auth servers", .serialized, .timeLimit(.minutes(5)))
struct AuthServerTests {
    private static let folder: String =
        #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
        + "/Examples/auth-server/"
    private static let hasPyJWT: Bool = works(["/usr/bin/python3", "-c", "import jwt"])
    private static let hasTools: Bool = works(["/bin/sh", "-c", "command -v curl && command -v openssl"])
    /// Seconds that a token of the tests lives, by the clock of the machine.
    private static let lifetime: String = "2"

    private static func works(_ words: [String]) -> Bool { (try? ChildProcess.run(words))?.code == 0 }

    @Test(
        "Python with PyJWT: registered, logged in, synced, expired, renewed, logged out",
        .enabled(if: hasPyJWT, "PyJWT is missing: apt install python3-jwt, or ./dev setup --tests"))
    func python() async throws {
        let bench: Bench = try .init()
        let server: ChildProcess = try .init(
            ["/usr/bin/python3", Self.folder + "auth_server.py"],
            variables: [
                "THICKET_URL": bench.address, "PARTNER_API_KEY": bench.apiKey, "PARTNER_AUTH_KEY": bench.authKey,
                "TOKEN_SECONDS": Self.lifetime,
            ])
        let port: UInt16 = try #require(UInt16(try server.firstLine()))
        let login: @Sendable (String, String) throws -> JSONObject = { device, password in
            let answer: String = try PlainHTTP.post(
                port, "/login", #"{"user":"ada@example.com","password":"\#(password)","device_id":"\#(device)"}"#)
            guard answer.hasPrefix("HTTP/1.0 200"), let body: Substring = answer.split(separator: "\r\n\r\n").last,
                let object: JSONObject = try JSONValue(parsing: Array(body.utf8)).objectValue
            else { throw TokenDenied() }
            return object
        }
        #expect(throws: TokenDenied.self) { try login("d", "wrong horse") }
        let app: ThicketApp = try bench.app()
        let first: JSONObject = try login(app.deviceId, "correct horse")
        try await Self.use(
            app, entity: try #require(first["entity_id"]?.stringValue),
            token: try #require(first["access_token"]?.stringValue)
        ) { request in
            try login(request.deviceId, "correct horse")["access_token"]?.stringValue ?? ""
        }
        server.signal(SIGKILL)
        _ = try server.finish()
    }

    @Test(
        "shell with openssl: registered, logged in, synced, expired, renewed, logged out",
        .enabled(if: hasTools, "curl or openssl is missing: ./dev setup --tests"))
    func shell() async throws {
        let bench: Bench = try .init()
        try bench.write("auth.key", bench.authKey + "\n")
        let variables: [String: String] = [
            "THICKET_URL": bench.address, "PARTNER_API_KEY": bench.apiKey,
            "PARTNER_AUTH_KEY_FILE": bench.folder.path + "/auth.key", "TOKEN_SECONDS": Self.lifetime,
        ]
        let run: @Sendable ([String]) throws -> String = { words in
            let outcome: ChildProcess.Outcome = try ChildProcess.run(
                [Self.folder + "auth.sh"] + words, variables: variables)
            guard outcome.code == 0 else { throw ProcessError("auth.sh: \(outcome)") }
            return String(outcome.output.prefix { $0 != "\n" })
        }
        let entity: String = try run(["register", "bob@example.com"])
        #expect(try run(["register", "bob@example.com"]) == entity, "the same user again")
        #expect(throws: ProcessError.self) { try run(["register", #"bo"b"#]) }
        let app: ThicketApp = try bench.app()
        try await Self.use(app, entity: entity, token: try run(["login", "bob@example.com", entity, app.deviceId])) {
            request in try run(["login", "bob@example.com", request.entityId, request.deviceId])
        }
    }

    /// What an app does: syncs, lives through the end of its token, signs out.
    private static func use(
        _ app: ThicketApp, entity: String, token: String,
        renewing renew: @escaping @Sendable (TokenRequest) throws -> String
    ) async throws {
        struct Source: TokenSource {
            let renew: @Sendable (TokenRequest) throws -> String
            func token(for request: TokenRequest) async throws -> String { try renew(request) }
        }
        #expect(!entity.isEmpty && token.split(separator: ".").count == 3)
        let session: ClientSession = try await app.createSession(
            accessToken: token, entityId: entity, partnerId: "1000", tokens: Source(renew: renew))
        var events: AsyncStream<SessionEvent>.Iterator = await session.events.makeAsyncIterator()
        let notes: Bucket = try await session.bucket("notes")
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: .seconds(60))
        #expect(await events.next() == .expired)
        try await notes.set("a", to: ["n": 2])
        #expect(await events.next() == .renewed)
        try await notes.waitUntilSynced(timeout: .seconds(60))
        #expect(try await notes.info("a").version == 2)
        #expect(try await session.devices().map(\.isThisOne) == [true])
        #expect(await session.signOut())
        await session.close()
    }

    /// A real thicketd with a partner and an app of its own.
    private final class Bench {
        let folder: TemporaryFolder = .init("example")
        let daemon: Daemon
        let apiKey: String
        let authKey: String

        init() throws {
            let data: String = folder.path + "/data"
            mkdir(data, 0o700)
            let output: String = try Daemon.command(data, ["partner", "create"], succeeding: true).output
            func key(_ name: String) throws -> String {
                let line: Substring? = output.split(separator: "\n").first { $0.hasPrefix(name) }
                return String(try #require(line?.split(separator: " ").last, "\(output)"))
            }
            (apiKey, authKey) = (try key("api key"), try key("auth key"))
            #expect(try key("partner") == "1000")
            try Daemon.command(data, ["app", "create", "shop", "--partner", "1000"], succeeding: true)
            daemon = try Daemon(folder: data)
        }

        var address: String { "http://127.0.0.1:\(daemon.port)" }
        func app() throws -> ThicketApp {
            try ThicketApp(server: address, app: "shop", apiKey: apiKey, store: .file(folder.path + "/shop.db"))
        }

        func write(_ name: String, _ text: String) throws {
            let file: Int32 = open(folder.path + "/" + name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw ProcessError("cannot write \(name)") }
            defer { close(file) }
            _ = Glibc.write(file, text, text.utf8.count)
        }
    }
}
