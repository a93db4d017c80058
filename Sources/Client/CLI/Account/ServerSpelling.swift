import ThicketClient
import ThicketProtocol

/// Addresses that are spelled in two ways and mean one server.
enum ServerSpelling {
    /// The server of a call: spelled as its profile has it where both are the same place, so that nothing of the
    /// profile is left aside for a letter.
    static func of(_ given: String?, like kept: String?) -> String? {
        guard let given else { return kept }
        guard let kept, isSame(given, kept) else { return given }
        return kept
    }

    /// Whether both lead to the same port of the same host and to the same path: letters of scheme and host may be
    /// large or small, the scheme's own port said or not, and slashes stand at the end (RFC 3986, 6.2.2.1 and 6.2.3).
    /// What is no address is the same as itself.
    static func isSame(_ left: String, _ right: String) -> Bool {
        guard let one = plain(left), let other = plain(right) else { return same(left, right) }
        return same(one, other)
    }

    private static func plain(_ address: String) -> String? {
        let endpoint: Endpoint
        do throws(ClientError) { endpoint = try Endpoint(address) } catch { return nil }
        let (scheme, port) = endpoint.isSecure ? ("https://", ":443") : ("http://", ":80")
        let authority = endpoint.authority.lowercased()
        let isUsual = authority.hasSuffix(port) && !same(authority, port)
        return scheme + (isUsual ? String(authority.dropLast(port.count)) : authority) + endpoint.prefix
    }
}
