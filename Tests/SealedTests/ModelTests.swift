import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol

@testable import ThicketSealed

/// The second, independent implementation (`Tests/InteropTests/sealed_model.py`) and ours read each other's logs and
/// agree on all of them. `THICKET_SEALED_LOGS` sets how many logs each writes, `THICKET_SEED` the seed.
@Suite("Sealed objects and the independent model", .blocking)
struct ModelTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    private static let script = root + "/Tests/InteropTests/sealed_model.py"

    /// A Python that has `cryptography`: that of `./dev setup --tests`, or the system's.
    private static let python = [root + "/.work/venv/bin/python3", "/usr/bin/python3"].first {
        access($0, X_OK) == 0 && (try? ChildProcess.run([$0, "-c", "import cryptography"]))?.code == 0
    }

    private static func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
    private static let logs = number("THICKET_SEALED_LOGS").map(Int.init) ?? 20
    private static let seed = number("THICKET_SEED") ?? 42

    @Test("our implementation agrees with the published vectors")
    func vectors() throws {
        let text = try Self.bytes(Self.root + "/Tests/Vectors/sealed/vectors.json")
        let cases = try #require(try JSONValue(parsing: text, maxDepth: 600).arrayValue)
        #expect(cases.count >= 8)
        for (number, entry) in cases.enumerated() {
            let vector = SealedCase(json: entry)
            #expect(try vector.problem() == nil, "case \(number)")
            try Self.checkSteps(vector)
        }
    }

    /// Checks the keys and the clear forms in between.
    private static func checkSteps(_ vector: SealedCase) throws {
        let vault = Hex.decode(vector.json["vault"]?.stringValue ?? "") ?? []
        let secret = try SealedBucketKeys.secret(
            vault: .init(copying: vault), app: vector.json["app"]?.stringValue ?? "",
            bucket: vector.json["bucket"]?.stringValue ?? "", epoch: 0)
        let wanted = Hex.decode(vector.json["bucket_secret"]?.stringValue ?? "") ?? []
        #expect(secret.withUnsafeBytes { Array($0) } == wanted)
        let keys = try vector.keys()
        let sealer = try keys.sealer(serverKey: vector.json["server_key"]?.stringValue ?? "")
        for (operation, clear) in zip(
            vector.json["operations"]?.arrayValue ?? [], vector.json["clear"]?.arrayValue ?? [])
        {
            let opened = sealer.open(
                SealedObject.bytes(of: operation.stringValue ?? ""), kind: .operation, position: 0)?.clear
            #expect(opened.map { String(decoding: $0, as: UTF8.self) } == clear.stringValue)
        }
    }

    @Test(
        "our implementation agrees with logs that the model has written",
        .enabled(if: python != nil, "no Python with cryptography: ./dev setup --tests"))
    func reads() throws {
        let python = try #require(Self.python)
        let outcome = try ChildProcess.run(
            [python, Self.script, "make", String(Self.seed), String(Self.logs)], seconds: 600)
        #expect(outcome.code == 0, "\(outcome.errors)")
        var operations = 0
        let lines: [Substring] = outcome.output.split(separator: "\n")
        #expect(lines.count == Self.logs)
        for (number, line) in lines.enumerated() {
            let read = SealedCase(json: try JSONValue(parsing: Array(line.utf8), maxDepth: 600))
            let problem = try read.problem()
            #expect(problem == nil, "log \(number) of THICKET_SEED=\(Self.seed): \(problem?.prefix(3_000) ?? "")")
            operations += read.json["operations"]?.arrayValue?.count ?? 0
        }
        print("sealed: \(lines.count) logs of the model, \(operations) operations, from THICKET_SEED=\(Self.seed)")
    }

    @Test(
        "the model agrees with logs that our implementation has written",
        .enabled(if: python != nil, "no Python with cryptography: ./dev setup --tests"))
    func writes() throws {
        let python = try #require(Self.python)
        var input = [UInt8]()
        for number in 0..<Self.logs {
            var writer = CaseWriter(seed: Self.seed &* 1_000_003 &+ UInt64(number))
            input += try writer.made(steps: [10, 40, 150][number % 3]).serialized() + [0x0A]
        }
        let outcome = try ChildProcess.run(
            [python, Self.script, "check"], input: String(decoding: input, as: UTF8.self), seconds: 600)
        #expect(outcome.code == 0, "\(outcome.errors)")
        let answers: [Substring] = outcome.output.split(separator: "\n")
        #expect(answers.count == Self.logs)
        for (number, answer) in answers.enumerated() {
            #expect(
                answer.utf8.starts(with: #"{"ok": true"#.utf8),
                "log \(number) of THICKET_SEED=\(Self.seed): \(answer.prefix(3_000))")
        }
    }

    private static func bytes(_ path: String) throws -> [UInt8] {
        let file = try #require(fopen(path, "r"), "\(path) is missing")
        defer { fclose(file) }
        var bytes = [UInt8]()
        var part = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&part, 1, part.count, file), count > 0 { bytes += part[..<count] }
        return bytes
    }
}
