import Testing

@testable import ThicketServer

@Suite("Where clients come from")
struct ClientAddressTests {
    @Test(
        "IPv6 counts by its first 64 bits, IPv4 as it is, and everything else as it was",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("::1", "0:0:0:0::/64"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8:1:2::", "2001:db8:1:2::/64"), ("", ""),
            ("unix", "unix"), ("1:2:3", "1:2:3"),
        ])
    func counted(text: String, expected: String) { #expect(ClientAddress.counted(text) == expected) }
}
