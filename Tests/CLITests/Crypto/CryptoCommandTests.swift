import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol
import ThicketTestSupport

@Suite("thicket crypto answers other programs, line by line", .blocking)
struct CryptoCommandTests {
    /// The answer to every failed opening.
    static let refusal: JSONValue = ["error": "the sealed bytes cannot be opened"]

    /// Runs the real command on these lines.
    static func run(_ operation: String, _ lines: [JSONValue]) throws -> [JSONValue] {
        let outcome = try ChildProcess.run(
            [Programs.thicket, "crypto", operation, "--lines"],
            input: lines.map(\.serializedText).joined(separator: "\n") + "\n")
        #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        let answers = try outcome.output.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
        try #require(answers.count == lines.count)
        return answers
    }

    static func cases(_ file: String, _ list: String) throws -> [JSONValue] {
        try #require(Vectors.json(file)[list]?.arrayValue)
    }

    @Test("stretch gives the published values", .enabled(if: Vectors.has("onions/stretch.json")))
    func stretch() throws {
        let cases = try Self.cases("onions/stretch.json", "cases")
        for (each, answer) in zip(cases, try Self.run("stretch", cases)) {
            #expect(answer["stretched_username"] == each["stretched_username"])
            #expect(answer["stretched_password"] == each["stretched_password"])
        }
    }

    @Test(
        "rncryptor-open opens all published messages and refuses all others alike", .enabled(if: Vectors.has("onions")))
    func messages() throws {
        let good = try Self.cases("onions/messages.json", "cases")
        for (each, answer) in zip(good, try Self.run("rncryptor-open", good)) {
            #expect(answer == ["plaintext": try #require(each["plaintext"])])
        }
        let bad = try Self.cases("onions/messages.json", "must_fail")
        let answers: [JSONValue] = try Self.run("rncryptor-open", bad)
        #expect(answers.count == 18 && Set(answers) == [Self.refusal])
    }

    /// "bomb" under the password "p" with 10,000,001 rounds of PBKDF2 over HMAC-SHA-1, made by another implementation.
    private static let bomb =
        "0301000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0b0b39abb24efe"
        + "da449846c6f155d8833ae266be7a721939455e6bea2f2f500fe6df70510db3bb3b2f2b9769be578977"

    @Test("T7: iteration bombs and impossible numbers of rounds are refused like everything else")
    func bombs() throws {
        func line(_ message: String, _ rounds: JSONValue) -> JSONValue {
            ["password": "p", "prf": "sha1", "message_hex": .string(message), "iterations": rounds]
        }
        let message = try RNCryptor.seal(
            SecureBytes(copying: Array("once".utf8)), password: SecureBytes(copying: Array("p".utf8)),
            .init(.sha1, rounds: 1))
        let once: String = Hex.encode(message)
        #expect(try Self.run("rncryptor-open", [line(once, 1)]) == [["plaintext": "once"]], "it opens by its rounds")
        // It would open, too: it was sealed with this many rounds, which is one above the limit.
        let bomb = line(Self.bomb, 10_000_001)
        let rounds: [JSONValue] = [0, -1, 1.5, 4_294_967_297, 1e300]
        let lines: [JSONValue] = [bomb] + rounds.map { line(once, $0) }
        #expect(Set(try Self.run("rncryptor-open", lines)) == [Self.refusal])
        // A value that is not a number reveals nothing of the message, so the error names it.
        let others: [JSONValue] = ["x", "1", nil, true]
        let answers = try Self.run("rncryptor-open", others.map { line(once, $0) })
        #expect(Set(answers) == [["error": "'iterations' is not a number"]])
    }

    @Test(
        "content is sealed to the published bytes, opens, and is refused when changed",
        .enabled(if: Vectors.has("container")))
    func content() throws {
        let cases = try Self.cases("container/content.json", "cases").filter { $0["sealed_hex"] != nil }
        #expect(cases.count >= 8)
        let answers = try Self.run("content-open", cases)
        var seals = [JSONValue]()
        for (each, answer) in zip(cases, answers) {
            let plain: [UInt8] = try #require(answer["plaintext_hex"]?.stringValue.flatMap(Hex.decode))
            #expect(Hex.encode(Hash.sha256(plain)) == each["plaintext_sha256"]?.stringValue)
            seals.append(.object(try #require(each.objectValue).setting(["plaintext_hex": .string(Hex.encode(plain))])))
        }
        for (each, answer) in zip(cases, try Self.run("content-seal", seals)) {
            #expect(answer["sealed_hex"] == each["sealed_hex"])
        }
        let first: JSONObject = try #require(cases.first?.objectValue)
        let changed: [JSONObject] = [
            ["length": 0], ["length": 2], ["length": -1], ["length": 1e30], ["suite": 2], ["suite": 3],
            ["sealed_hex": ""], ["content_key": "00"], ["data_id": "00"],
        ]
        let refused: [JSONValue] = try Self.run("content-open", changed.map { .object(first.setting($0)) })
        #expect(Set(refused) == [Self.refusal])
        let texts = try Self.run("content-open", [.object(first.setting(["suite": "x"]))])
        #expect(texts == [["error": "'suite' is not a number"]])
    }

    @Test("content of length 0 is sealed to one tag, and opens")
    func empty() throws {
        let line: JSONObject = [
            "suite": 1, "content_key": .string(.init(repeating: "01", count: 32)),
            "data_id": .string(.init(repeating: "02", count: 16)), "plaintext_hex": "", "length": 0,
        ]
        let sealed = try #require(Self.run("content-seal", [.object(line)]).first?["sealed_hex"])
        #expect(sealed.stringValue?.utf8.count == 32)
        #expect(
            try Self.run("content-open", [.object(line.setting(["sealed_hex": sealed]))]) == [["plaintext_hex": ""]])
    }

    @Test("hpke-open opens the published messages of every mode and cipher", .enabled(if: Vectors.has("hpke")))
    func hpke() throws {
        var (lines, expected): ([JSONObject], [JSONValue]) = ([], [])
        for file in ["rfc9180-appendix-a-x25519", "x25519-aes256gcm-generated"] {
            for each in try #require(Vectors.json("hpke/\(file).json").arrayValue) {
                // 65535 seals nothing.
                guard each["aead_id"]?.intValue != 65_535 else { continue }
                let messages: JSONValue = try #require(each["encryptions"])
                lines.append(try #require(each.objectValue).setting(["messages": messages]))
                expected.append(.array(try #require(messages.arrayValue).map { try #require($0["pt"]) }))
            }
        }
        #expect(lines.count == 12)
        #expect(try Self.run("hpke-open", lines.map(JSONValue.object)) == expected.map { ["plaintexts": $0] })
        // Messages in their order need no numbers.
        let first: JSONObject = try #require(lines.first)
        let plain: [JSONValue] = try #require(first["messages"]?.arrayValue).prefix(3).map {
            ["aad": try #require($0["aad"]), "ct": try #require($0["ct"])]
        }
        let opened: [JSONValue] = try Self.run("hpke-open", [.object(first.setting(["messages": .array(plain)]))])
        let byName = JSONValue.object(first.setting(["messages": .array(plain), "mode": "base"]))
        #expect(try Self.run("hpke-open", [byName]) == opened)
        #expect(opened.first?["plaintexts"]?.arrayValue == Array(try #require(expected.first?.arrayValue).prefix(3)))
        let zeros: JSONValue = .string(.init(repeating: "00", count: 32))
        let changed: [JSONObject] = [
            ["mode": 2, "pkSm": zeros], ["mode": 4], ["mode": "x"], ["aead_id": 3], ["aead_id": 9], ["enc": zeros],
            ["enc": "00"], ["info": "00"], ["skRm": zeros], ["skRm": "00"], ["messages": .array(plain.reversed())],
        ]
        #expect(Set(try Self.run("hpke-open", changed.map { .object(first.setting($0)) })) == [Self.refusal])
    }

    @Test("name-tag gives the published tags", .enabled(if: Vectors.has("container")))
    func names() throws {
        let cases = try Self.cases("container/name-tags.json", "cases")
        for (each, answer) in zip(cases, try Self.run("name-tag", cases)) {
            #expect(answer == ["tag": try #require(each["tag"])])
        }
    }

    @Test(
        "words gives the published entropy, and one error for every invalid list",
        .enabled(if: Vectors.has("container"))
    )
    func words() throws {
        let cases = try #require(Vectors.json("container/bip39-english.json").arrayValue)
        let lines: [JSONValue] = try cases.map { ["words": try #require($0["mnemonic"])] }
        for (each, answer) in zip(cases, try Self.run("words", lines)) {
            #expect(answer == ["entropy": try #require(each["entropy"])])
        }
        let bad: [JSONValue] = ["", "abandon", "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo", "xyz"]
        #expect(Set(try Self.run("words", bad.map { ["words": $0] })) == [Self.refusal])
    }

    @Test("merkle gives the published roots and proofs", .enabled(if: Vectors.has("rfc6962")))
    func merkle() throws {
        let file = try Vectors.json("rfc6962/tree8.json")
        let leaves = try #require(file["leaves_hex"]?.arrayValue)
        let roots = try #require(file["roots_hex"]?.arrayValue)
        func line(_ size: JSONValue?) throws -> JSONObject {
            ["leaves": .array(Array(leaves.prefix(Int(try #require(size?.intValue)))))]
        }
        let plain: [JSONValue] = try (0...8).map { .object(try line(.number(JSONNumber(Int64($0))))) }
        #expect(try Self.run("merkle", plain) == roots.map { ["root": $0] })
        let inclusion = try #require(file["inclusion"]?.arrayValue)
        let included = try Self.run(
            "merkle", inclusion.map { .object(try line($0["size"]).setting(["index": try #require($0["index"])])) })
        #expect(included.map { $0["inclusion"] } == inclusion.map { $0["proof"] })
        let consistency = try #require(file["consistency"]?.arrayValue)
        let consistent = try Self.run(
            "merkle", consistency.map { .object(try line($0["size2"]).setting(["size1": try #require($0["size1"])])) })
        #expect(consistent.map { $0["consistency"] } == consistency.map { $0["proof"] })
        let bad: [JSONObject] = [["index": 8], ["index": -1], ["size1": 0], ["size1": 9], ["index": "x"]]
        for answer in try Self.run("merkle", bad.map { .object(try line(8).setting($0)) }) {
            #expect(answer["error"] != nil && answer["root"] == nil)
        }
    }

    @Test("a line that cannot be read is answered, and the next one too")
    func lines() throws {
        let outcome = try ChildProcess.run(
            [Programs.thicket, "crypto", "merkle", "--lines"],
            input: "nonsense\n[]\n{}\n{\"leaves\":[1]}\n\n  \n{\"leaves\":[]}")
        let lines: [Substring] = outcome.output.split(separator: "\n")
        #expect(outcome.code == 0 && lines.count == 7)
        #expect(lines.prefix(6).allSatisfy { $0.hasPrefix(#"{"error":"#) })
        #expect(lines.last == #"{"root":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}"#)
    }

    @Test("an unknown operation, and a call without --lines, end with 2")
    func usage() throws {
        #expect(try ChildProcess.run([Programs.thicket, "crypto", "merkle"]).code == 2)
        #expect(try ChildProcess.run([Programs.thicket, "crypto", "nothing", "--lines"]).code == 2)
        let help = try ChildProcess.run([Programs.thicket, "crypto", "--help"])
        #expect(help.code == 0 && help.output.contains("rncryptor-open") && help.output.contains("merkle"))
    }
}
