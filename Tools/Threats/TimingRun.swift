import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketTestSupport

/// What an attacker learns from how long answers take (T12, T14, T16), and how long bad input keeps a server (T15). Against a
/// real server over loopback (docs/decisions/0032).
public enum TimingRun {
    public struct Settings: Sendable {
        /// Measurements of each kind where an answer costs no stretched password.
        public var count: Int = 2_000
        /// The same where it does: some 50 ms each.
        public var costly: Int = 200
        public var seed: UInt64 = 1
        public init() {}
    }

    /// Tries of one password for a name before the name has to wait.
    private static let triesPerName: Int = 4
    /// Milliseconds in which bad input is to be answered (spec, T15).
    private static let patience: Double = 50

    /// - Returns: what is wrong, as lines for a person.
    public static func run(_ settings: Settings, report: (String) -> Void) throws(ProcessError) -> [String] {
        let house: ThreatHouse = try .init(
            "timing",
            [
                "--log-level", "warning", "--failed-logins-per-minute", "1000000", "--registrations-per-minute",
                "1000000",
            ])
        var random: SeededRandom = .init(seed: settings.seed)
        var addresses: UInt32 = 0x02_0000
        var faults: [String] = []
        for probe: TimingProbe in try probes(house, settings) {
            var result: TimingProbe.Result = try probe.measure(port: house.port, addresses: &addresses, random: &random)
            report(line(probe, result))
            if !result.isPassed {
                // One in a thousand is told apart by chance; what is there is there again.
                result = try probe.measure(port: house.port, addresses: &addresses, random: &random)
                report("  again: " + line(probe, result))
            }
            if !result.isPassed { faults.append(line(probe, result)) }
        }
        let slow: (name: String, milliseconds: Double) = try slowest(house)
        report(
            "T15: 60 KiB and 2,500 levels: the slowest, \(slow.name), takes \(rounded(slow.milliseconds)) ms (bound: 50)"
        )
        if slow.milliseconds > patience { faults.append("T15: \(slow.name) takes \(rounded(slow.milliseconds)) ms") }
        if try house.daemon.terminate().code != 0 { faults.append("the server did not end well") }
        return faults
    }

    private static func line(_ probe: TimingProbe, _ result: TimingProbe.Result) -> String {
        let medians: String = zip(probe.kinds, result.medians).map { "\($0) \(rounded($1)) µs" }.joined(separator: ", ")
        return "\(probe.name), \(probe.count) each: medians \(medians); \(rounded(result.apart * 100)) % apart (≤ 5), "
            + "p \(rounded(result.probability)) (≥ 0.001): \(result.isPassed ? "not told apart" : "TOLD APART")"
    }

    private static func rounded(_ value: Double) -> String {
        value < 0.001 && value > 0 ? "\(value)" : "\((value * 1_000).rounded() / 1_000)"
    }

    // MARK: Probes

    private static func probes(_ house: ThreatHouse, _ settings: Settings) throws(ProcessError) -> [TimingProbe] {
        try [tokens(house, settings), signatures(house, settings)] + passwords(house, settings) + keys(house, settings)
    }

    private static func ask(_ house: ThreatHouse, _ apiKey: String, _ token: String) -> [UInt8] {
        Caller.request(
            "GET", "/api/v1/partner/\(ThreatHouse.partner)/customer/e1/publickey",
            [
                ("x-rezolve-partner-apikey", apiKey), ("authorization", "Bearer \(token)"),
                ("x-rezolve-device-id", "D"),
            ])
    }

    /// T12: an API key that nobody has, that of another partner, and a signature that is wrong.
    private static func tokens(_ house: ThreatHouse, _ settings: Settings) throws(ProcessError) -> TimingProbe {
        let made: String = try Daemon.command(house.folder.path, ["partner", "create"], succeeding: true).output
        guard let line: Substring = made.split(separator: "\n").first(where: { $0.hasPrefix("api key") }) else {
            throw ProcessError("no API key in: \(made)")
        }
        let others: String = .init(line.dropFirst("api key".count).drop { $0 == " " })
        let token: String = house.login("e1", "p1", device: "D")
        let wrong: String = flipped(token, at: 43)
        let requests: [[UInt8]] = [
            ask(house, "00000000-1111-4222-8333-444444444444", token), ask(house, others, token),
            ask(house, house.partnerKey, wrong),
        ]
        return TimingProbe(
            name: "T12, refused tokens", kinds: ["unknown API key", "another's API key", "wrong signature"],
            count: settings.count, roundsPerAddress: 100, status: 403
        ) { kind, _ in requests[kind] }
    }

    /// T14: wrong in the first byte of the signature, in the last.
    private static func signatures(_ house: ThreatHouse, _ settings: Settings) -> TimingProbe {
        let token: String = house.login("e1", "p1", device: "D")
        let requests: [[UInt8]] = [86, 3].map { ask(house, house.partnerKey, flipped(token, at: $0)) }
        return TimingProbe(
            name: "T14, wrong signatures", kinds: ["first byte", "last byte"], count: settings.count,
            roundsPerAddress: 50, status: 403
        ) { kind, _ in requests[kind] }
    }

    /// Another letter, so many from the end.
    private static func flipped(_ token: String, at distance: Int) -> String {
        var bytes: [UInt8] = Array(token.utf8)
        let place: Int = bytes.count - distance
        bytes[place] = bytes[place] == UInt8(ascii: "A") ? UInt8(ascii: "Q") : UInt8(ascii: "A")
        return String(decoding: bytes, as: UTF8.self)
    }

    /// T16: wrong passwords for names that somebody has, and for others, in both kinds of login.
    private static func passwords(_ house: ThreatHouse, _ settings: Settings) throws(ProcessError) -> [TimingProbe] {
        let caller: Caller = try house.caller()
        let (app, rua): ([(String, String)], [(String, String)]) = (
            [("x-simperium-api-key", house.apiKey)], [("x-rezolve-partner-apikey", house.partnerKey)]
        )
        // Both are tried twice, should the first time have told them apart; and warm up.
        for number: Int in 0...(2 * settings.costly + 50) / triesPerName {
            let body: String = #"{"username":"known\#(number)","password":"open sesame","phone":"1"}"#
            for (path, fields): (String, [(String, String)]) in [
                ("/1/\(ThreatHouse.app)/create/", app), ("/v2/credentials/register", rua),
            ] {
                let reply: Caller.Reply = try caller.ask("POST", path, fields, body: body)
                guard reply.status == 200 else { throw ProcessError("\(path): \(reply.status) \(reply.text)") }
            }
        }
        return [
            ("T16, logins of accounts", "/1/\(ThreatHouse.app)/authorize/", app, 401),
            ("T16, logins of a partner's users", "/v2/credentials/login", rua, 403),
        ].map { (name: String, path: String, fields: [(String, String)], status: Int) in
            // A name has four tries in all, also over two measurements.
            let names: Names = .init(triesPerName: triesPerName)
            return TimingProbe(
                name: name, kinds: ["known", "unknown"], count: settings.costly, roundsPerAddress: 50, status: status
            ) { kind, _ in
                let user: String = (kind == 0 ? "known" : "nobody") + "\(names.next(kind))"
                return Caller.request(
                    "POST", path, fields, body: #"{"deviceId":"D","username":"\#(user)","password":"a wrong one"}"#)
            }
        }
    }

    /// A name of an account with keys, or one that nobody has, next to it in the order of names: what is read for both stands
    /// on the same pages. Unknown names of another beginning are all answered from one row, which stays in the processor's
    /// nearest cache; that told them from known ones by half a microsecond, and so would any two groups of known names.
    private static func name(_ kind: Int, _ number: Int) -> String { "sealed\(number)" + (kind == 0 ? "b" : "a") }

    /// T16: how to stretch, and proofs that are wrong, of accounts with keys and of nobody.
    private static func keys(_ house: ThreatHouse, _ settings: Settings) throws(ProcessError) -> [TimingProbe] {
        let caller: Caller = try house.caller()
        let key: [(String, String)] = [("x-simperium-api-key", house.apiKey)]
        let base: String = "/1/\(ThreatHouse.app)/auth"
        let (a, salt): (String, String) = (
            Base64.encodeURL(.init(repeating: 7, count: 32)), Base64.encodeURL(.init(repeating: 3, count: 16))
        )
        for number: Int in 0...(2 * settings.count + 50) / triesPerName {
            let reply: Caller.Reply = try caller.ask(
                "POST", "\(base)/signup", key,
                body:
                    #"{"u":"\#(name(0, number))","a":"\#(a)","kdf":1,"salt":"\#(salt)","access":"\#(a)","bundle":"\#(a)","#
                    + #""recover":"\#(a)"}"#)
            guard reply.status == 200 else { throw ProcessError("signup: \(reply.status) \(reply.text)") }
        }
        let names: Names = .init(triesPerName: triesPerName)
        let wrong: String = Base64.encodeURL(.init(repeating: 8, count: 32))
        return [
            TimingProbe(
                name: "T16, how to stretch", kinds: ["known", "unknown"], count: settings.count, roundsPerAddress: 14,
                status: 200
            ) { kind, round in
                let user: String = name(kind, round / triesPerName)
                return Caller.request("POST", "\(base)/prelogin", key, body: #"{"u":"\#(user)"}"#)
            },
            TimingProbe(
                name: "T16, wrong proofs", kinds: ["known", "unknown"], count: settings.count, roundsPerAddress: 100,
                status: 401
            ) { kind, _ in
                // Not the names that the logins before have tried: an app counts tries of a name together.
                let user: String = name(kind, names.next(kind))
                return Caller.request(
                    "POST", "\(base)/login", key, body: #"{"u":"\#(user)","a":"\#(wrong)","device":"D"}"#)
            },
        ]
    }

    /// Numbers of names, each given out a few times, by kind.
    private final class Names {
        private let triesPerName: Int
        private var given: [Int] = [0, 0]
        init(triesPerName: Int) { self.triesPerName = triesPerName }

        func next(_ kind: Int) -> Int {
            defer { given[kind] += 1 }
            return given[kind] / triesPerName
        }
    }

    // MARK: Bad input

    /// T15: the input that takes longest, by the median of its tries.
    private static func slowest(_ house: ThreatHouse) throws(ProcessError) -> (name: String, milliseconds: Double) {
        let deep: String = String(repeating: "[", count: 2_500) + String(repeating: "]", count: 2_500)
        func filled(_ start: String, _ piece: String, _ end: String) -> String {
            start + String(repeating: piece, count: (60 << 10) / piece.utf8.count) + end
        }
        let bodies: [(String, String)] = [
            ("one name again and again", filled("{\"x\":1", ",\"x\":1", "}")), ("2,500 lists", deep),
            ("lists without end", filled("", "[", "")), ("a number of 60,000 digits", filled("{\"u\":", "9", "}")),
            ("a long text", filled("{\"u\":\"", "a", "\"}")), ("escapes", filled("{\"u\":\"", "\\u0041", "\"}")),
            ("a form", filled("", "a=%41&", "")), ("commas", filled("[", ",", "]")),
        ]
        let caller: Caller = try house.caller(source: 0x03_0001)
        let token: [(String, String)] = house.partnerFields(
            SignedTokens.registration(user: "p7", ends: ThreatHouse.now + 900, key: house.authKey))
        let key: [(String, String)] = [("x-simperium-api-key", house.apiKey)]
        var worst: (name: String, milliseconds: Double) = ("nothing", 0)
        for (name, body): (String, String) in bodies {
            for (path, fields): (String, [(String, String)]) in [
                ("/1/\(ThreatHouse.app)/auth/login", key), ("/api/v1/authentication/register", token),
            ] {
                var times: [Double] = []
                for _ in 0..<5 {
                    let begun: Int64 = Steady.milliseconds()
                    let reply: Caller.Reply = try caller.ask("POST", path, fields, body: body)
                    times.append(Double(Steady.milliseconds() - begun))
                    guard reply.status == 400 else { throw ProcessError("\(path), \(name): \(reply.status)") }
                }
                let median: Double = RankTest.median(times)
                if median >= worst.milliseconds { worst = ("\(name) to \(path)", median) }
            }
        }
        return worst
    }
}
