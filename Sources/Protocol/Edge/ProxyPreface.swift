/// What a proxy says of its client before the client's own first byte: the PROXY protocol, versions 1 and 2, as
/// published by HAProxy. Pure; fed with bytes as they come, and takes none that belong to the client.
public struct ProxyPreface: Sendable {
    /// Why it is none.
    public enum Failure: Error, Equatable, Sendable {
        /// It begins as neither version does.
        case notThere
        /// It begins as one and goes on as none.
        case malformed
        /// Longer than a proxy has reason to be.
        case tooLong
    }

    /// Bytes of version 1, its line end included (from its description).
    static let lineBytesMax = 107
    /// Bytes of version 2 at most: addresses, and what load balancers add.
    static let bytesMax = 2_048

    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let word: [UInt8] = Array("PROXY ".utf8)
    /// Signature, version, family, length.
    private static let headBytes = 16

    private var bytes = [UInt8]()
    /// The client's address, once it is complete; nil where the proxy speaks for itself or does not know.
    public private(set) var source: IPAddress?

    public init() {}

    /// Whether a byte of it has come.
    public var isStarted: Bool { !bytes.isEmpty }

    /// Takes what belongs to the preface from the front of `input`.
    /// - Returns: whether it is complete.
    public mutating func take(_ input: inout UnsafeRawBufferPointer) throws(Failure) -> Bool {
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
        // What stands behind UNKNOWN does not count.
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
        // 0: the proxy itself, to see whether we live.
        guard bytes[12] & 0x0F == 1 else { return true }
        switch bytes[13] {
        case 0x11: source = IPAddress(bytes: bytes[16..<20])
        case 0x21: source = IPAddress(bytes: bytes[16..<32])
        // Datagrams and sockets of one machine: addresses that say nothing here.
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
