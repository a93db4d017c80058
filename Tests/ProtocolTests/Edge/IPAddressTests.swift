import Testing
import ThicketTestSupport

@testable import ThicketProtocol

@Suite("Internet addresses and networks")
struct IPAddressTests {
    @Test(
        "addresses are read, and written in one form",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
            ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:DB8::1", "2001:db8::1"),
            ("2001:0db8:0000:0000:0001:0000:0000:0001", "2001:db8::1:0:0:1"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
            ("1:0:3:4:5:6:7:8", "1:0:3:4:5:6:7:8"), ("::ffff:192.0.2.1", "192.0.2.1"), ("::ffff:c000:201", "192.0.2.1"),
            ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ])
    func good(_ text: String, _ written: String) { #expect(IPAddress(text)?.description == written) }

    @Test(
        "a text that is not an address, or could be read in two ways, is refused",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.04", "0x1.2.3.4", "1.2.3.4 ", " 1.2.3.4",
            "+1.2.3.4",
            "1.2.3.", ":", ":::", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7", "::1%eth0", "[::1]",
            "::1.2.3",
            "::g", "1.2.3.4:80", "::1.2.3.4:5", "1.2.3.4::", "localhost", "１.2.3.4", "1:2:3:4:5:6:7:8::",
        ])
    func bad(_ text: String) { #expect(IPAddress(text) == nil) }

    @Test("any address is read back as it was written")
    func roundTrip() {
        var random = SeededRandom(seed: 4)
        for _ in 0..<2_000 {
            // Many zero groups, so that they meet in all ways.
            let bytes = (0..<8).flatMap { _ in
                random.next() % 2 == 0 ? [0, 0] : [UInt8(random.next() % 256), UInt8(random.next() % 256)]
            }
            let address: IPAddress? = .init(bytes: bytes)
            #expect(address != nil && IPAddress(address?.description ?? "") == address)
        }
    }

    @Test(
        "a network contains the addresses that begin as it does, and no others",
        arguments: [
            (
                "10.0.0.0/8", ["10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1"],
                ["11.0.0.0", "9.255.255.255", "::a00:1"]
            ),
            ("192.0.2.7", ["192.0.2.7"], ["192.0.2.6", "::c000:207"]),
            ("192.0.2.6/31", ["192.0.2.6", "192.0.2.7"], ["192.0.2.5", "192.0.2.8"]),
            ("0.0.0.0/0", ["1.2.3.4", "255.0.0.1"], ["::1", "2001:db8::"]),
            ("2001:db8::/33", ["2001:db8::", "2001:db8:7fff::1"], ["2001:db8:8000::"]),
            ("2001:db8::1:0:0:0/80", ["2001:db8::1:0:0:0", "2001:db8::1:ffff:0:1"], ["2001:db8::2:0:0:0"]),
            ("::/0", ["::", "1.2.3.4", "ffff::"], []), ("::1/128", ["::1"], ["::2"]),
        ])
    func networks(_ text: String, _ inside: [String], _ outside: [String]) throws {
        let network = try #require(IPNetwork(text))
        for address in inside { #expect(network.contains(try #require(IPAddress(address))), "\(address)") }
        for address in outside { #expect(!network.contains(try #require(IPAddress(address))), "\(address)") }
        #expect(IPNetwork(network.description) == network)
    }

    @Test(
        "a text that is not a network is refused",
        arguments: [
            "10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "/8", "", "a/8", "10/8",
            "2001:db8::1/64",
        ])
    func badNetworks(_ text: String) { #expect(IPNetwork(text) == nil) }
}
