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
    private static let recordBytes = SealRecorder.recordBytes

    /// The number of a file's records, and of the pairs of key and nonce in it that sealed two inputs.
    static func pairs(_ path: String) -> (count: Int, twice: Int) {
        let all = ThreatHouse.files(path).flatMap(\.bytes)
        // A program may be in the middle of a record.
        let bytes = all.prefix(all.count / recordBytes * recordBytes)
        var seen = [ArraySlice<UInt8>: ArraySlice<UInt8>]()
        var twice = 0
        for start in stride(from: 0, to: bytes.count, by: recordBytes) {
            let (pair, input) = (
                bytes[start..<(start + 20)], bytes[(start + 20)..<(start + recordBytes)]
            )
            if let before = seen[pair], before != input { twice += 1 }
            seen[pair] = input
        }
        return (bytes.count / recordBytes, twice)
    }

    @Test(
        "T19: programs that are killed, that resend, and that continue from two copies of a folder use no nonce twice")
    func forks() throws {
        let house = try ThreatHouse("seals")
        let (place, record): (TemporaryFolder, TemporaryFolder) = (.init("seals-home"), .init("seals-file"))
        let file = record.path + "/seals"
        func variables(_ home: String) -> [String: String] {
            [
                "HOME": place.path, "THICKET_HOME": "\(place.path)/\(home)", "XDG_RUNTIME_DIR": "",
                "THICKET_PASSWORD": "sesame", "SWIFT_BACKTRACE": "enable=no", "THICKET_SEALS": file,
            ]
        }
        func run(_ words: [String], home: String) throws {
            let outcome = try ChildProcess.run(
                [Programs.thicket] + words, variables: variables(home))
            guard outcome.code == 0 else { throw ProcessError("thicket \(words): \(outcome)") }
        }
        let address = "http://127.0.0.1:\(house.port)"
        try run(
            ["signup", "--server", address, "--app", ThreatHouse.app, "--api-key", house.apiKey, "--user", "ann"],
            home: "one")
        for number in 0..<3 {
            try run(["put", "notes", "k\(number)", #"{"t":"\#(number)"}"#, "--offline"], home: "one")
        }
        // Both continue from the same pages, the same counters and the same unsent edits.
        let copied = try ChildProcess.run(
            ["/bin/cp", "-a", "\(place.path)/one", "\(place.path)/two"])
        #expect(copied.code == 0)
        let before = Self.pairs(file).count
        for home in ["one", "two"] {
            for number in 0..<3 {
                try run(["put", "notes", "k\(number)", #"{"t":"\#(home) \#(number)"}"#, "--offline"], home: home)
            }
            // Killed at any point, and started again: the same edit is written again.
            for _ in 0..<3 {
                let killed = try ChildProcess(
                    [Programs.thicket, "put", "notes", "k9", #"{"t":"\#(home)"}"#, "--offline"],
                    variables: variables(home))
                let size = Self.pairs(file).count
                // Once the edit is stored, the same edit writes nothing.
                let isSeen = Steady.waitFor {
                    Self.pairs(file).count > size || killed.hasEnded ? true : nil
                }
                #expect(isSeen == true)
                killed.signal(SIGKILL)
                _ = try killed.finish()
            }
            try run(["put", "notes", "k9", #"{"t":"\#(home), again"}"#], home: home)
        }
        let (count, twice) = Self.pairs(file)
        #expect(before > 20 && count > before + 20, "\(before), \(count)")
        #expect(twice == 0)
    }

    @Test(
        "T19: the check of a run fails for a pair of key and nonce used twice for other bytes, and for a torn record"
    )
    func check() throws {
        let folder = TemporaryFolder("prove")
        let log = "✔ Suite \"T19: nonces that were used twice are seen\" passed after 0.1 seconds.\n"
        try Self.write(Array(log.utf8), to: folder.path + "/log")
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(
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
        let (one, two) = (RandomBytes.make(20), RandomBytes.make(20))
        let (this, that) = (RandomBytes.make(16), RandomBytes.make(16))
        let good = try prove([one + this, two + this, one + this, two + this])
        #expect(good.code == 0 && row(good).contains("4 seals of this run, none"), "\(good)")
        let bad = try prove([one + this, two + this, one + that])
        #expect(bad.code == 1 && row(bad).contains("FAILED") && row(bad).contains("1 pairs"), "\(bad)")
        #expect(bad.errors.contains(Hex.encode(Array(one[..<8]))))
        for nothing in [try prove(nil), try prove([])] {
            #expect(nothing.code == 0 && row(nothing).contains("not recorded") && !row(nothing).contains("passed"))
        }
        let torn = try prove([one + this, [1, 2, 3]])
        #expect(torn.code == 1 && torn.errors.contains("damaged"))
    }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(file) }
        guard file >= 0, Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw ProcessError("\(path) cannot be written")
        }
    }
}
