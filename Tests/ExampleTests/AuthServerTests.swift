import Glibc
import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses
import ThicketProtocol

/// The auth servers of `Examples/auth-server`, unchanged, with a real thicketd and a session of the library.
@Suite("Examples: auth servers", .blocking, .serialized, .timeLimit(.minutes(15)))
struct AuthServerTests {
    private static let folder =
        #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
        + "/Examples/auth-server/"
    private static let hasPyJWT = works(["/usr/bin/python3", "-c", "import jwt"])
    private static let hasTools = works(["/bin/sh", "-c", "command -v curl && command -v openssl"])
    /// Lifetime of the first token in seconds, by the clock of the machine: the test sees its end.
    private static let lifetime = "2"
    /// Lifetime of the other tokens and of registrations: enough for any slow machine.
    private static let longLifetime = "900"

    private static func works(_ words: [String]) -> Bool { (try? ChildProcess.run(words))?.code == 0 }

    @Test(
        "Python with PyJWT: a user registers, logs in, syncs, renews an expired token and logs out",
        .enabled(if: hasPyJWT, "PyJWT is missing: apt install python3-jwt, or ./dev setup --tests"))
    func python() async throws {
        let bench = try Bench()
        let servers: [ChildProcess] = try [Self.lifetime, Self.longLifetime].map {
            try .init(
                ["/usr/bin/python3", Self.folder + "auth_server.py"],
                variables: [
                    "THICKET_URL": bench.address, "PARTNER_API_KEY": bench.apiKey, "PARTNER_AUTH_KEY": bench.authKey,
                    "TOKEN_SECONDS": $0,
                ])
        }
        let ports: [UInt16] = try servers.map { try #require(UInt16(try $0.firstLine())) }
        let login: @Sendable (UInt16, String, String) throws -> JSONObject = { port, device, password in
            let answer = try PlainHTTP.post(
                port, "/login", #"{"user":"ada@example.com","password":"\#(password)","device_id":"\#(device)"}"#)
            guard answer.hasPrefix("HTTP/1.0 200"), let body = answer.split(separator: "\r\n\r\n").last,
                let object = try JSONValue(parsing: Array(body.utf8)).objectValue
            else { throw TokenDenied() }
            return object
        }
        #expect(throws: TokenDenied.self) { try login(ports[0], "d", "wrong horse") }
        let app = try bench.app()
        let first: JSONObject = try login(ports[0], app.deviceId, "correct horse")
        try await Self.exercise(
            app, entity: try #require(first["entity_id"]?.stringValue),
            token: try #require(first["access_token"]?.stringValue)
        ) { request in
            try login(ports[1], request.deviceId, "correct horse")["access_token"]?.stringValue ?? ""
        }
        for server in servers {
            server.signal(SIGKILL)
            _ = try server.finish()
        }
    }

    @Test(
        "shell with openssl: a user registers, logs in, syncs, renews an expired token and logs out",
        .enabled(if: hasTools, "curl or openssl is missing: ./dev setup --tests"))
    func shell() async throws {
        let bench = try Bench()
        try bench.write("auth.key", bench.authKey + "\n")
        let variables = [
            "THICKET_URL": bench.address, "PARTNER_API_KEY": bench.apiKey,
            "PARTNER_AUTH_KEY_FILE": bench.folder.path + "/auth.key",
        ]
        let run: @Sendable ([String], String) throws -> String = { words, seconds in
            let outcome = try ChildProcess.run(
                [Self.folder + "auth.sh"] + words,
                variables: variables.merging(["TOKEN_SECONDS": seconds]) { _, new in new })
            guard outcome.code == 0 else { throw ProcessError("auth.sh: \(outcome)") }
            return String(outcome.output.prefix { $0 != "\n" })
        }
        let entity = try run(["register", "bob@example.com"], Self.longLifetime)
        #expect(try run(["register", "bob@example.com"], Self.longLifetime) == entity, "the same user again")
        #expect(throws: ProcessError.self) { try run(["register", #"bo"b"#], Self.longLifetime) }
        let app = try bench.app()
        let first = try run(["login", "bob@example.com", entity, app.deviceId], Self.lifetime)
        try await Self.exercise(app, entity: entity, token: first) { request in
            try run(["login", "bob@example.com", request.entityId, request.deviceId], Self.longLifetime)
        }
    }

    @Test(
        "a partner's token opens no keys; thicket makes them, and passphrase, words or pairing open them elsewhere",
        .enabled(if: hasTools, "curl or openssl is missing: ./dev setup --tests"))
    func commands() throws {
        let bench = try Bench()
        try bench.write("auth.key", bench.authKey + "\n")
        let signer = [
            "THICKET_URL": bench.address, "PARTNER_API_KEY": bench.apiKey,
            "PARTNER_AUTH_KEY_FILE": bench.folder.path + "/auth.key", "TOKEN_SECONDS": Self.longLifetime,
        ]
        func sign(_ words: [String]) throws -> String {
            let outcome = try ChildProcess.run(
                [Self.folder + "auth.sh"] + words, variables: signer)
            guard outcome.code == 0 else { throw ProcessError("auth.sh: \(outcome)") }
            return String(outcome.output.prefix { $0 != "\n" })
        }
        func run(_ words: [String], _ home: String, _ more: [String: String] = [:]) throws -> ChildProcess.Outcome {
            try ChildProcess.run([Programs.thicket] + words, variables: bench.variables(home, more))
        }
        func good(_ words: [String], _ home: String, _ more: [String: String] = [:]) throws -> String {
            let outcome = try run(words, home, more)
            guard outcome.code == 0 else { throw ProcessError("\(words): \(outcome)") }
            return outcome.output
        }
        let entity = try sign(["register", "bob@example.com"])
        func logIn(_ home: String) throws {
            try bench.write(home + ".token", try sign(["login", "bob@example.com", entity, "machine-" + home]) + "\n")
            _ = try good(
                [
                    "login", "--server", bench.address, "--app", "shop", "--partner", "--partner-id", "1000",
                    "--api-key",
                    bench.apiKey, "--token-file", bench.folder.path + "/" + home + ".token",
                ], home)
        }
        for home in ["one", "two", "three", "four"] { try logIn(home) }
        let passphrase = ["THICKET_CONTENT_PASSPHRASE": "canary-passphrase"]
        #expect(try run(["keys"], "two", passphrase).code == 3, "a token brings no keys")
        #expect(try good(["keys", "--make"], "one", passphrase).contains("made the account's keys"))
        #expect(try run(["keys"], "two", ["THICKET_CONTENT_PASSPHRASE": "guess"]).code == 6)
        #expect(try good(["keys"], "two", passphrase).contains("open here"))
        let words = try good(["words"], "one")
        #expect(try good(["words"], "two") == words)
        let list = words.split { $0 == " " || $0 == "\n" }.filter { !$0.hasSuffix(".") }.joined(separator: " ")
        try bench.write("words", list)
        #expect(try good(["keys", "--words-file", bench.folder.path + "/words"], "three").contains("open here"))
        #expect(try good(["verify", "--words-file", bench.folder.path + "/words"], "three").contains("verified"))
        let new = try ChildProcess([Programs.thicket, "pair", "--yes"], variables: bench.variables("four", [:]))
        let code: Substring = try #require(try new.firstLine().split(separator: " ").last)
        _ = try good(["pair", String(code)], "one")
        let paired = try new.finish()
        #expect(paired.code == 0 && paired.output.contains("open here"), "\(paired)")
        #expect(try good(["words"], "four") == words)
        // Another passphrase, and notes that the keys seal.
        _ = try good(["passwd"], "four", ["THICKET_NEW_PASSWORD": "another"])
        try logIn("five")
        #expect(try run(["keys"], "five", passphrase).code == 6)
        _ = try good(["keys"], "five", ["THICKET_CONTENT_PASSPHRASE": "another"])
        let made = try ChildProcess.run(
            [Programs.thicket, "onions", "new"], input: "canary-note\ntext", variables: bench.variables("one", [:]))
        #expect(made.code == 0, "\(made)")
        #expect(try good(["onions", "list"], "five").contains("canary-note"))
        #expect(try good(["audit"], "five").contains("sealed under your content passphrase"))
        // Other words: a machine that missed the change reports it, and gets them by the passphrase, or opens by the
        // new words without it.
        let another = ["THICKET_CONTENT_PASSPHRASE": "another"]
        #expect(try run(["words", "--renew"], "one", passphrase).code == 6, "the passphrase from before")
        let renewed = try good(["words", "--renew"], "one", another)
        #expect(renewed != words)
        #expect(try good(["words"], "one") == renewed)
        let stale = try run(["words"], "five")
        #expect(stale.code == 4 && stale.output.isEmpty && stale.errors.contains("thicket keys"), "\(stale)")
        #expect(try run(["keys", "--words-file", bench.folder.path + "/words"], "five").code == 4, "the old words")
        #expect(try run(["keys"], "five", passphrase).code == 6)
        #expect(try good(["keys"], "five", another).contains("open here"))
        #expect(try good(["words"], "five") == renewed)
        let fresh = renewed.split { $0 == " " || $0 == "\n" }.filter { !$0.hasSuffix(".") }
            .joined(separator: " ")
        try bench.write("fresh", fresh)
        #expect(try good(["keys", "--words-file", bench.folder.path + "/fresh"], "two").contains("open here"))
        #expect(try good(["onions", "list"], "two").contains("canary-note"))
        for canary in ["canary-passphrase", "canary-note"] {
            let search = try ChildProcess.run(
                ["/bin/grep", "-rqaF", canary, bench.folder.path + "/data"])
            #expect(search.code == 1, "\(canary)")
        }
        let guest = try run(["account", "delete"], "one", ["THICKET_PASSWORD": "x"])
        #expect(guest.code == 2, "the account is the partner's: \(guest)")
    }

    /// Acts as an app: syncs, outlives the end of its token, signs out.
    private static func exercise(
        _ app: ThicketApp, entity: String, token: String,
        renewing renew: @escaping @Sendable (TokenRequest) throws -> String
    ) async throws {
        struct Source: TokenSource {
            let renew: @Sendable (TokenRequest) throws -> String
            func token(for request: TokenRequest) async throws -> String { try renew(request) }
        }
        #expect(!entity.isEmpty && token.split(separator: ".").count == 3)
        let session = try await app.createSession(
            accessToken: token, entityId: entity, partnerId: "1000", tokens: Source(renew: renew))
        var events = await session.events.makeAsyncIterator()
        let notes = try await session.bucket("notes")
        try await notes.set("a", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: .seconds(120))
        #expect(await events.next() == .expired)
        try await notes.set("a", to: ["n": 2])
        #expect(await events.next() == .renewed)
        try await notes.waitUntilSynced(timeout: .seconds(120))
        #expect(try await notes.info("a").version == 2)
        #expect(try await session.devices().map(\.isThisOne) == [true])
        #expect(await session.signOut())
        await session.close()
    }

    /// A real thicketd with one partner and its app.
    private final class Bench {
        let folder = TemporaryFolder("example")
        let daemon: Daemon
        let apiKey: String
        let authKey: String

        init() throws {
            let data = folder.path + "/data"
            mkdir(data, 0o700)
            let output = try Daemon.command(data, ["partner", "create"], succeeding: true).output
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

        func variables(_ home: String, _ more: [String: String]) -> [String: String] {
            ["THICKET_HOME": folder.path + "/" + home, "SWIFT_BACKTRACE": "enable=no"].merging(more) { $1 }
        }

        func write(_ name: String, _ text: String) throws {
            let file = open(folder.path + "/" + name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw ProcessError("cannot write \(name)") }
            defer { close(file) }
            _ = Glibc.write(file, text, text.utf8.count)
        }
    }
}
