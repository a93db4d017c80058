import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketTestSupport

/// The information that the times of answers give to an attacker (T12, T14, T16), and the time that bad input costs a
/// server (T15). Against a real server over loopback (docs/decisions/0032).
public enum TimingRun {
    public struct Settings: Sendable {
        /// Measurements of each kind for answers without a password stretching.
        public var count: Int = 2_000
        /// The same for answers with one: some 50 ms each.
        public var costly: Int = 200
        public var seed: UInt64 = 1
        public init() {}
    }

    /// Password attempts for a name before the name is delayed.
    private static let triesPerName = 4
    /// Milliseconds in which bad input must be answered (spec, T15).
    private static let patience: Double = 50

    /// - Returns: the faults, as lines for a person.
    public static func run(_ settings: Settings, report: (String) -> Void) throws(ProcessError) -> [String] {
        let house = try ThreatHouse(
            "timing",
            [
                "--log-level", "warning", "--failed-logins-per-minute", "1000000", "--registrations-per-minute",
                "1000000",
            ])
        var random = SeededRandom(seed: settings.seed)
        var addresses: UInt32 = 0x02_0000
        var faults = [String]()
        for probe in try probes(house, settings) {
            var result = try probe.measure(port: house.port, addresses: &addresses, random: &random)
            report(line(probe, result))
            if !result.isPassed {
                // One in a thousand differs by chance; a real difference appears again.
                result = try probe.measure(port: house.port, addresses: &addresses, random: &random)
                report("  again: " + line(probe, result))
            }
            if !result.isPassed { faults.append(line(probe, result)) }
        }
        let slow = try slowest(house)
        report(
            "T15: 60 KiB and 2,500 levels: the slowest, \(slow.name), takes \(rounded(slow.milliseconds)) ms (bound: 50)"
        )
        if slow.milliseconds > patience { faults.append("T15: \(slow.name) takes \(rounded(slow.milliseconds)) ms") }
        if try house.daemon.terminate().code != 0 { faults.append("the server did not end well") }
        return faults
    }

    private static func line(_ probe: TimingProbe, _ result: TimingProbe.Result) -> String {
        let medians = zip(probe.kinds, result.medians).map { "\($0) \(rounded($1)) µs" }.joined(separator: ", ")
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

    /// T12: an unknown API key, that of another partner, and a wrong signature.
    private static func tokens(_ house: ThreatHouse, _ settings: Settings) throws(ProcessError) -> TimingProbe {
        let made = try Daemon.command(house.folder.path, ["partner", "create"], succeeding: true).output
        guard let line = made.split(separator: "\n").first(where: { $0.hasPrefix("api key") }) else {
            throw ProcessError("no API key in: \(made)")
        }
        let others = String(line.dropFirst("api key".count).drop { $0 == " " })
        let token = house.login("e1", "p1", device: "D")
        let wrong = flipped(token, at: 43)
        let requests = [
            ask(house, "00000000-1111-4222-8333-444444444444", token), ask(house, others, token),
            ask(house, house.partnerKey, wrong),
        ]
        return TimingProbe(
            name: "T12, refused tokens", kinds: ["unknown API key", "another's API key", "wrong signature"],
            count: settings.count, roundsPerAddress: 100, status: 403
        ) { kind, _ in requests[kind] }
    }

    /// T14: a signature wrong in its first byte, and one wrong in its last.
    private static func signatures(_ house: ThreatHouse, _ settings: Settings) -> TimingProbe {
        let token = house.login("e1", "p1", device: "D")
        let requests = [86, 3].map { ask(house, house.partnerKey, flipped(token, at: $0)) }
        return TimingProbe(
            name: "T14, wrong signatures", kinds: ["first byte", "last byte"], count: settings.count,
            roundsPerAddress: 50, status: 403
        ) { kind, _ in requests[kind] }
    }

    /// Changes the letter at a distance from the end.
    private static func flipped(_ token: String, at distance: Int) -> String {
        var bytes: [UInt8] = Array(token.utf8)
        let place = bytes.count - distance
        bytes[place] = bytes[place] == UInt8(ascii: "A") ? UInt8(ascii: "Q") : UInt8(ascii: "A")
        return String(decoding: bytes, as: UTF8.self)
    }

    /// T16: wrong passwords for existing and for unknown names, in both kinds of login.
    private static func passwords(_ house: ThreatHouse, _ settings: Settings) throws(ProcessError) -> [TimingProbe] {
        let caller = try house.caller()
        let (app, rua) = (
            [("x-simperium-api-key", house.apiKey)], [("x-rezolve-partner-apikey", house.partnerKey)]
        )
        // Both may be measured twice, if the first measurement shows a difference; and the warm-up needs names.
        for number in 0...(2 * settings.costly + 50) / triesPerName {
            let body = #"{"username":"known\#(number)","password":"open sesame","phone":"1"}"#
            for (path, fields) in [
                ("/1/\(ThreatHouse.app)/create/", app), ("/v2/credentials/register", rua),
            ] {
                let reply = try caller.ask("POST", path, fields, body: body)
                guard reply.status == 200 else { throw ProcessError("\(path): \(reply.status) \(reply.text)") }
            }
        }
        return [
            ("T16, logins of accounts", "/1/\(ThreatHouse.app)/authorize/", app, 401),
            ("T16, logins of a partner's users", "/v2/credentials/login", rua, 403),
        ].map { (name: String, path: String, fields: [(String, String)], status: Int) in
            // A name has four attempts in all, also over two measurements.
            let names = Names(triesPerName: triesPerName)
            return TimingProbe(
                name: name, kinds: ["known", "unknown"], count: settings.costly, roundsPerAddress: 50, status: status
            ) { kind, _ in
                let user = (kind == 0 ? "known" : "nobody") + "\(names.next(kind))"
                return Caller.request(
                    "POST", path, fields, body: #"{"deviceId":"D","username":"\#(user)","password":"a wrong one"}"#)
            }
        }
    }

    /// A name of an account with keys, or an unknown one next to it in the order of names, so that both are read from
    /// the same pages. Unknown names with another beginning are all answered from one row, which stays in the
    /// processor's nearest cache; that distinguished them from known ones by half a microsecond, as it would any two
    /// groups of known names.
    private static func name(_ kind: Int, _ number: Int) -> String { "sealed\(number)" + (kind == 0 ? "b" : "a") }

    /// T16: stretching parameters, and wrong proofs, for accounts with keys and for unknown names.
    private static func keys(_ house: ThreatHouse, _ settings: Settings) throws(ProcessError) -> [TimingProbe] {
        let caller = try house.caller()
        let key = [("x-simperium-api-key", house.apiKey)]
        let base = "/1/\(ThreatHouse.app)/auth"
        let (a, salt) = (
            Base64.encodeURL(.init(repeating: 7, count: 32)), Base64.encodeURL(.init(repeating: 3, count: 16))
        )
        for number in 0...(2 * settings.count + 50) / triesPerName {
            let reply = try caller.ask(
                "POST", "\(base)/signup", key,
                body:
                    #"{"u":"\#(name(0, number))","a":"\#(a)","kdf":1,"salt":"\#(salt)","access":"\#(a)","bundle":"\#(a)","#
                    + #""recover":"\#(a)"}"#)
            guard reply.status == 200 else { throw ProcessError("signup: \(reply.status) \(reply.text)") }
        }
        let names = Names(triesPerName: triesPerName)
        let wrong = Base64.encodeURL(.init(repeating: 8, count: 32))
        return [
            TimingProbe(
                name: "T16, how to stretch", kinds: ["known", "unknown"], count: settings.count, roundsPerAddress: 14,
                status: 200
            ) { kind, round in
                let user = name(kind, round / triesPerName)
                return Caller.request("POST", "\(base)/prelogin", key, body: #"{"u":"\#(user)"}"#)
            },
            TimingProbe(
                name: "T16, wrong proofs", kinds: ["known", "unknown"], count: settings.count, roundsPerAddress: 100,
                status: 401
            ) { kind, _ in
                // Not the names of the earlier logins: an app counts all attempts for a name together.
                let user = name(kind, names.next(kind))
                return Caller.request(
                    "POST", "\(base)/login", key, body: #"{"u":"\#(user)","a":"\#(wrong)","device":"D"}"#)
            },
        ]
    }

    /// Numbers of names, each returned a few times, by kind.
    private final class Names {
        private let triesPerName: Int
        private var given = [0, 0]
        init(triesPerName: Int) { self.triesPerName = triesPerName }

        func next(_ kind: Int) -> Int {
            defer { given[kind] += 1 }
            return given[kind] / triesPerName
        }
    }

    // MARK: Bad input

    /// T15: the slowest input, by the median of its attempts.
    private static func slowest(_ house: ThreatHouse) throws(ProcessError) -> (name: String, milliseconds: Double) {
        let deep = String(repeating: "[", count: 2_500) + String(repeating: "]", count: 2_500)
        func filled(_ start: String, _ piece: String, _ end: String) -> String {
            start + String(repeating: piece, count: (60 << 10) / piece.utf8.count) + end
        }
        let bodies = [
            ("one name again and again", filled("{\"x\":1", ",\"x\":1", "}")), ("2,500 lists", deep),
            ("lists without end", filled("", "[", "")), ("a number of 60,000 digits", filled("{\"u\":", "9", "}")),
            ("a long text", filled("{\"u\":\"", "a", "\"}")), ("escapes", filled("{\"u\":\"", "\\u0041", "\"}")),
            ("a form", filled("", "a=%41&", "")), ("commas", filled("[", ",", "]")),
        ]
        let caller = try house.caller(source: 0x03_0001)
        let token = house.partnerFields(
            SignedTokens.registration(user: "p7", ends: ThreatHouse.now + 900, key: house.authKey))
        let key = [("x-simperium-api-key", house.apiKey)]
        var worst: (name: String, milliseconds: Double) = ("nothing", 0)
        for (name, body) in bodies {
            for (path, fields): (String, [(String, String)]) in [
                ("/1/\(ThreatHouse.app)/auth/login", key), ("/api/v1/authentication/register", token),
            ] {
                var times = [Double]()
                for _ in 0..<5 {
                    let begun = Steady.milliseconds()
                    let reply = try caller.ask("POST", path, fields, body: body)
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
