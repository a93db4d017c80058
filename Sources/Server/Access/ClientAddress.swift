import Glibc

/// Where a client comes from, as far as attempts are counted by it.
enum ClientAddress {
    /// - Parameter text: an address of IPv4 or IPv6.
    /// - Returns: the same; of IPv6 the first 64 bits, since whoever has one such address has all that begin so (RFC
    ///   4291, 2.5.1), and of an IPv4 address in IPv6 clothes that address.
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
