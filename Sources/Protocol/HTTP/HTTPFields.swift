/// One header field.
public struct HTTPField: Sendable, Equatable {
    /// The name in lower case.
    public let name: String
    /// The value without surrounding white space. Bytes that are not UTF-8 are replaced by U+FFFD.
    public let value: String
    /// Makes a field. The name must be in lower case.
    public init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
}

/// Header fields in the order in which they arrived.
public struct HTTPFields: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// All fields, in order.
    public private(set) var all: [HTTPField]

    /// Makes a list of fields.
    public init(_ all: [HTTPField] = []) { self.all = all }
    /// Makes a list of fields from a literal.
    public init(arrayLiteral elements: HTTPField...) { all = elements }

    /// Appends a field. The name must be in lower case.
    public mutating func append(_ name: String, _ value: String) { all.append(.init(name, value)) }

    /// The value of the first field with this name, which must be in lower case.
    public subscript(_ name: String) -> String? { all.first { $0.name == name }?.value }
    /// How many fields have this name, which must be in lower case.
    public func count(of name: String) -> Int { all.count { $0.name == name } }

    /// The members of a comma-separated list over all fields with this name, in lower case and without white space.
    /// Empty members are left out.
    public func tokens(of name: String) -> [String] {
        var tokens = [String]()
        for field in all where field.name == name {
            for part in field.value.utf8.split(separator: UInt8(ascii: ",")) {
                let bytes = HTTPText.trimmed(ArraySlice(part)).map(HTTPText.lowercased)
                if !bytes.isEmpty { tokens.append(String(decoding: bytes, as: UTF8.self)) }
            }
        }
        return tokens
    }

    /// Reads the field lines of a head (RFC 9112, 5), each without its line end.
    init(lines: ArraySlice<ArraySlice<UInt8>>, limits: HTTPLimits) throws(HTTPFailure) {
        guard lines.count <= limits.fieldsMax else { throw HTTPFailure(.tooManyFields) }
        all = []
        all.reserveCapacity(lines.count)
        for line in lines { all.append(try Self.field(line)) }
    }

    static func field(_ line: ArraySlice<UInt8>) throws(HTTPFailure) -> HTTPField {
        guard let first = line.first else { throw HTTPFailure(.badFieldName) }
        guard first != 0x20 && first != 0x09 else { throw HTTPFailure(.foldedLine) }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
            throw HTTPFailure(.badFieldName)
        }
        let name = line[..<colon]
        guard name.allSatisfy(HTTPText.isToken) else { throw HTTPFailure(.badFieldName) }
        let value = HTTPText.trimmed(line[(colon + 1)...])
        guard value.allSatisfy(HTTPText.isFieldContent) else { throw HTTPFailure(.badFieldValue) }
        return .init(
            String(decoding: name.map(HTTPText.lowercased), as: UTF8.self), String(decoding: value, as: UTF8.self))
    }
}

/// The classes of bytes in HTTP fields (RFC 9110, 5.5 and 5.6.2).
enum HTTPText {
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
        default: false
        }
    }
    static func isFieldContent(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7F) }
    static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
    static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return bytes
    }
}
