import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol
import ThicketThreats

@testable import ThicketCLI

/// A partner's user logs in with a token that the partner's server signed; no password exists here.
@Suite("thicket: a partner's token that has ended", .blocking)
struct PartnerTokenCommandTests {
    private let bench: CommandBench
    private let partnerKey: String
    private let authKey: String
    private let entity: String

    init() throws {
        let bench = try CommandBench()
        let made = try Daemon.command(bench.path("data"), ["partner", "create"], succeeding: true).output
        func value(_ name: String) throws -> String {
            String(try #require(made.split(separator: "\n").first { $0.hasPrefix(name) }?.split(separator: " ").last))
        }
        (partnerKey, authKey) = (try value("api key"), try value("auth key"))
        try Daemon.command(bench.path("data"), ["app", "create", "shop", "--partner", "1000"], succeeding: true)
        self.bench = bench
        entity = try Self.register("ann", bench, partnerKey, authKey)
    }

    private static func register(
        _ user: String, _ bench: CommandBench, _ partnerKey: String, _ authKey: String
    ) throws -> String {
        let token = SignedTokens.registration(user: user, ends: ThreatHouse.now + 900, key: authKey)
        let answer = try PlainHTTP.post(
            UInt16(bench.server.port), "/api/v1/authentication/register", #"{"email":"u@example.com"}"#,
            fields: [
                "x-rezolve-partner-apikey: \(partnerKey)", "Authorization: Bearer \(token)",
                "Content-Type: application/json",
            ])
        let body = try #require(answer.split(separator: "\r\n\r\n").last)
        return try #require(try JSONValue(parsing: Array(body.utf8))["entity_id"]?.stringValue, "\(answer)")
    }

    /// - Parameter seconds: until the token ends; negative: it has ended.
    private func token(_ seconds: Int64, entity: String? = nil, user: String = "ann") -> String {
        SignedTokens.login(
            entity: entity ?? self.entity, user: user, device: "d1", ends: ThreatHouse.now + seconds, key: authKey)
    }

    private func login() throws {
        try bench.write("first", token(1_500))
        chmod(bench.path("first"), 0o600)
        try bench.good([
            "login", "--partner", "--partner-id", "1000", "--api-key", partnerKey, "--server", bench.address, "--app",
            "shop", "--token-file", bench.path("first"),
        ])
    }

    /// Makes the stored token an expired one.
    private func end() throws {
        let home = try ProfileHome(["THICKET_HOME": bench.path("home")])
        var kept = try #require(try home.read("default"))
        kept.token = token(-600)
        try home.write(kept, "default")
    }

    private func renew(_ token: String, _ more: [String] = []) throws -> ChildProcess.Outcome {
        try bench.write("new", token)
        chmod(bench.path("new"), 0o600)
        return try bench.run(["login", "--token-file", bench.path("new")] + more)
    }

    @Test("each command says where the next token comes from, and asks for no password")
    func advice() throws {
        try login()
        try bench.good(["put", "n", "k", #"{"x":1}"#])
        mkdir(bench.path("m"), 0o700)
        try end()
        for words in [
            ["get", "n", "k"], ["ls", "n"], ["put", "n", "k", #"{"x":2}"#], ["rm", "n", "k"], ["history", "n", "k"],
            ["watch", "n"], ["mirror", bench.path("m"), "n"], ["mirror", bench.path("m"), "n", "--once"], ["devices"],
            ["token", "print"], ["import", "n", bench.path("m")],
        ] {
            let outcome = try bench.run(words)
            #expect(outcome.code == 6, "\(words) \(outcome)")
            #expect(outcome.errors.contains("Get a new token from the partner's server"), "\(words) \(outcome)")
            #expect(outcome.errors.contains("'thicket login --token-file FILE'"), "\(words) \(outcome)")
            #expect(!outcome.errors.contains("password"), "\(words) \(outcome)")
        }
        #expect(try bench.good(["get", "n", "k", "--offline", "--json"]) == "{\"x\":1}\n")
    }

    @Test("'login --token-file NEW' continues with the profile, and sends what was kept meanwhile")
    func renewed() throws {
        try login()
        try bench.good(["put", "n", "k", #"{"x":1}"#])
        try end()
        try bench.good(["put", "n", "k", #"{"x":2}"#, "--offline"])
        // A token that has ended, or that has a wrong signature, changes nothing.
        for bad in [token(-600), token(1_500) + "x"] {
            #expect(try renew(bad).code == 6)
            #expect(try bench.good(["get", "n", "k", "--offline", "--json"]) == "{\"x\":2}\n")
        }
        let outcome = try renew(token(1_500))
        #expect(outcome.code == 0 && outcome.output.contains("as ann"), "\(outcome)")
        #expect(try bench.good(["get", "n", "k", "--json"]) == "{\"x\":2}\n")
        #expect(try bench.good(["history", "n", "k"]).split(separator: "\n").count == 2)
        let kept = try #require(try ProfileHome(["THICKET_HOME": bench.path("home")]).read("default"))
        #expect(kept.kind == .partner && kept.login?.partnerId == "1000" && kept.login?.apiKey == partnerKey)
    }

    @Test("another user's token does not take over edits that were never sent")
    func another() throws {
        try login()
        try end()
        try bench.good(["put", "n", "k", #"{"x":2}"#, "--offline"])
        let bob = try Self.register("bob", bench, partnerKey, authKey)
        let other = token(1_500, entity: bob, user: "bob")
        let refused = try renew(other)
        #expect(refused.code == 1 && refused.errors.contains("never"), "\(refused)")
        #expect(try bench.good(["get", "n", "k", "--offline", "--json"]) == "{\"x\":2}\n")
        #expect(try renew(other, ["--discard"]).code == 0)
        #expect(try bench.run(["get", "n", "k"]).code == 3)
    }

    @Test("a partner's user has a tree once the keys are made, and another token sends what was kept")
    func tree() throws {
        let passphrase = ["THICKET_CONTENT_PASSPHRASE": "four green leaves"]
        try login()
        let locked = try bench.run(["tree", "ls"])
        #expect(locked.code == 3 && locked.errors.contains("'thicket keys' gets them, or makes them"), "\(locked)")
        try bench.good(["keys", "--make"], variables: passphrase)
        try bench.write("f", "content")
        try bench.good(["tree", "put", bench.path("f"), "f"])
        try end()
        for words in [
            ["tree", "ls"], ["tree", "put", bench.path("f"), "g"], ["tree", "cat", "f"], ["tree", "pull"],
        ] {
            let outcome = try bench.run(words)
            #expect(outcome.code == 6, "\(outcome)")
            #expect(outcome.errors.contains("Get a new token from the partner's server"), "\(outcome)")
        }
        #expect(try bench.good(["tree", "ls", "--offline"]) == "f\n", "nothing is made that cannot be sent")
        try bench.good(["tree", "put", "--offline", bench.path("f"), "g"])
        #expect(try renew(token(1_500)).code == 0)
        try bench.good(["tree", "pull"])
        #expect(try bench.good(["tree", "ls"]) == "f\ng\n" && bench.good(["tree", "queue"]) == "")
    }

    @Test("for a token that the server made for a password the advice is to log in")
    func password() throws {
        let kept = { (token: String) in
            var profile = Profile(server: "s", app: "shop", token: token)
            profile.kind = .partner
            return profile.renewal
        }
        let session = SignedTokens.sign(
            SignedTokens.loginHeader,
            #"{"rezolve_entity_id":"e","partner_entity_id":"ann","device_id":"d","exp":1,"thicket_session":"s"}"#,
            key: "k")
        #expect(kept(session) == "Run 'thicket login'.")
        #expect(kept(token(1)).contains("partner's server"))
    }
}
