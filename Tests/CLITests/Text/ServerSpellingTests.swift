import Testing

@testable import ThicketCLI

@Suite("One server, spelled in two ways")
struct ServerSpellingTests {
    @Test(
        "the case of scheme and host, the scheme's own port and slashes at the end make no other server",
        arguments: [
            ("http://host", "http://host/"), ("http://host", "HTTP://HOST"), ("http://host", "http://Host:80//"),
            ("https://host", "https://host:443"), ("https://host:443/", "HTTPS://hosT"),
            ("http://host/Sync", "http://HOST:80/Sync/"), ("http://host:8080", "http://HOST:8080/"),
            ("http://[::1]", "http://[::1]:80/"), ("https://[FE80::1]:8443", "https://[fe80::1]:8443/"),
            ("ws://host", "http://host:80"), ("no address", "no address"),
        ])
    func one(left: String, right: String) {
        #expect(ServerSpelling.isSame(left, right) && ServerSpelling.isSame(right, left))
        #expect(ServerSpelling.of(left, like: right) == right, "the profile's spelling stays")
    }

    @Test(
        "another scheme, host, port or path is another server, and so is any other difference",
        arguments: [
            ("http://host", "https://host"), ("http://host:443", "https://host:443"),
            ("http://host", "http://host.org"),
            ("http://host", "http://host:81"), ("http://host", "http://host:8080"), ("https://host", "https://host:80"),
            ("http://host", "http://host:443"), ("http://host/a", "http://host/A"), ("http://host", "http://host/a"),
            ("http://host/a", "http://host/b"), ("http://host/a", "http://host/a/b"), ("http://[::1]", "http://[::80]"),
            ("http://host", "http://host."), ("http://localhost", "http://127.0.0.1"), ("http://host", "host"),
            ("no address", "NO ADDRESS"), ("http://host", ""), ("http://:80", "http://"),
        ])
    func others(left: String, right: String) {
        #expect(!ServerSpelling.isSame(left, right) && !ServerSpelling.isSame(right, left))
        #expect(ServerSpelling.of(left, like: right) == left, "what the call says counts")
    }

    @Test("a call without a server uses the profile's, and one without a profile its own")
    func absent() {
        #expect(ServerSpelling.of(nil, like: "http://host") == "http://host")
        #expect(ServerSpelling.of("HTTP://host", like: nil) == "HTTP://host")
        #expect(ServerSpelling.of(nil, like: nil) == nil)
    }
}
