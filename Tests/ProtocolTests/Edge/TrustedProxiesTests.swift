import Testing

@testable import ThicketProtocol

/// Which proxies may state a client's address, and which of several addresses counts.
@Suite("X-Forwarded-For")
struct TrustedProxiesTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let trusted: String
        let peer: String
        let fields: [String]
        let client: String
        init(_ name: String, _ trusted: String, _ peer: String, _ fields: [String], _ client: String) {
            (testDescription, self.trusted, self.peer, self.fields, self.client) = (name, trusted, peer, fields, client)
        }
    }

    static let cases = [
        Case("nobody is trusted", "none", "10.0.0.1", ["203.0.113.5"], "10.0.0.1"),
        Case("a stranger's field counts for nothing", "10.0.0.0/8", "198.51.100.1", ["203.0.113.5"], "198.51.100.1"),
        Case("a proxy's does", "10.0.0.0/8", "10.0.0.1", ["203.0.113.5"], "203.0.113.5"),
        Case("without the field the proxy stands for itself", "10.0.0.0/8", "10.0.0.1", [], "10.0.0.1"),
        Case(
            "what the client wrote before is not looked at", "10.0.0.0/8", "10.0.0.1", ["1.1.1.1, 203.0.113.5"],
            "203.0.113.5"),
        Case(
            "not even when it names a proxy", "10.0.0.0/8", "10.0.0.1", ["10.9.9.9, 203.0.113.5"], "203.0.113.5"),
        Case(
            "several proxies", "10.0.0.0/8, 192.0.2.7", "10.0.0.1", ["1.1.1.1,203.0.113.5, 192.0.2.7 ,10.0.0.9"],
            "203.0.113.5"),
        Case(
            "several fields are one list, in order", "10.0.0.0/8", "10.0.0.1", ["1.1.1.1", "203.0.113.5", "10.0.0.2"],
            "203.0.113.5"),
        Case("proxies only: the first of them", "10.0.0.0/8", "10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        Case(
            "a word that is no address stops the search", "10.0.0.0/8", "10.0.0.1", ["203.0.113.5, unknown"], "10.0.0.1"
        ),
        Case("and between proxies too", "10.0.0.0/8", "10.0.0.1", ["203.0.113.5, , 10.0.0.2"], "10.0.0.2"),
        Case("an empty field", "10.0.0.0/8", "10.0.0.1", [""], "10.0.0.1"),
        Case("ports are cut off", "10.0.0.0/8", "10.0.0.1", ["203.0.113.5:4711"], "203.0.113.5"),
        Case("IPv6", "2001:db8::/32", "2001:db8::1", ["2001:db9::5"], "2001:db9::5"),
        Case("IPv6 with a port", "::1", "::1", ["[2001:db9::5]:80"], "2001:db9::5"),
        Case("IPv6 in brackets", "::1", "::1", ["[2001:db9::5]"], "2001:db9::5"),
        Case("brackets around IPv4 are nobody's", "::1", "::1", ["[1.2.3.4]:80"], "::1"),
        Case("a bad port is nobody's", "::1", "::1", ["1.2.3.4:x"], "::1"),
        Case("IPv4 that came as IPv6", "10.0.0.0/8", "::ffff:10.0.0.1", ["::ffff:203.0.113.5"], "203.0.113.5"),
        Case(
            "very many proxies: the search has an end", "10.0.0.0/8", "10.0.0.1",
            ["203.0.113.5" + String(repeating: ", 10.0.0.2", count: 40)], "10.0.0.2"),
    ]

    @Test("the client is the last address that is not a proxy's", arguments: cases)
    func client(_ each: Case) throws {
        let trusted = try TrustedProxies.parse(each.trusted).get()
        let fields = HTTPFields(
            [HTTPField("host", "x")] + each.fields.map { HTTPField("x-forwarded-for", $0) }
                + [HTTPField("forwarded", "for=9.9.9.9"), HTTPField("x-real-ip", "9.9.9.9")])
        let client = trusted.client(of: try #require(IPAddress(each.peer)), fields)
        #expect(client.description == each.client)
    }

    @Test("an unreadable list is refused with the word that is wrong")
    func badLists() {
        for (text, word) in [
            ("10.0.0.0/8,", "''"), ("10.0.0.1/8", "'10.0.0.1/8'"), ("proxy.example", "'proxy.example'"),
            ("None", "'None'"),
            (Array(repeating: "10.0.0.1", count: 65).joined(separator: ","), "more than 64"),
        ] {
            guard case .failure(let problem) = TrustedProxies.parse(text) else {
                Issue.record("\(text) was taken")
                continue
            }
            #expect(problem.text.contains(word), "\(problem.text)")
        }
    }
}
