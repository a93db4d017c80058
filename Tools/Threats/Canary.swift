import Glibc
import ThicketCrypto
import ThicketPlatform

/// A secret that must not be found in certain places, in any of its spellings: as it is, in UTF-16 of both orders, each
/// of these reversed, in hex, percent encoding and base64, and in JSON's escapes. `CanaryHunt` finds deflated, doubly
/// encoded and hashed ones.
public struct Canary: Sendable {
    /// Its name in a finding.
    public let name: String
    /// Its spellings, each with its own name.
    public let forms: [(name: String, bytes: [UInt8])]

    /// - Parameter secret: 8 bytes or more; shorter ones would be found by chance.
    public init(_ name: String, _ secret: [UInt8]) {
        precondition(secret.count >= 8, "a canary of \(secret.count) bytes is found by chance")
        self.name = name
        var forms: [(name: String, bytes: [UInt8])] = Self.forms(of: secret).map { ($0.isEmpty ? "as it is" : $0, $1) }
        let units: [UInt16]? = String(validating: secret, as: UTF8.self).map { Array($0.utf16) }
        if let units {
            forms.append(("in JSON's escapes", units.flatMap { Self.escape($0, Self.lower) }))
            forms.append(("in JSON's escapes, upper", units.flatMap { Self.escape($0, Self.upper) }))
            for (order, isLittle) in [("little-endian", true), ("big-endian", false)] {
                let bytes = units.flatMap { (unit: UInt16) -> [UInt8] in
                    let (high, low) = (UInt8(unit >> 8), UInt8(unit & 0xFF))
                    return isLittle ? [low, high] : [high, low]
                }
                forms += Self.forms(of: bytes).map { ("in UTF-16, \(order)" + ($0.isEmpty ? "" : ", \($0)"), $1) }
            }
        }
        // For binary secrets and non-ASCII texts: the output of a program that treats bytes as letters.
        if units?.count != secret.count { forms.append(("with each byte in 16 bits", secret.flatMap { [$0, 0] })) }
        self.forms = forms
    }

    /// The spellings of bytes: as they are (named ""), reversed, in hex, percent encoding and base64.
    private static func forms(of secret: [UInt8]) -> [(name: String, bytes: [UInt8])] {
        var forms: [(name: String, bytes: [UInt8])] = [("", secret), ("reversed", secret.reversed())]
        for (name, alphabet) in [("hex", lower), ("upper hex", upper)] {
            forms.append(("in \(name)", secret.flatMap { digits($0, alphabet) }))
            forms.append(("in percents with \(name)", secret.flatMap { [UInt8(ascii: "%")] + digits($0, alphabet) }))
        }
        // Inside of other bytes base64 has one of three alignments; the letters that neighbours change are left out.
        for shift in 0..<3 {
            let text: [UInt8] = Array(Base64.encode([UInt8](repeating: 0, count: shift) + secret).utf8)
            let body: ArraySlice<UInt8> = text.filter { $0 != UInt8(ascii: "=") }.dropFirst(shift == 0 ? 0 : shift + 1)
            let sure: [UInt8] = Array(body.dropLast((shift + secret.count) % 3 == 0 ? 0 : 1))
            forms.append(("in base64, shifted by \(shift)", sure))
            forms.append(("in base64url, shifted by \(shift)", sure.map(url)))
        }
        return forms
    }

    public init(_ name: String, _ secret: String) { self.init(name, Array(secret.utf8)) }

    private static let lower: [UInt8] = Array("0123456789abcdef".utf8)
    private static let upper: [UInt8] = Array("0123456789ABCDEF".utf8)

    private static func digits(_ byte: UInt8, _ alphabet: [UInt8]) -> [UInt8] {
        [alphabet[Int(byte >> 4)], alphabet[Int(byte & 15)]]
    }

    /// `\\u0063`: our programs do not write letters in this form, but any reader of JSON accepts it.
    private static func escape(_ unit: UInt16, _ alphabet: [UInt8]) -> [UInt8] {
        Array("\\u".utf8) + digits(UInt8(unit >> 8), alphabet) + digits(UInt8(unit & 0xFF), alphabet)
    }

    private static func url(_ letter: UInt8) -> UInt8 {
        switch letter {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        default: letter
        }
    }
}

/// Searches for many canaries in all their spellings at once, in one pass.
public struct CanarySearch: Sendable {
    private let canaries: [Canary]
    /// By the first eight bytes of a spelling, as a number.
    private var spellings: [UInt64: [(canary: Int, form: Int)]] = [:]
    /// Whether any spelling begins with these two bytes.
    private var begins = [Bool](repeating: false, count: 1 << 16)

    public init(_ canaries: [Canary]) {
        self.canaries = canaries
        for (place, canary) in canaries.enumerated() {
            for (form, spelling) in canary.forms.enumerated() {
                precondition(spelling.bytes.count >= 8, "a spelling of \(spelling.bytes.count) bytes")
                let start = spelling.bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
                spellings[start, default: []].append((place, form))
                begins[Int(start & 0xFFFF)] = true
            }
        }
    }

    /// The indices of the canaries that are in `bytes`, with the first spelling of each.
    public func found(in bytes: [UInt8]) -> [Int: String] {
        var found = [Int: String]()
        guard bytes.count >= 8 else { return found }
        bytes.withUnsafeBytes { (hay: UnsafeRawBufferPointer) in
            begins.withUnsafeBufferPointer { (begins: UnsafeBufferPointer<Bool>) in
                for place in 0...(hay.count - 8) {
                    let start = hay.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    guard begins[Int(start & 0xFFFF)], let starts = spellings[start] else { continue }
                    for (canary, form) in starts where found[canary] == nil {
                        let spelling = canaries[canary].forms[form]
                        if hay[place...].starts(with: spelling.bytes) { found[canary] = spelling.name }
                    }
                }
            }
        }
        return found
    }

    /// The findings, as lines for a person.
    public func findings(in bytes: [UInt8], place: String) -> [String] {
        found(in: bytes).map { "\(canaries[$0.key].name) \($0.value) in \(place)" }.sorted()
    }
}
