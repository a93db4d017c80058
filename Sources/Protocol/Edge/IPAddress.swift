import ThicketPlatform
/// An internet address, IPv4 or IPv6, without a port. IPv4 is stored as IPv4-mapped IPv6 (RFC 4291, 2.5.5.2), so that
/// an address has one value in both forms.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The first 64 bits.
    public let high: UInt64
    /// The last 64 bits.
    public let low: UInt64

    private static let mappedPrefix: UInt64 = 0xFFFF_0000_0000

    init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

    /// Reads an address from bytes; nil for another count.
    ///
    /// - Parameter bytes: 4 or 16 bytes, in network order.
    public init?(bytes: some Collection<UInt8>) {
        let number: (ArraySlice<UInt8>) -> UInt64 = { $0.reduce(0) { $0 << 8 | UInt64($1) } }
        let bytes = [UInt8](bytes)
        switch bytes.count {
        case 4: self.init(high: 0, low: Self.mappedPrefix | number(bytes[...]))
        case 16: self.init(high: number(bytes[..<8]), low: number(bytes[8...]))
        default: return nil
        }
    }

    /// Reads `192.0.2.1` or `2001:db8::1`; nil for brackets, a port, a zone, and leading zeros, which some parsers read
    /// as octal.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count <= Self.textBytesMax else { return nil }
        let bytes = [UInt8](text.utf8)
        let parsed = bytes.contains(UInt8(ascii: ":")) ? Self.six(bytes) : Self.four(bytes[...])
        guard let parsed, let address = IPAddress(bytes: parsed) else { return nil }
        self = address
    }

    /// Bytes of the longest spelling of an address.
    private static let textBytesMax = 45

    /// Whether the address is an IPv4 address, stored as IPv4-mapped IPv6.
    public var isIPv4: Bool { high == 0 && low >> 32 == Self.mappedPrefix >> 32 }

    /// IPv4 as four numbers, IPv6 in the form of RFC 5952.
    public var description: String {
        if isIPv4 { return (0..<4).map { String(low >> (24 - 8 * UInt64($0)) & 0xFF) }.joined(separator: ".") }
        let groups: [UInt64] = (0..<8).map { ($0 < 4 ? high : low) >> (48 - 16 * UInt64($0 % 4)) & 0xFFFF }
        let zeros = Self.longestZeros(groups)
        let shown: ([UInt64]) -> String = { $0.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !zeros.isEmpty else { return shown(groups) }
        return shown(Array(groups[..<zeros.lowerBound])) + "::" + shown(Array(groups[zeros.upperBound...]))
    }

    /// The longest run of zero groups, the first one of equal length; empty unless it is longer than one group.
    private static func longestZeros(_ groups: [UInt64]) -> Range<Int> {
        var best = 0..<0
        var start = 0
        for (index, group) in groups.enumerated() {
            if group != 0 {
                start = index + 1
            } else if index + 1 - start > max(1, best.count) {
                best = start..<index + 1
            }
        }
        return best
    }

    private static func four(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes = [UInt8]()
        for part in parts {
            guard (1...3).contains(part.count), part.allSatisfy(HTTPText.isDigit),
                part.count == 1 || part.first != UInt8(ascii: "0")
            else { return nil }
            let number = part.reduce(0) { $0 * 10 + Int($1) - 0x30 }
            guard let byte = UInt8(exactly: number) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    private static func six(_ text: [UInt8]) -> [UInt8]? {
        guard let gap = (0..<max(0, text.count - 1)).first(where: { text[$0] == 0x3A && text[$0 + 1] == 0x3A })
        else {
            return groups(text[...]).flatMap { $0.count == 16 ? $0 : nil }
        }
        guard let before = gap == 0 ? [] : groups(text[..<gap], mayEndInFour: false),
            let after = gap + 2 == text.count ? [] : groups(text[(gap + 2)...]),
            before.count + after.count <= 14
        else { return nil }
        return before + [UInt8](repeating: 0, count: 16 - before.count - after.count) + after
    }

    /// Groups of four hexadecimal digits, separated by colons; the last may be an IPv4 address.
    private static func groups(_ text: ArraySlice<UInt8>, mayEndInFour: Bool = true) -> [UInt8]? {
        var bytes = [UInt8]()
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if mayEndInFour, index == parts.count - 1, part.contains(UInt8(ascii: ".")) {
                guard let four = four(part) else { return nil }
                return bytes + four
            }
            guard (1...4).contains(part.count) else { return nil }
            var number = 0
            for byte in part {
                guard let value = Hex.value(byte).map(Int.init) else { return nil }
                number = number << 4 | value
            }
            bytes += [UInt8(number >> 8), UInt8(number & 0xFF)]
        }
        return bytes
    }
}

/// A range of addresses that share a prefix: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
public struct IPNetwork: Hashable, Sendable, CustomStringConvertible {
    /// The first address of the network.
    public let address: IPAddress
    /// Length of the prefix in bits, of 128.
    private let bits: Int

    /// Reads `address` or `address/length`.
    ///
    /// - Returns: nil for a text in another form, and for an address with bits set after the prefix.
    public init?(_ text: some StringProtocol) {
        let parts: [Substring] = Substring(text).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let first = parts.first, let address = IPAddress(first) else {
            return nil
        }
        self.address = address
        let most = address.isIPv4 ? 32 : 128
        guard parts.count == 2 else {
            bits = 128
            return
        }
        let digits: Substring = parts[1]
        guard (1...3).contains(digits.utf8.count), digits.utf8.allSatisfy(HTTPText.isDigit),
            let length = Int(digits),
            length <= most
        else { return nil }
        bits = 128 - most + length
        let mask = Self.mask(bits)
        guard address.high & ~mask.high == 0, address.low & ~mask.low == 0 else { return nil }
    }

    /// Whether the address is in the network.
    public func contains(_ other: IPAddress) -> Bool {
        let mask = Self.mask(bits)
        return other.high & mask.high == address.high && other.low & mask.low == address.low
    }

    private static func mask(_ bits: Int) -> (high: UInt64, low: UInt64) {
        let part: (Int) -> UInt64 = { $0 <= 0 ? 0 : $0 >= 64 ? .max : ~(.max >> UInt64($0)) }
        return (part(bits), part(bits - 64))
    }

    /// The network in CIDR notation; a single address without a length.
    public var description: String { bits == 128 ? "\(address)" : "\(address)/\(address.isIPv4 ? bits - 96 : bits)" }
}
