/// A name that is checked once, where it enters the program, and trusted afterwards.
///
/// Conforming types differ in the characters they admit. A name is never passed between modules as a bare `String`.
public protocol Identifier: Hashable, Sendable, CustomStringConvertible, Comparable {
    /// The name as text.
    var text: String { get }
    /// Checks a name.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    init(_ text: String) throws(IdentifierError)
}

extension Identifier {
    /// The name as text.
    public var description: String { text }
    /// The order of the names as strings.
    public static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}

/// Why a name was refused.
public struct IdentifierError: Error, Equatable, CustomStringConvertible {
    /// The kind of name: "bucket name", "object key" …
    public let kind: String
    /// What is wrong with the name. Never contains the name itself.
    public let problem: String
    /// The kind and the problem, without the name.
    public var description: String { "\(kind): \(problem)" }

    static func tooLong(_ count: Int, most: Int) -> String { "is \(count) bytes long, the maximum is \(most)" }

    /// - Parameter offset: the offset in bytes of the first byte that is not admitted.
    static func refused(at offset: Int, of text: String) -> String {
        var bytes = 0
        for (index, scalar) in text.unicodeScalars.enumerated() {
            bytes += UTF8.width(scalar)
            if bytes > offset { return "holds \(scalar.named) (character \(index + 1)), which is not admitted" }
        }
        return "holds a character that is not admitted"
    }
}

/// Checks a name by its UTF-8 bytes.
@inline(__always)
private func checked(
    _ text: String, kind: String, maxBytes: Int, admits: (UInt8) -> Bool
) throws(IdentifierError) -> String {
    let count = text.utf8.count
    guard count > 0 else { throw IdentifierError(kind: kind, problem: "is empty") }
    guard count <= maxBytes else {
        throw IdentifierError(kind: kind, problem: IdentifierError.tooLong(count, most: maxBytes))
    }
    let isAdmitted = text.withBytes { (bytes: UnsafeBufferPointer<UInt8>) in bytes.first { !admits($0) } == nil }
    if !isAdmitted {
        let place = text.utf8.enumerated().first { !admits($0.element) }?.offset ?? 0
        throw IdentifierError(kind: kind, problem: IdentifierError.refused(at: place, of: text))
    }
    return text
}

@inline(__always)
private func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
}
@inline(__always)
private func isNamePunctuation(_ byte: UInt8) -> Bool { byte == 0x2E || byte == 0x5F || byte == 0x2D }

/// Whether keys of objects admit the byte: letters, digits and `._-%@`. A bit mask, because keys are many, and have 32
/// bytes in sealed buckets.
@inline(__always)
private func isKeyByte(_ byte: UInt8) -> Bool {
    let below64: UInt64 = 0x03FF << 0x30 | 1 << 0x25 | 1 << 0x2D | 1 << 0x2E
    let from64: UInt64 = 0x03FF_FFFF << 1 | 0x03FF_FFFF << 33 | 1 << 0 | 1 << 31
    return byte < 0x80 && (byte < 0x40 ? below64 : from64) >> UInt64(byte & 63) & 1 == 1
}

/// Names an application. 1–64 characters of `[A-Za-z0-9._-]`, stored in lower case: names that differ only in case are
/// the same.
public struct AppID: Identifier {
    /// The name, in lower case.
    public let text: String
    /// Checks a name.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    public init(_ text: String) throws(IdentifierError) {
        let name = try checked(text, kind: "app id", maxBytes: Limits.appIDBytesMax) {
            isLetterOrDigit($0) || isNamePunctuation($0)
        }
        self.text = name.lowercased()
    }
    /// Compares the UTF-8 bytes.
    public static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Names a user inside one app: an e-mail address or any printable name. 1–256 bytes, no control characters.
public struct UserID: Identifier {
    /// The name, as given.
    public let text: String
    /// Checks a name.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    public init(_ text: String) throws(IdentifierError) {
        self.text = try checked(text, kind: "user name", maxBytes: Limits.userIDBytesMax) { $0 >= 0x20 && $0 != 0x7F }
    }
    /// Compares the UTF-8 bytes.
    public static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Names a bucket. 1–64 characters of `[A-Za-z0-9._%-]` (wire contract, section 2).
public struct BucketName: Identifier {
    /// The name, as given.
    public let text: String
    /// Checks a name.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    public init(_ text: String) throws(IdentifierError) {
        self.text = try checked(text, kind: "bucket name", maxBytes: Limits.bucketNameBytesMax) {
            isLetterOrDigit($0) || isNamePunctuation($0) || $0 == 0x25
        }
    }
    /// Compares the UTF-8 bytes.
    public static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Names an object in its bucket. 1–256 characters of `[A-Za-z0-9._%@-]` (wire contract, section 2).
public struct EntityKey: Identifier {
    /// The key, as given.
    public let text: String
    /// Checks a key.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    public init(_ text: String) throws(IdentifierError) {
        self.text = try checked(text, kind: "object key", maxBytes: Limits.entityKeyBytesMax) {
            isKeyByte($0)
        }
    }
    /// Compares the UTF-8 bytes.
    public static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Identifies one change (ccid). Chosen by the author; the server applies each ccid once. 1–256 bytes of printable
/// ASCII.
public struct ChangeID: Identifier {
    /// The ccid, as given.
    public let text: String
    /// Checks a ccid.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    public init(_ text: String) throws(IdentifierError) {
        self.text = try checked(text, kind: "ccid", maxBytes: Limits.changeIDBytesMax) { $0 > 0x20 && $0 < 0x7F }
    }
    /// Compares the UTF-8 bytes.
    public static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Free text by which a client recognises its own changes. 1–256 bytes without control characters, echoed as given.
public struct ClientID: Identifier {
    /// The text, as given.
    public let text: String
    /// Checks a clientid.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    public init(_ text: String) throws(IdentifierError) {
        self.text = try checked(text, kind: "clientid", maxBytes: Limits.clientIDBytesMax) { $0 >= 0x20 && $0 != 0x7F }
    }
    /// Compares the UTF-8 bytes.
    public static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// Opaque position in a bucket's change log, as written on the wire (cv). 1–256 characters of `[A-Za-z0-9._-]`.
///
/// Clients store it and send it back; only the server that made it can interpret it.
public struct ChangeVersion: Identifier {
    /// The position, as written on the wire.
    public let text: String
    /// Checks the form of a cv.
    ///
    /// - Throws: `IdentifierError` when `text` is empty, too long or contains a character that is not admitted.
    public init(_ text: String) throws(IdentifierError) {
        self.text = try checked(text, kind: "change version", maxBytes: Limits.changeVersionBytesMax) {
            isLetterOrDigit($0) || isNamePunctuation($0)
        }
    }
}

/// Number of an object's version, counted from 1; 0 means that the object does not exist yet.
public typealias Version = Int64

/// Number of a channel inside one connection, chosen by the client. Each channel serves one bucket.
public typealias ChannelNumber = UInt32
