// Linux only: OpenSSL; on Apple platforms: the same function over CommonCrypto's PBKDF2, which is all scrypt needs.
internal import COpenSSL

/// scrypt (RFC 7914): makes each guess of a password cost time and memory.
public enum Scrypt {
    /// The cost of one run.
    public struct Cost: Sendable, Hashable {
        /// A power of two above 1; time and memory are proportional to it.
        public let n: UInt64
        /// Size of a block; memory is proportional to it.
        public let r: UInt64
        /// Number of runs one after another, in the same memory.
        public let p: UInt64

        /// Makes a cost; its bounds are checked by `derive`.
        public init(n: UInt64, r: UInt64, p: UInt64) { (self.n, self.r, self.p) = (n, r, p) }

        /// For passwords as sent by clients: 2^14, 8, 1; 16 MiB.
        public static let login = Cost(n: 1 << 14, r: 8, p: 1)

        /// Bytes that a run needs (RFC 7914, 5 and 6), with a margin.
        var memoryBytes: UInt64 { 128 * r * (n + p + 2) + (1 << 20) }

        /// Whether the cost is within the bounds: inside them nothing overflows, and a run takes at most 2 GiB.
        var isUsable: Bool {
            n > 1 && n & (n - 1) == 0 && n <= 1 << 20 && (1...32).contains(r) && (1...16).contains(p)
                && memoryBytes <= 1 << 31
        }
    }

    /// Derives a key from a password.
    ///
    /// - Parameters:
    ///   - password: any bytes, may be empty.
    ///   - salt: any bytes.
    ///   - cost: the cost of the run.
    ///   - count: number of bytes, 1...1,024.
    /// - Returns: nil when the cost or the count is out of bounds, or when there is not enough memory.
    public static func derive(_ password: [UInt8], salt: [UInt8], cost: Cost, count: Int = 32) -> [UInt8]? {
        let made = try? password.lent { password throws(CryptoError) in
            try derive(password, salt: salt, cost: cost, count: count)
        }
        return made?.withUnsafeBytes { Array($0) }
    }

    /// Derives a key from a password that the caller lends, as a secret.
    ///
    /// - Throws: `outOfBounds` with `.cost` or `.count`, or with `.memory` when there is not enough memory.
    public static func derive(
        _ password: UnsafeRawBufferPointer, salt: [UInt8], cost: Cost, count: Int = 32
    ) throws(CryptoError) -> SecureBytes {
        guard cost.isUsable else { throw .outOfBounds(.cost) }
        guard (1...1_024).contains(count) else { throw .outOfBounds(.count) }
        return try SecureBytes(count: count) { room throws(CryptoError) in
            let text = UnsafeRawPointer(password.octets)
            let isDone =
                EVP_PBE_scrypt(
                    text.assumingMemoryBound(to: CChar.self), password.count, salt, salt.count, cost.n, cost.r, cost.p,
                    cost.memoryBytes, room.octets, count) == 1
            guard isDone else {
                ERR_clear_error()
                throw .outOfBounds(.memory)
            }
        }
    }
}
