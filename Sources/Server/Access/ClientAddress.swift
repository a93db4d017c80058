import Glibc

/// The form of a client's address under which its attempts are counted.
enum ClientAddress {
    /// - Parameter text: an address of IPv4 or IPv6.
    /// - Returns: the same address; for IPv6 its first 64 bits, because a client with one such address usually has
    ///   all with that prefix (RFC 4291, 2.5.1); for an IPv4-mapped IPv6 address the IPv4 address.
    static func counted(_ text: String) -> String {
        var address = in6_addr()
        guard text.utf8.contains(UInt8(ascii: ":")), inet_pton(AF_INET6, text, &address) == 1 else { return text }
        let bytes: [UInt8] = withUnsafeBytes(of: &address) { Array($0) }
        if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
            return bytes[12...].map { String($0) }.joined(separator: ".")
        }
        let groups = stride(from: 0, to: 8, by: 2).map { place in
            String(UInt16(bytes[place]) << 8 | UInt16(bytes[place + 1]), radix: 16)
        }
        return groups.joined(separator: ":") + "::/64"
    }
}
