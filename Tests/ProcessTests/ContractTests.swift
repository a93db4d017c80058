import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Requests that are generated from `/openapi.yaml` alone, and checked against it.
@Suite("Requests and /openapi.yaml", .blocking)
struct ContractTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    /// Made by `./dev setup --tests`.
    private static let tester = root + "/.work/venv/bin/schemathesis"
    /// Requests that the tester must have made.
    private static let requestsMin = 2_000
    /// The checks against the description. The checks that every valid request succeeds and every other one fails are
    /// left out: a change of nothing is valid, and answered 412.
    private static let checks = [
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
        "response_headers_conformance", "unsupported_method", "allow_header_conformance", "ignored_auth",
        "missing_required_header", "use_after_free",
    ].joined(separator: ",")

    private let folder = TemporaryFolder("contract")

    @Test(
        "thousands of generated requests are answered as /openapi.yaml says, none with 5xx",
        .enabled(
            if: access(tester, X_OK) == 0,
            "schemathesis is missing: ./dev setup --tests installs it where PyPI can be reached"))
    func contract() throws {
        let token = try Daemon.token(folder.path, app: "contract", user: "ann@example.com")
        let key = try command("app", "key", "add", "contract")
        let admin = try command("app", "key", "add", "contract", "--admin")
        let partner: [Substring] = try command("partner", "create").split { " \n".contains($0) }
        let partnerKey: Substring = try #require(partner.dropFirst(4).first)
        _ = try command("partner", "passwords", "1000")
        _ = try command("app", "create", "tied", "--partner", "1000")
        let server = try Daemon(
            folder: folder.path,
            [
                "--changes-wait", "0s", "--failed-logins-per-minute", "1000000", "--registrations-per-minute",
                "1000000",
            ])
        let (login, entity) = try user(server.port, partnerKey)
        let shown = [
            "X-Simperium-API-Key: \(key)", "x-rezolve-partner-apikey: \(partnerKey)", "authorization: \(login)",
        ]
        try configure(entity, app: "tied")
        let bundles = try run(
            server, ["X-Simperium-Token: \(login.dropFirst("Bearer ".count))"],
            ["--max-examples", "12", "--include-path-regex", "auth/bundle$"], phases: "examples,coverage,fuzzing")
        try configure(entity)
        // First, because later the address has sent too many bad tokens.
        let account = try self.account(server.port, key)
        let sealed = try run(
            server, ["X-Simperium-Token: \(account)"],
            ["--max-examples", "12", "--include-path-regex", "auth/(tokens|bundle)$"],
            phases: "examples,coverage,fuzzing")
        let all = try run(
            server, shown + ["X-Simperium-Token: \(token)"],
            ["--max-examples", "15", "--exclude-tag", "partners", "--exclude-tag", "credentials"],
            phases: "examples,coverage,fuzzing,stateful")
        // Partners' apps are answered 403 without a token, which the tester counts as a fault.
        let partners = try run(
            server, shown,
            [
                "--max-examples", "15", "--include-tag", "partners", "--include-tag", "credentials", "--exclude-checks",
                "missing_required_header",
            ], phases: "examples,coverage,fuzzing,stateful")
        let administration = try run(
            server, ["X-Simperium-Token: \(admin)"],
            ["--max-examples", "12", "--include-tag", "administration"], phases: "examples,coverage,fuzzing")
        let requests = try Self.counts("thicket_http_requests_total", port: server.port)
        let answers = try Self.counts("thicket_rest_answers_total", port: server.port)
        #expect(requests.values.reduce(0, +) >= Self.requestsMin, "\(requests)")
        for route: Substring in ["rest", "account", "partner"] { #expect(requests[route] ?? 0 >= 300, "\(requests)") }
        #expect(answers.filter { $0.key.hasPrefix("5") && $0.value > 0 }.isEmpty, "\(answers)")
        #expect(try server.terminate().code == 0)
        print(
            "contract: \(all);\(partners);\(sealed);\(bundles);\(administration); requests \(requests.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" });"
                + " answers of the data API \(answers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })")
    }

    private func command(_ words: String...) throws -> String {
        let outcome = try Daemon.command(folder.path, words, succeeding: true)
        return outcome.output.hasSuffix("\n") ? String(outcome.output.dropLast()) : outcome.output
    }

    /// A user of the partner: a good token, with its scheme, and the user's id.
    private func user(_ port: UInt16, _ key: Substring) throws -> (login: String, entity: String) {
        let fields = ["x-rezolve-partner-apikey: \(key)"]
        let made = try PlainHTTP.post(
            port, "/v2/credentials/register", #"{"username":"eve@example.com","password":"correct horse"}"#,
            fields: fields)
        let entity: Substring = try #require(made.split(separator: "\"sdkEntity\":\"").last?.prefix { $0 != "\"" })
        let answer = try PlainHTTP.post(
            port, "/v2/credentials/login",
            #"{"username":"eve@example.com","password":"correct horse","deviceId":"contract"}"#, fields: fields)
        let line: Substring = try #require(
            answer.split(separator: "\r\n").first { $0.hasPrefix("authorization: ") }, "\(answer)")
        return (String(line.dropFirst("authorization: ".count)), String(entity))
    }

    /// A token of an account whose password stays with the client. No request of the tester ends it.
    private func account(_ port: UInt16, _ key: String) throws -> String {
        let secret = String(repeating: "A", count: 43)
        let answer = try PlainHTTP.post(
            port, "/1/contract/auth/signup",
            #"{"u":"sealed","a":"\#(secret)","recover":"\#(secret)","salt":"AAAAAAAAAAAAAAAAAAAAAA","access":"AAAA","bundle":"AAAA"}"#,
            fields: ["X-Simperium-API-Key: \(key)"])
        return String(
            try #require(answer.split(separator: "\"access_token\":\"").dropFirst().first, "\(answer)").prefix {
                $0 != "\""
            })
    }

    /// Values that the tester cannot guess: the app, and a user that exists.
    private func configure(_ entity: String, app: String = "contract") throws {
        let text =
            "[parameters]\n\"path.app\" = \"\(app)\"\n\"path.partner\" = \"1000\"\n\"path.entity\" = \"\(entity)\"\n"
            + "\"header.x-rezolve-device-id\" = \"contract\"\n"
            // 429 comes before the check for a token.
            + "[checks.missing_required_header]\nexpected-statuses = [400, 401, 403, 429]\n"
        let file = open(folder.path + "/schemathesis.toml", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        try #require(file >= 0 && write(file, Array(text.utf8), text.utf8.count) == text.utf8.count)
        close(file)
    }

    /// Runs the tester.
    /// - Returns: the last line of its summary.
    private func run(_ server: Daemon, _ fields: [String], _ words: [String], phases: String) throws -> Substring {
        let base = "http://127.0.0.1:\(server.port)"
        let outcome = try ChildProcess.run(
            [
                Self.tester, "--config-file", folder.path + "/schemathesis.toml", "run", base + "/openapi.yaml",
                "--url",
                base, "--phases", phases, "--checks", Self.checks, "--continue-on-failure", "--no-shrink", "--warnings",
                "off", "--seed", "1",
            ] + words + fields.flatMap { ["-H", $0] }, variables: ["HOME": folder.path, "NO_COLOR": "1"], seconds: 300)
        #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
        return outcome.output.split(separator: "\n").last { $0.contains("generated") } ?? ""
    }

    /// The samples of a metric with one label, by its value.
    private static func counts(_ name: String, port: UInt16) throws -> [Substring: Int] {
        var counts = [Substring: Int]()
        for line in try PlainHTTP.get("/metrics", port: port).split(whereSeparator: { $0.isNewline })
        where line.hasPrefix(name + "{") {
            let parts: [Substring] = line.split { "\" ".contains($0) }
            if parts.count == 4 { counts[parts[1]] = Int(parts[3]) }
        }
        return counts
    }
}
