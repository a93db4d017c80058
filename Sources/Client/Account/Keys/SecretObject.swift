package import ThicketCrypto
import ThicketProtocol

/// Writes JSON with secrets into memory that wipes itself: a tree of JSON values holds a `String`, which cannot be
/// wiped.
struct SecretWriter {
    private var parts = [SecureBytes]()
    private var isFirst = true

    init() { parts = [SecureBytes(copying: Array("{".utf8))] }

    /// Adds a member whose value is not a secret.
    mutating func add(_ name: StaticString, _ value: JSONValue) {
        add(name, SecureBytes(copying: value.serialized()))
    }

    /// Adds a member whose value is the base64url of a secret.
    mutating func add(_ name: StaticString, bytes secret: SecureBytes) {
        let quote = SecureBytes(copying: [UInt8(ascii: "\"")])
        add(name, .joined([quote, secret.base64URL, quote]))
    }

    /// Adds a member whose value is serialized JSON.
    mutating func add(_ name: StaticString, _ value: SecureBytes) {
        add(pair: .joined([.init(copying: Array("\"\(name)\":".utf8)), value]))
    }

    /// Adds a member as read by `SecretObject`: name, colon and value.
    mutating func add(pair: SecureBytes) {
        if !isFirst { parts.append(SecureBytes(copying: [UInt8(ascii: ",")])) }
        isFirst = false
        parts.append(pair)
    }

    var text: SecureBytes { .joined(parts + [SecureBytes(copying: [UInt8(ascii: "}")])]) }
}

/// The members of a JSON object with secrets, as ranges in its text: only requested values are copied.
package struct SecretObject {
    private struct Member {
        let name: String
        let pair: Range<Int>
        let value: Range<Int>
    }

    /// Deepest nesting of arrays and objects inside of it.
    private static let depthMax = 32
    private static let membersMax = 256

    private let text: SecureBytes
    private let members: [Member]

    /// - Returns: nil for a text that is not an object, has a duplicate member, or more than 256 members.
    package init?(_ text: SecureBytes) {
        guard let members: [Member] = text.withUnsafeBytes({ Self.read($0) }) else { return nil }
        (self.text, self.members) = (text, members)
    }

    /// The text of a value.
    subscript(_ name: String) -> SecureBytes? {
        members.first { $0.name.utf8.elementsEqual(name.utf8) }.map { text.part($0.value) }
    }

    /// A secret written as base64url; nil when it is missing or has another length.
    func bytes(_ name: String, count: Int) -> SecureBytes? {
        let secret = bytes(name)
        return secret?.count == count ? secret : nil
    }

    /// A secret of any length written as base64url; nil when it is missing or is another value.
    func bytes(_ name: String) -> SecureBytes? {
        guard let value = self[name] else { return nil }
        return value.withUnsafeBytes { value -> SecureBytes? in
            guard value.count >= 2, value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") else {
                return nil
            }
            return SecureBytes(base64URL: UnsafeRawBufferPointer(rebasing: value[1..<value.count - 1]))
        }
    }

    /// A value that is not a secret.
    package func value(_ name: String) -> JSONValue? {
        guard let text: SecureBytes = self[name] else { return nil }
        return try? JSONValue(parsing: text.withUnsafeBytes { Array($0) })
    }

    /// The members with other names, to be written back unchanged.
    package func others(than known: [String]) -> [(name: String, pair: SecureBytes)] {
        members.filter { member in !known.contains { $0.utf8.elementsEqual(member.name.utf8) } }
            .map { (name: $0.name, pair: text.part($0.pair)) }
    }

    // MARK: Reading

    private static func read(_ text: UnsafeRawBufferPointer) -> [Member]? {
        var (place, members): (Int, [Member]) = (0, [])
        skipSpace(text, &place)
        guard consume("{", text, &place) else { return nil }
        skipSpace(text, &place)
        if consume("}", text, &place) { return end(text, place) ? [] : nil }
        repeat {
            skipSpace(text, &place)
            let start = place
            guard members.count < membersMax, skipString(text, &place) else { return nil }
            // A name is not a secret. A name with escapes cannot be a known one.
            let name = String(decoding: text[start + 1..<place - 1], as: UTF8.self)
            skipSpace(text, &place)
            guard consume(":", text, &place) else { return nil }
            skipSpace(text, &place)
            let valueStart = place
            guard skipValue(text, &place, depth: 0),
                !members.contains(where: { $0.name.utf8.elementsEqual(name.utf8) })
            else { return nil }
            members.append(Member(name: name, pair: start..<place, value: valueStart..<place))
            skipSpace(text, &place)
        } while consume(",", text, &place)
        return consume("}", text, &place) && end(text, place) ? members : nil
    }

    private static func end(_ text: UnsafeRawBufferPointer, _ place: Int) -> Bool {
        var place: Int = place
        skipSpace(text, &place)
        return place == text.count
    }

    private static func skipSpace(_ text: UnsafeRawBufferPointer, _ place: inout Int) {
        while place < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[place]) { place += 1 }
    }

    private static func consume(_ letter: Unicode.Scalar, _ text: UnsafeRawBufferPointer, _ place: inout Int) -> Bool {
        guard place < text.count, text[place] == UInt8(ascii: letter) else { return false }
        place += 1
        return true
    }

    private static func skipString(_ text: UnsafeRawBufferPointer, _ place: inout Int) -> Bool {
        guard consume("\"", text, &place) else { return false }
        while place < text.count {
            let byte: UInt8 = text[place]
            place += byte == UInt8(ascii: "\\") ? 2 : 1
            if byte == UInt8(ascii: "\"") { return true }
        }
        return false
    }

    private static func skipValue(_ text: UnsafeRawBufferPointer, _ place: inout Int, depth: Int) -> Bool {
        guard place < text.count, depth < depthMax else { return false }
        switch text[place] {
        case UInt8(ascii: "\""): return skipString(text, &place)
        case UInt8(ascii: "{"), UInt8(ascii: "["): return skipContainer(text, &place, depth: depth)
        default:
            let start = place
            while place < text.count, isWordByte(text[place]) { place += 1 }
            return place > start
        }
    }

    private static func skipContainer(_ text: UnsafeRawBufferPointer, _ place: inout Int, depth: Int) -> Bool {
        let isObject: Bool = text[place] == UInt8(ascii: "{")
        let close: Unicode.Scalar = isObject ? "}" : "]"
        place += 1
        skipSpace(text, &place)
        if consume(close, text, &place) { return true }
        repeat {
            skipSpace(text, &place)
            if isObject {
                guard skipString(text, &place) else { return false }
                skipSpace(text, &place)
                guard consume(":", text, &place) else { return false }
                skipSpace(text, &place)
            }
            guard skipValue(text, &place, depth: depth + 1) else { return false }
            skipSpace(text, &place)
        } while consume(",", text, &place)
        return consume(close, text, &place)
    }

    /// Whether the byte can be part of a number, `true`, `false` or `null`.
    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x7A, 0x41...0x5A, 0x2B, 0x2D, 0x2E: true
        default: false
        }
    }
}
