import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketThreats

/// T19 over more than one process, and at the end of a whole run.
@Suite("Nonces of whole runs", .blocking, .timeLimit(.minutes(15)))
struct SealsTests {
    private static let recordBytes: Int = SealRecorder.recordBytes

    /// Records of a file, and the pairs in it that sealed two things.
    private static func pairs(_ path: String) -> (count: Int, twice: Int) {
        let all: [UInt8] = ThreatHouse.files(path).flatMap(\.bytes)
        // A program may be in the middle of a record.
        let bytes: ArraySlice<UInt8> = all.prefix(all.count / recordBytes * recordBytes)
        var seen: [ArraySlice<UInt8>: ArraySlice<UInt8>] = [:]
        var twice: Int = 0
        for start: Int in stride(from: 0, to: bytes.count, by: recordBytes) {
            let (pair, input): (ArraySlice<UInt8>, ArraySlice<UInt8>) = (
                bytes[start..<(start + 20)], bytes[(start + 20)..<(start + recordBytes)]
            )
            if let before: ArraySlice<UInt8> = seen[pair], before != input { twice += 1 }
            seen[pair] = input
        }
        return (bytes.count / recordBytes, twice)
    }

    @Test("T19: programs that are killed, that resend, and that go on from two copies of one folder use no nonce twice")
    func forks() throws {
        let house: ThreatHouse = try .init("seals")
        let (place, record): (TemporaryFolder, TemporaryFolder) = (.init("seals-home"), .init("seals-file"))
        let file: String = record.path + "/seals"
        func variables(_ home: String) -> [String: String] {
            [
                "HOME": place.path, "THICKET_HOME": "\(place.path)/\(home)", "XDG_RUNTIME_DIR": "",
                "THICKET_PASSWORD": "sesame", "SWIFT_BACKTRACE": "enable=no", "THICKET_SEALS": file,
            ]
        }
        func run(_ words: [String], home: String) throws {
            let outcome: ChildProcess.Outcome = try ChildProcess.run(
                [Programs.thicket] + words, variables: variables(home))
            guard outcome.code == 0 else { throw ProcessError("thicket \(words): \(outcome)") }
        }
        let address: String = "http://127.0.0.1:\(house.port)"
        try run(
            ["signup", "--server", address, "--app", ThreatHouse.app, "--api-key", house.apiKey, "--user", "ann"],
            home: "one")
        for number: Int in 0..<3 {
            try run(["put", "notes", "k\(number)", #"{"t":"\#(number)"}"#, "--offline"], home: "one")
        }
        // Both go on from the same pages, the same counters and the same edits that are not sent yet.
        let copied: ChildProcess.Outcome = try ChildProcess.run(
            ["/bin/cp", "-a", "\(place.path)/one", "\(place.path)/two"])
        #expect(copied.code == 0)
        let before: Int = Self.pairs(file).count
        for home: String in ["one", "two"] {
            for number: Int in 0..<3 {
                try run(["put", "notes", "k\(number)", #"{"t":"\#(home) \#(number)"}"#, "--offline"], home: home)
            }
            // Killed wherever it is, and once more: what it was about is written again.
            for _ in 0..<3 {
                let killed: ChildProcess = try .init(
                    [Programs.thicket, "put", "notes", "k9", #"{"t":"\#(home)"}"#, "--offline"],
                    variables: variables(home))
                let size: Int = Self.pairs(file).count
                // Once it is stored the same again writes nothing.
                let isSeen: Bool? = Steady.waitFor {
                    Self.pairs(file).count > size || killed.hasEnded ? true : nil
                }
                #expect(isSeen == true)
                killed.signal(SIGKILL)
                _ = try killed.finish()
            }
            try run(["put", "notes", "k9", #"{"t":"\#(home), again"}"#], home: home)
        }
        let (count, twice): (Int, Int) = Self.pairs(file)
        #expect(before > 20 && count > before + 20, "\(before), \(count)")
        #expect(twice == 0)
    }

    @Test(
        "T19: the check at the end of a run fails for one pair of key and nonce that came twice with other bytes, and only then"
    )
    func check() throws {
        let folder: TemporaryFolder = .init("prove")
        let log: String = "✔ Suite \"T19: nonces that were used twice are seen\" passed after 0.1 seconds.\n"
        try Self.write(Array(log.utf8), to: folder.path + "/log")
        let root: String = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(
            separator: "/")
        func prove(_ records: [[UInt8]]?) throws -> ChildProcess.Outcome {
            unlink(folder.path + "/seals")
            if let records { try Self.write(Array(records.joined()), to: folder.path + "/seals") }
            return try ChildProcess.run([
                "/bin/bash", "-c", "cd \"$0\" && exec python3 Tests/prove \"$1/log\" \"$1/seals\"", root, folder.path,
            ])
        }
        func row(_ outcome: ChildProcess.Outcome) -> String {
            String(outcome.output.split(separator: "\n").first { $0.hasPrefix("T19") } ?? "")
        }
        let (one, two): ([UInt8], [UInt8]) = (RandomBytes.make(20), RandomBytes.make(20))
        let (this, that): ([UInt8], [UInt8]) = (RandomBytes.make(16), RandomBytes.make(16))
        let good: ChildProcess.Outcome = try prove([one + this, two + this, one + this, two + this])
        #expect(good.code == 0 && row(good).contains("4 seals of this run, none"), "\(good)")
        let bad: ChildProcess.Outcome = try prove([one + this, two + this, one + that])
        #expect(bad.code == 1 && row(bad).contains("FAILED") && row(bad).contains("1 pairs"), "\(bad)")
        #expect(bad.errors.contains(Hex.encode(Array(one[..<8]))))
        for nothing: ChildProcess.Outcome in [try prove(nil), try prove([])] {
            #expect(nothing.code == 0 && row(nothing).contains("not recorded") && !row(nothing).contains("passed"))
        }
        let torn: ChildProcess.Outcome = try prove([one + this, [1, 2, 3]])
        #expect(torn.code == 1 && torn.errors.contains("damaged"))
    }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        let file: Int32 = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(file) }
        guard file >= 0, Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw ProcessError("\(path) cannot be written")
        }
    }
}
