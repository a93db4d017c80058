// Linux only: OpenSSL; on Apple platforms: a copy of a CryptoKit HMAC that has its key.
internal import COpenSSL

/// A prepared key of HMAC-SHA-512 (RFC 2104): the two rounds per message that depend only on the key are computed once.
///
/// A value type: copies share nothing, and any thread may use one.
public struct MessageKey512: Sendable {
    private let states: KeyedStates<SHA512_CTX>

    /// Prepares a key.
    ///
    /// - Parameter key: of any length.
    public init(_ key: [UInt8]) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    /// Prepares a key.
    ///
    /// - Parameter key: of any length.
    public init(_ key: SecureBytes) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    init(bytes key: UnsafeRawBufferPointer) { states = .init(key) }

    /// The code of a message, 64 bytes.
    public func code(of message: ArraySlice<UInt8>) -> [UInt8] { message.withUnsafeBytes { states.code(of: $0) } }

    /// Whether it is the code of the message. Compares in constant time.
    public func isCode(_ code: [UInt8], of message: ArraySlice<UInt8>) -> Bool {
        let count = SHA512_CTX.codeBytes
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { buffer in
            guard let start = buffer.baseAddress else { return false }
            message.withUnsafeBytes { write($0, to: start) }
            return code.count == count && CRYPTO_memcmp(start, code, count) == 0
        }
    }

    func write(_ message: UnsafeRawBufferPointer, to code: UnsafeMutablePointer<UInt8>) {
        states.write(message, to: code)
    }
}

/// A prepared key of HMAC-SHA-256 (RFC 2104), as `MessageKey512`.
public struct MessageKey256: Sendable {
    private let states: KeyedStates<SHA256_CTX>

    /// Prepares a key.
    ///
    /// - Parameter key: of any length.
    public init(_ key: [UInt8]) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    /// Prepares a key.
    ///
    /// - Parameter key: of any length.
    public init(_ key: SecureBytes) { self = key.withUnsafeBytes { .init(bytes: $0) } }

    init(bytes key: UnsafeRawBufferPointer) { states = .init(key) }

    /// The code of a message, 32 bytes.
    public func code(of message: [UInt8]) -> [UInt8] { message.withUnsafeBytes { states.code(of: $0) } }

    func write(_ message: UnsafeRawBufferPointer, to code: UnsafeMutablePointer<UInt8>) {
        states.write(message, to: code)
    }
}

/// A `MessageKey256` in secret memory, for codes of many messages, or for many keys derived from one.
public final class SecretMessageKey256: Sendable {
    private let prepared: SecureBytes

    /// Prepares a key.
    ///
    /// - Parameter key: of any length.
    public init(_ key: SecureBytes) {
        prepared = SecureBytes(count: MemoryLayout<MessageKey256>.size) { room in
            var made = MessageKey256(key)
            Swift.withUnsafeMutableBytes(of: &made) { bytes in
                room.copyMemory(from: UnsafeRawBufferPointer(bytes))
                bytes.cleanse()
            }
        }
    }

    /// Writes the code of a message.
    ///
    /// - Parameters:
    ///   - message: the bytes to authenticate.
    ///   - room: memory for exactly 32 bytes.
    public func write(_ message: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
        precondition(room.count == HashFunction.sha256.digestBytes, "a code has the length of a digest")
        prepared.withUnsafeBytes { bytes in
            // Secret memory is aligned to 32 bytes, and this block contains only the key.
            bytes.assumingMemoryBound(to: MessageKey256.self)[0].write(message, to: room.octets)
        }
    }
}

/// The parts of a hash that HMAC needs: its sizes, and its state between two blocks.
private protocol HashState: Sendable {
    static var function: HashFunction { get }
    static var blockBytes: Int { get }
    static var codeBytes: Int { get }

    /// The state before the first byte.
    static func begun() -> Self
    mutating func update(_ bytes: UnsafeRawBufferPointer)
    mutating func finish(_ code: UnsafeMutablePointer<UInt8>)
}

extension SHA256_CTX: HashState {
    fileprivate static var function: HashFunction { .sha256 }
    fileprivate static var blockBytes: Int { 64 }
    fileprivate static var codeBytes: Int { 32 }

    fileprivate static func begun() -> SHA256_CTX {
        var state = SHA256_CTX()
        thicket_sha256_init(&state)
        return state
    }
    fileprivate mutating func update(_ bytes: UnsafeRawBufferPointer) {
        thicket_sha256_update(&self, bytes.octets, bytes.count)
    }
    fileprivate mutating func finish(_ code: UnsafeMutablePointer<UInt8>) { thicket_sha256_final(code, &self) }
}

extension SHA512_CTX: HashState {
    fileprivate static var function: HashFunction { .sha512 }
    fileprivate static var blockBytes: Int { 128 }
    fileprivate static var codeBytes: Int { 64 }

    fileprivate static func begun() -> SHA512_CTX {
        var state = SHA512_CTX()
        thicket_sha512_init(&state)
        return state
    }
    fileprivate mutating func update(_ bytes: UnsafeRawBufferPointer) {
        thicket_sha512_update(&self, bytes.octets, bytes.count)
    }
    fileprivate mutating func finish(_ code: UnsafeMutablePointer<UInt8>) { thicket_sha512_final(code, &self) }
}

/// The states after the first block of the inner and the outer hash (RFC 2104, 2).
private struct KeyedStates<State: HashState>: Sendable {
    private let inner: State
    private let outer: State

    init(_ key: UnsafeRawBufferPointer) {
        (inner, outer) = withUnsafeTemporaryAllocation(byteCount: State.blockBytes, alignment: 16) { block in
            defer { block.cleanse() }
            block.initializeMemory(as: UInt8.self, repeating: 0)
            if key.count > State.blockBytes {
                Hash.digest(State.function, key, into: .init(rebasing: block[..<State.codeBytes]))
            } else {
                block.copyMemory(from: key)
            }
            return (Self.began(with: block, 0x36), Self.began(with: block, 0x36 ^ 0x5C))
        }
    }

    /// The state after the block, with each byte XORed with `mark`. The block stays changed.
    private static func began(with block: UnsafeMutableRawBufferPointer, _ mark: UInt8) -> State {
        for place in block.indices { block[place] ^= mark }
        var state = State.begun()
        state.update(UnsafeRawBufferPointer(block))
        return state
    }

    func code(of message: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: State.codeBytes) { buffer, count in
            if let start = buffer.baseAddress { write(message, to: start) }
            count = State.codeBytes
        }
    }

    func write(_ message: UnsafeRawBufferPointer, to code: UnsafeMutablePointer<UInt8>) {
        var (first, second) = (inner, outer)
        first.update(message)
        first.finish(code)
        second.update(UnsafeRawBufferPointer(start: code, count: State.codeBytes))
        second.finish(code)
        // This state contains the code, which may be a key.
        withUnsafeMutableBytes(of: &second) { $0.cleanse() }
    }
}
