// Linux only: OpenSSL; on Apple platforms: a copy of a CryptoKit HMAC that has its key.
internal import COpenSSL

/// A key of HMAC-SHA-512 (RFC 2104) that has done what is the same for all messages: two of the rounds of each.
///
/// A value: copies share nothing, and any thread may use one.
public struct MessageKey512: Sendable {
    private static let blockBytes: Int = 128
    private static let codeBytes: Int = 64

    /// The states behind the first block of the inner and the outer hash.
    private let inner: SHA512_CTX
    private let outer: SHA512_CTX

    /// - Parameter key: of any length.
    public init(_ key: [UInt8]) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    /// - Parameter key: of any length.
    public init(_ key: SecureBytes) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    init(bytes key: UnsafeRawBufferPointer) {
        (inner, outer) = withUnsafeTemporaryAllocation(byteCount: Self.blockBytes, alignment: 16) { block in
            defer { block.cleanse() }
            block.initializeMemory(as: UInt8.self, repeating: 0)
            if key.count > Self.blockBytes {
                Hash.digest(.sha512, key, into: .init(rebasing: block[..<Self.codeBytes]))
            } else {
                block.copyMemory(from: key)
            }
            return (Self.began(with: block, 0x36), Self.began(with: block, 0x36 ^ 0x5C))
        }
    }

    /// Every byte of the block combined with one, and then hashed.
    private static func began(with block: UnsafeMutableRawBufferPointer, _ mark: UInt8) -> SHA512_CTX {
        for place: Int in block.indices { block[place] ^= mark }
        var state: SHA512_CTX = .init()
        thicket_sha512_init(&state)
        thicket_sha512_update(&state, block.baseAddress, block.count)
        return state
    }

    /// The code of a message, 64 bytes.
    public func code(of message: ArraySlice<UInt8>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.codeBytes) { buffer, count in
            if let start: UnsafeMutablePointer<UInt8> = buffer.baseAddress { write(message, to: start) }
            count = Self.codeBytes
        }
    }

    /// Whether it is the code of the message. Takes as long wherever they differ.
    public func isCode(_ code: [UInt8], of message: ArraySlice<UInt8>) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.codeBytes) { buffer in
            guard let start: UnsafeMutablePointer<UInt8> = buffer.baseAddress else { return false }
            write(message, to: start)
            return code.count == Self.codeBytes && CRYPTO_memcmp(start, code, Self.codeBytes) == 0
        }
    }

    private func write(_ message: ArraySlice<UInt8>, to code: UnsafeMutablePointer<UInt8>) {
        message.withUnsafeBytes { write($0, to: code) }
    }

    func write(_ message: UnsafeRawBufferPointer, to code: UnsafeMutablePointer<UInt8>) {
        var (first, second): (SHA512_CTX, SHA512_CTX) = (inner, outer)
        thicket_sha512_update(&first, message.octets, message.count)
        thicket_sha512_final(code, &first)
        thicket_sha512_update(&second, code, Self.codeBytes)
        thicket_sha512_final(code, &second)
    }
}

/// The same of HMAC-SHA-256.
public struct MessageKey256: Sendable {
    private static let blockBytes: Int = 64
    private static let codeBytes: Int = 32

    private let inner: SHA256_CTX
    private let outer: SHA256_CTX

    /// - Parameter key: of any length.
    public init(_ key: [UInt8]) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    /// - Parameter key: of any length.
    public init(_ key: SecureBytes) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    init(bytes key: UnsafeRawBufferPointer) {
        (inner, outer) = withUnsafeTemporaryAllocation(byteCount: Self.blockBytes, alignment: 16) { block in
            defer { block.cleanse() }
            block.initializeMemory(as: UInt8.self, repeating: 0)
            if key.count > Self.blockBytes {
                Hash.digest(.sha256, key, into: .init(rebasing: block[..<Self.codeBytes]))
            } else {
                block.copyMemory(from: key)
            }
            return (Self.began(with: block, 0x36), Self.began(with: block, 0x36 ^ 0x5C))
        }
    }

    /// Every byte of the block combined with one, and then hashed.
    private static func began(with block: UnsafeMutableRawBufferPointer, _ mark: UInt8) -> SHA256_CTX {
        for place: Int in block.indices { block[place] ^= mark }
        var state: SHA256_CTX = .init()
        thicket_sha256_init(&state)
        thicket_sha256_update(&state, block.baseAddress, block.count)
        return state
    }

    /// The code of a message, 32 bytes.
    public func code(of message: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.codeBytes) { buffer, count in
            if let start: UnsafeMutablePointer<UInt8> = buffer.baseAddress {
                message.withUnsafeBytes { write($0, to: start) }
            }
            count = Self.codeBytes
        }
    }

    func write(_ message: UnsafeRawBufferPointer, to code: UnsafeMutablePointer<UInt8>) {
        var (first, second): (SHA256_CTX, SHA256_CTX) = (inner, outer)
        thicket_sha256_update(&first, message.octets, message.count)
        thicket_sha256_final(code, &first)
        thicket_sha256_update(&second, code, Self.codeBytes)
        thicket_sha256_final(code, &second)
    }
}
