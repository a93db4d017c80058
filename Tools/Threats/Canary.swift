import Glibc
import ThicketCrypto
import ThicketPlatform

/// Something that must not be found in places where it does not belong, in any of the spellings it may have there: as it is,
/// in UTF-16 of both orders, each of these reversed, in hex, percents and base64, and in JSON's escapes. What is deflated,
/// packed twice or hashed is `CanaryHunt`'s.
public struct Canary: Sendable {
    /// What it is, for the person who reads that it was found.
    public let name: String
    /// Its spellings, each with its own name.
    public let forms: [(name: String, bytes: [UInt8])]

    /// - Parameter secret: 8 bytes or more; of fewer, hits by chance would mean nothing.
    public init(_ name: String, _ secret: [UInt8]) {
        precondition(secret.count >= 8, "a canary of \(secret.count) bytes is found by chance")
        self.name = name
        var forms: [(name: String, bytes: [UInt8])] = Self.forms(of: secret).map { ($0.isEmpty ? "as it is" : $0, $1) }
        let units: [UInt16]? = String(validating: secret, as: UTF8.self).map { Array($0.utf16) }
        if let units: [UInt16] {
            forms.append(("in JSON's escapes", units.flatMap { Self.escape($0, Self.lower) }))
            forms.append(("in JSON's escapes, upper", units.flatMap { Self.escape($0, Self.upper) }))
            for (order, isLittle): (String, Bool) in [("little-endian", true), ("big-endian", false)] {
                let bytes: [UInt8] = units.flatMap { (unit: UInt16) -> [UInt8] in
                    let (high, low): (UInt8, UInt8) = (UInt8(unit >> 8), UInt8(unit & 0xFF))
                    return isLittle ? [low, high] : [high, low]
                }
                forms += Self.forms(of: bytes).map { ("in UTF-16, \(order)" + ($0.isEmpty ? "" : ", \($0)"), $1) }
            }
        }
        // Of what is no text, or has more than ASCII: what a program makes that takes bytes for letters.
        if units?.count != secret.count { forms.append(("with each byte in 16 bits", secret.flatMap { [$0, 0] })) }
        self.forms = forms
    }

    /// The spellings of bytes: as they are (named ""), reversed, in hex, percents and base64.
    private static func forms(of secret: [UInt8]) -> [(name: String, bytes: [UInt8])] {
        var forms: [(name: String, bytes: [UInt8])] = [("", secret), ("reversed", secret.reversed())]
        for (name, alphabet): (String, [UInt8]) in [("hex", lower), ("upper hex", upper)] {
            forms.append(("in \(name)", secret.flatMap { digits($0, alphabet) }))
            forms.append(("in percents with \(name)", secret.flatMap { [UInt8(ascii: "%")] + digits($0, alphabet) }))
        }
        // Inside of other bytes base64 has one of three alignments; the letters that neighbours change are left out.
        for shift: Int in 0..<3 {
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

    /// `\\u0063`: no product of ours writes letters so, and any reader of JSON takes it.
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

/// Looks for many canaries in all their spellings at once, in one pass.
public struct CanarySearch: Sendable {
    private let canaries: [Canary]
    /// By the first eight bytes of a spelling, as a number.
    private var spellings: [UInt64: [(canary: Int, form: Int)]] = [:]
    /// Whether a spelling begins with two bytes.
    private var begins: [Bool] = .init(repeating: false, count: 1 << 16)

    public init(_ canaries: [Canary]) {
        self.canaries = canaries
        for (place, canary): (Int, Canary) in canaries.enumerated() {
            for (form, spelling): (Int, (name: String, bytes: [UInt8])) in canary.forms.enumerated() {
                precondition(spelling.bytes.count >= 8, "a spelling of \(spelling.bytes.count) bytes")
                let start: UInt64 = spelling.bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
                spellings[start, default: []].append((place, form))
                begins[Int(start & 0xFFFF)] = true
            }
        }
    }

    /// The places in the list of canaries that stand in `bytes`, with the first spelling of each.
    public func found(in bytes: [UInt8]) -> [Int: String] {
        var found: [Int: String] = [:]
        guard bytes.count >= 8 else { return found }
        bytes.withUnsafeBytes { (hay: UnsafeRawBufferPointer) in
            begins.withUnsafeBufferPointer { (begins: UnsafeBufferPointer<Bool>) in
                for place: Int in 0...(hay.count - 8) {
                    let start: UInt64 = hay.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    guard begins[Int(start & 0xFFFF)], let starts = spellings[start] else { continue }
                    for (canary, form): (Int, Int) in starts where found[canary] == nil {
                        let spelling: (name: String, bytes: [UInt8]) = canaries[canary].forms[form]
                        if hay[place...].starts(with: spelling.bytes) { found[canary] = spelling.name }
                    }
                }
            }
        }
        return found
    }

    /// What was found, as lines for a person.
    public func findings(in bytes: [UInt8], place: String) -> [String] {
        found(in: bytes).map { "\(canaries[$0.key].name) \($0.value) in \(place)" }.sorted()
    }
}
