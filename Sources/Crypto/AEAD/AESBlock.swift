// Linux only: OpenSSL; on Apple platforms: CommonCrypto and SecRandomCopyBytes behind the same functions.
internal import COpenSSL
import Synchronization

/// AES-128 on single 16-byte blocks (FIPS 197): a keyed permutation that makes the server's positions opaque.
///
/// Do not use it to encrypt content: equal blocks give equal results, as a change version needs.
public struct AESBlock: Sendable {
    private let ciphers: Ciphers

    /// Makes a permutation.
    ///
    /// - Parameter key: 16 bytes; another length is a programming error.
    public init(key: [UInt8]) {
        precondition(key.count == 16, "an AES-128 key has 16 bytes")
        ciphers = Ciphers(key: key)
    }

    /// Encrypts a block of exactly 16 bytes.
    public func encrypt(_ block: [UInt8]) -> [UInt8] { ciphers.run(block, encrypts: true) }
    /// Decrypts a block of exactly 16 bytes.
    public func decrypt(_ block: [UInt8]) -> [UInt8] { ciphers.run(block, encrypts: false) }

    /// Encrypts the block that consists of these two numbers, each big-endian.
    public func encrypt(_ high: UInt64, _ low: UInt64) -> (high: UInt64, low: UInt64) { ciphers.encrypt(high, low) }
}

/// Both directions with prepared key schedules: a schedule costs ten times as much as a block.
private final class Ciphers: Sendable {
    /// OpenSSL's context; used only by the thread that holds the lock.
    private struct Context: @unchecked Sendable {
        // Used only under the lock of its `Mutex`.
        let pointer: OpaquePointer?
    }

    private let encryption: Mutex<Context>
    private let decryption: Mutex<Context>

    init(key: [UInt8]) {
        encryption = Mutex(Self.context(key, encrypts: true))
        decryption = Mutex(Self.context(key, encrypts: false))
    }

    deinit {
        for cipher: OpaquePointer? in [encryption.withLock(\.pointer), decryption.withLock(\.pointer)] {
            EVP_CIPHER_CTX_free(cipher)
        }
    }

    func run(_ block: [UInt8], encrypts: Bool) -> [UInt8] {
        precondition(block.count == 16, "an AES block has 16 bytes")
        return encrypts
            ? encryption.withLock { Self.run(block, $0.pointer) } : decryption.withLock { Self.run(block, $0.pointer) }
    }

    func encrypt(_ high: UInt64, _ low: UInt64) -> (high: UInt64, low: UInt64) {
        var clear = (high.bigEndian, low.bigEndian)
        // Twice the size of a block, as in `run`: OpenSSL may write one more.
        var sealed: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        encryption.withLock { context in
            withUnsafeMutableBytes(of: &sealed) { output in
                withUnsafeBytes(of: &clear) { input in
                    Self.run(input.baseAddress, output.baseAddress, context.pointer)
                }
            }
        }
        return (UInt64(bigEndian: sealed.0), UInt64(bigEndian: sealed.1))
    }

    private static func run(
        _ input: UnsafeRawPointer?, _ output: UnsafeMutableRawPointer?, _ context: OpaquePointer?
    ) {
        var length: Int32 = 0
        let isDone =
            EVP_CipherUpdate(
                context, output?.assumingMemoryBound(to: UInt8.self), &length,
                input?.assumingMemoryBound(to: UInt8.self), 16) == 1
        precondition(isDone && length == 16, "OpenSSL refused one AES block, which has no failing input")
    }

    private static func run(_ block: [UInt8], _ context: OpaquePointer?) -> [UInt8] {
        // Padding is off, so a whole block is written at once and the context buffers nothing.
        [UInt8](unsafeUninitializedCapacity: 32) { output, count in
            block.withUnsafeBytes { run($0.baseAddress, output.baseAddress, context) }
            count = 16
        }
    }

    private static func context(_ key: [UInt8], encrypts: Bool) -> Context {
        let context = EVP_CIPHER_CTX_new()
        let isReady =
            EVP_CipherInit_ex(context, EVP_aes_128_ecb(), nil, key, nil, encrypts ? 1 : 0) == 1
            && EVP_CIPHER_CTX_set_padding(context, 0) == 1
        precondition(isReady, "OpenSSL refused an AES key, which has no failing input")
        return Context(pointer: context)
    }
}
