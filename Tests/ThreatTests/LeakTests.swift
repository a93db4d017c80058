import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketThreats

@Suite("Secrets in logs, answers and files", .blocking)
struct LeakTests {
    @Test(
        "T22: no login leaves token, password or key in debug log, metrics, refusals, files, mail, backup or crash text"
    )
    func leaks() throws {
        let house = try ThreatHouse(
            "leaks", ["--log-level", "debug"],
            variables: ["SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no"])
        let endpoint = try EveryEndpoint(house)
        try endpoint.partnerTokens()
        try endpoint.partnerPasswords()
        try endpoint.accounts()
        try endpoint.sealedAccounts()
        let issued = try Daemon.command(
            house.folder.path, ["token", "create", "--app", ThreatHouse.app, "--user", "bob"], succeeding: true
        ).output.trimmed
        endpoint.keep("a token that an operator made", issued)
        #expect(endpoint.canaries.count > 20 && endpoint.refusals.count > 20, "\(endpoint.seen)")
        #expect(endpoint.seen.keys.allSatisfy { $0 < 500 || $0 == 500 }, "\(endpoint.seen)")

        var places: [(name: String, bytes: [UInt8])] = endpoint.refusals.map { ("the answer to \($0.asked)", $0.bytes) }
        let metrics = try house.caller().ask("GET", "/metrics")
        #expect(metrics.text.contains("thicket_partner_tokens_total{result=\"denied\"}"))
        places.append(("/metrics", metrics.body))
        let backup = "\(house.folder.path)/copy.db"
        for words in [
            ["backup", backup], ["check"], ["config"], ["token", "list", "--app", ThreatHouse.app],
            ["app", "key", "list", ThreatHouse.app], ["account", "list", "--app", ThreatHouse.app],
        ] {
            let outcome = try Daemon.command(house.folder.path, words, succeeding: true)
            places.append(("thicketd \(words[0])", Array((outcome.output + outcome.errors).utf8)))
        }
        // While the server runs, because then the write-ahead log of the database exists, too.
        let files = ThreatHouse.files(house.folder.path)
        for name in ["thicket.db", "thicket.db-wal", "copy.db", "server.key", "outbox/"] {
            #expect(files.contains { $0.path.contains("/" + name) && !$0.bytes.isEmpty }, "\(name) was not searched")
        }
        places += files.map { ($0.path, $0.bytes) }
        house.daemon.process.signal(SIGSEGV)
        // A process that is sent the signal, instead of failing itself, continues after its crash text.
        try house.daemon.process.wait(for: "Backtrace took")
        house.daemon.process.signal(SIGKILL)
        let end = try house.daemon.process.finish()
        #expect(end.errors.contains("level=debug event=access.denied"), "the log was not recorded")
        #expect(end.errors.contains("Program crashed"), "no crash text was recorded")
        places += [("log and crash text", Array(end.errors.utf8)), ("standard output", Array(end.output.utf8))]

        let secrets = CanarySearch(endpoint.canaries)
        for place in places {
            let found: [String] = secrets.findings(in: place.bytes, place: place.name)
            #expect(found.isEmpty, "\(found)")
        }
        // What users write is in the files of this scheme, and nowhere else.
        let contents = CanarySearch(endpoint.contents)
        for place in places where !place.name.hasPrefix(house.folder.path) {
            let found = contents.findings(in: place.bytes, place: place.name)
            #expect(found.isEmpty, "\(found)")
        }
        // Counterproof: permitted values are found.
        let stored = files.filter { $0.path.contains("/thicket.db") }.map(\.bytes)
        let hash = CanarySearch([Canary("hash", Hash.sha256(Array(endpoint.opaqueToken.utf8)))])
        #expect(stored.contains { !hash.found(in: $0).isEmpty }, "not even the hash of a token is in the database")
        #expect(stored.contains { !contents.found(in: $0).isEmpty }, "what a user wrote is not in the database")
    }

    @Test("T22: the search finds a secret in each of its spellings, at any offset")
    func search() {
        let secret: [UInt8] = Array("a canary, §7".utf8)
        let search = CanarySearch([Canary("it", secret)])
        for shift: Int in 0..<7 {
            let around: [UInt8] = RandomBytes.make(shift) + secret + RandomBytes.make(5)
            let spellings: [[UInt8]] = [
                around, Array(Base64.encode(around).utf8), Array(Base64.encodeURL(around).utf8),
                Array(Hex.encode(around).utf8), around.reversed(), around.flatMap { [$0, 0] },
            ]
            let text = String(repeating: "x", count: shift) + "a canary, §7" + "y"
            let units: [UInt16] = Array(text.utf16)
            let wide = [
                units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] },
                units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] },
            ]
            for spelling in spellings + wide {
                #expect(!search.found(in: spelling).isEmpty, "\(shift): \(spelling)")
            }
        }
        for other in [Array("a canary, §8".utf8), Array(secret.dropLast()), []] {
            #expect(search.found(in: other).isEmpty)
        }
    }
}

extension String {
    /// Without the line's end.
    var trimmed: String { String(prefix { $0 != "\n" }) }
}
