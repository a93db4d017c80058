import Testing

@testable import ThicketServer

@Suite("Client addresses")
struct ClientAddressTests {
    @Test(
        "an IPv6 address is counted by its first 64 bits, an IPv4 address whole, and other text unchanged",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("::1", "0:0:0:0::/64"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8:1:2::", "2001:db8:1:2::/64"), ("", ""),
            ("unix", "unix"), ("1:2:3", "1:2:3"),
        ])
    func counted(text: String, expected: String) { #expect(ClientAddress.counted(text) == expected) }
}
