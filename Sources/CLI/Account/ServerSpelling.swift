import ThicketClient
import ThicketProtocol

/// Compares addresses that are spelled differently and mean one server.
enum ServerSpelling {
    /// The server of a call, spelled as in its profile if both are the same address, so that a difference in spelling
    /// does not make the call ignore the profile.
    static func of(_ given: String?, like kept: String?) -> String? {
        guard let given else { return kept }
        guard let kept, isSame(given, kept) else { return given }
        return kept
    }

    /// Whether both addresses mean the same port of the same host and the same path: case of scheme and host, an
    /// explicit default port and slashes at the end do not matter (RFC 3986, 6.2.2.1 and 6.2.3). Text that is not an
    /// address equals only itself.
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
