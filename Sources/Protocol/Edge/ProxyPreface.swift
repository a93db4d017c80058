/// Reads the PROXY protocol, versions 1 and 2, as published by HAProxy: the header with the client's address that a
/// proxy sends before the client's first byte. Does no I/O; it is given bytes as they arrive, and consumes none of the
/// client's.
public struct ProxyPreface: Sendable {
    /// Why the bytes are not a valid PROXY header.
    public enum Failure: Error, Equatable, Sendable {
        /// The first bytes are those of neither version.
        case notThere
        /// The first bytes are those of a version, the rest is not valid.
        case malformed
        /// The header is longer than a proxy has reason to send.
        case tooLong
    }

    /// Bytes of a version 1 header at most, line end included (from its specification).
    static let lineBytesMax = 107
    /// Bytes of a version 2 header at most: addresses, and the fields that load balancers add.
    static let bytesMax = 2_048

    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let word: [UInt8] = Array("PROXY ".utf8)
    /// Bytes of signature, version, family and length.
    private static let headBytes = 16

    private var bytes = [UInt8]()
    /// The client's address, once the header is complete; nil if the proxy connects on its own behalf or does not know
    /// it.
    public private(set) var source: IPAddress?

    /// Starts at the first byte of a connection.
    public init() {}

    /// Whether a byte of the header has arrived.
    public var isStarted: Bool { !bytes.isEmpty }

    /// Consumes the header's bytes from the front of `input`.
    ///
    /// - Returns: whether the header is complete.
    /// - Throws: `Failure` when the bytes are not a valid header.
    public mutating func consume(_ input: inout UnsafeRawBufferPointer) throws(Failure) -> Bool {
        while let byte = input.first {
            bytes.append(byte)
            input = .init(rebasing: input.dropFirst())
            if try isComplete() { return true }
        }
        return false
    }

    private mutating func isComplete() throws(Failure) -> Bool {
        if bytes[0] == Self.word[0] { return try isWholeLine() }
        let known = min(bytes.count, Self.signature.count)
        guard bytes[..<known].elementsEqual(Self.signature[..<known]) else { throw .notThere }
        return try isWholeBlock()
    }

    // MARK: Version 1

    private mutating func isWholeLine() throws(Failure) -> Bool {
        let known = min(bytes.count, Self.word.count)
        guard bytes[..<known].elementsEqual(Self.word[..<known]) else { throw .notThere }
        guard bytes.last == 0x0A else {
            guard bytes.count < Self.lineBytesMax else { throw .tooLong }
            return false
        }
        guard bytes[bytes.count - 2] == 0x0D else { throw .malformed }
        source = try Self.source(line: bytes[Self.word.count..<bytes.count - 2])
        return true
    }

    private static func source(line: ArraySlice<UInt8>) throws(Failure) -> IPAddress? {
        let words = line.split(separator: 0x20, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        // The specification says to ignore the rest of the line after UNKNOWN.
        if words[0].utf8.elementsEqual("UNKNOWN".utf8) { return nil }
        let isFour = words[0].utf8.elementsEqual("TCP4".utf8)
        guard isFour || words[0].utf8.elementsEqual("TCP6".utf8), words.count == 5 else { throw .malformed }
        guard let source = IPAddress(words[1]), let destination = IPAddress(words[2]),
            words[1].utf8.contains(UInt8(ascii: ":")) != isFour, words[2].utf8.contains(UInt8(ascii: ":")) != isFour,
            isPort(words[3]), isPort(words[4])
        else { throw .malformed }
        _ = destination
        return source
    }

    private static func isPort(_ text: String) -> Bool {
        (1...5).contains(text.utf8.count) && text.utf8.allSatisfy(HTTPText.isDigit) && UInt16(text) != nil
            && (text.utf8.count == 1 || text.utf8.first != UInt8(ascii: "0"))
    }

    // MARK: Version 2

    private mutating func isWholeBlock() throws(Failure) -> Bool {
        guard bytes.count >= Self.headBytes else { return false }
        let length = Int(bytes[14]) << 8 | Int(bytes[15])
        if bytes.count == Self.headBytes { try check(length) }
        guard bytes.count == Self.headBytes + length else { return false }
        // Command 0 (LOCAL): the proxy's own connection, a health check.
        guard bytes[12] & 0x0F == 1 else { return true }
        switch bytes[13] {
        case 0x11: source = IPAddress(bytes: bytes[16..<20])
        case 0x21: source = IPAddress(bytes: bytes[16..<32])
        // Datagrams and Unix sockets: their addresses are of no use here.
        default: break
        }
        return true
    }

    private func check(_ length: Int) throws(Failure) {
        guard bytes[12] >> 4 == 2, bytes[12] & 0x0F <= 1 else { throw .malformed }
        guard length <= Self.bytesMax - Self.headBytes else { throw .tooLong }
        let (family, transport) = (bytes[13] >> 4, bytes[13] & 0x0F)
        guard family <= 3, transport <= 2 else { throw .malformed }
        let least = [0, 12, 36, 216]
        let needed = bytes[12] & 0x0F == 1 && transport > 0 ? least[Int(family)] : 0
        guard length >= needed else { throw .malformed }
    }
}
