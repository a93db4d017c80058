import Glibc
import Testing
import ThicketProcesses

/// The data API against its own description: requests made by a program that knows nothing but `/openapi.yaml`.
@Suite("Data API and its description")
struct ContractTests {
    private static let root: String = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    /// Made by `./dev setup --tests`.
    private static let tester: String = root + "/.work/venv/bin/schemathesis"
    /// Requests that the tester must have made.
    private static let requestsMin: Int = 2_000
    /// What is held against the description besides that nothing fails with 5xx. Left out are the checks that every valid
    /// request succeeds and every other one fails: a change of nothing is valid, and answered 412.
    private static let checks: String = [
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
        "response_headers_conformance", "unsupported_method", "allow_header_conformance", "ignored_auth",
        "missing_required_header", "use_after_free",
    ].joined(separator: ",")

    private let folder: TemporaryFolder = .init("contract")

    @Test(
        "thousands of generated requests are answered as /openapi.yaml says, none with 5xx",
        .enabled(
            if: access(tester, X_OK) == 0,
            "schemathesis is missing: ./dev setup --tests installs it where PyPI can be reached"))
    func contract() throws {
        let token: String = try Daemon.token(folder.path, app: "contract", user: "ann@example.com")
        let server: Daemon = try .init(folder: folder.path, ["--changes-wait", "0s"])
        let base: String = "http://127.0.0.1:\(server.port)"
        let outcome: ChildProcess.Outcome = try ChildProcess.run(
            [
                Self.tester, "run", base + "/openapi.yaml", "--url", base + "/1/contract", "-H",
                "X-Simperium-Token: \(token)", "--phases", "examples,coverage,fuzzing,stateful", "--max-examples",
                "120", "--checks", Self.checks, "--continue-on-failure", "--no-shrink", "--warnings", "off", "--seed",
                "1",
            ], variables: ["HOME": folder.path, "NO_COLOR": "1"], seconds: 300)
        #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
        let answers: [Substring: Int] = try Self.answers(port: server.port)
        #expect(answers.values.reduce(0, +) >= Self.requestsMin, "\(answers)")
        #expect(answers.filter { $0.key.hasPrefix("5") && $0.value > 0 }.isEmpty, "\(answers)")
        #expect(try server.terminate().code == 0)
        let summary: Substring = outcome.output.split(separator: "\n").last { $0.contains("generated") } ?? ""
        print("contract:\(summary); answers \(answers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })")
    }

    /// How many answers of each status the server has counted.
    private static func answers(port: UInt16) throws -> [Substring: Int] {
        var counts: [Substring: Int] = [:]
        for line: Substring in try PlainHTTP.get("/metrics", port: port).split(whereSeparator: { $0.isNewline })
        where line.hasPrefix("thicket_rest_answers_total{") {
            let parts: [Substring] = line.split { "\" ".contains($0) }
            if parts.count == 4 { counts[parts[1]] = Int(parts[3]) }
        }
        return counts
    }
}
