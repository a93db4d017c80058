// Linux only: OpenSSL; on Apple platforms: nothing of this, CryptoKit needs no preparation.
internal import COpenSSL

/// An algorithm that OpenSSL has looked up once. A lookup takes longer than hashing a short message.
struct Fetched: @unchecked Sendable {
    // OpenSSL's algorithm objects are constants with an atomic reference count; this one is never freed.
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer?, _ name: String) {
        guard let pointer else { preconditionFailure("this OpenSSL has no \(name)") }
        self.pointer = pointer
    }

    static func digest(_ name: String) -> Fetched { .init(EVP_MD_fetch(nil, name, nil), name) }
    static func cipher(_ name: String) -> Fetched { .init(EVP_CIPHER_fetch(nil, name, nil), name) }
    static func mac(_ name: String) -> Fetched { .init(EVP_MAC_fetch(nil, name, nil), name) }
    static func kdf(_ name: String) -> Fetched { .init(EVP_KDF_fetch(nil, name, nil), name) }
}

extension UnsafeRawBufferPointer {
    /// An address for empty input, because some of OpenSSL's functions take null for "not given".
    private static let nowhere = {
        let room = UnsafeMutableRawPointer.allocate(byteCount: 16, alignment: 16)
        room.initializeMemory(as: UInt8.self, repeating: 0, count: 16)
        return UInt(bitPattern: room)
    }()

    /// The bytes for C, never null.
    var octets: UnsafePointer<UInt8> {
        let start = baseAddress ?? UnsafeRawPointer(bitPattern: Self.nowhere)
        guard let start else { preconditionFailure("an allocation has no address") }
        return start.assumingMemoryBound(to: UInt8.self)
    }
}

extension UnsafeMutableRawBufferPointer {
    /// The bytes for C, never null.
    var octets: UnsafeMutablePointer<UInt8> { .init(mutating: UnsafeRawBufferPointer(self).octets) }

    /// Overwrites all bytes, in a way that compilers do not optimise away.
    func cleanse() { if let baseAddress { OPENSSL_cleanse(baseAddress, count) } }
}

extension [UInt8] {
    /// Makes an array in place. If `body` throws, the bytes that it has written are overwritten.
    static func made<E: Error>(
        _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var failure: E?
        bytes.withUnsafeMutableBytes { room in
            do throws(E) {
                try body(room)
            } catch {
                room.cleanse()
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
