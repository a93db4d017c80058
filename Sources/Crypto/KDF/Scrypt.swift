// Linux only: OpenSSL; on Apple platforms: the same function over CommonCrypto's PBKDF2, which is all scrypt needs.
internal import COpenSSL

/// scrypt (RFC 7914): makes each guess at a password cost time and memory.
public enum Scrypt {
    /// What one run costs.
    public struct Cost: Sendable, Hashable {
        /// A power of two above 1: time and memory grow with it.
        public let n: UInt64
        /// Size of a block: memory grows with it.
        public let r: UInt64
        /// Runs one after the other, in the same memory.
        public let p: UInt64

        public init(n: UInt64, r: UInt64, p: UInt64) { (self.n, self.r, self.p) = (n, r, p) }

        /// For passwords as they were sent: 2^14, 8, 1; 16 MiB.
        public static let login: Cost = .init(n: 1 << 14, r: 8, p: 1)

        /// Bytes that a run needs (RFC 7914, 5 and 6), and some room.
        var memoryBytes: UInt64 { 128 * r * (n + p + 2) + (1 << 20) }

        /// Whether a run can be tried: within these bounds nothing overflows, and it takes 2 GiB at most.
        var isUsable: Bool {
            n > 1 && n & (n - 1) == 0 && n <= 1 << 20 && (1...32).contains(r) && (1...16).contains(p)
                && memoryBytes <= 1 << 31
        }
    }

    /// - Parameters:
    ///   - password: any bytes, none too.
    ///   - count: bytes wanted, 1...1,024.
    /// - Returns: nil when the cost or the count is out of bounds, or there is not so much memory.
    public static func derive(_ password: [UInt8], salt: [UInt8], cost: Cost, count: Int = 32) -> [UInt8]? {
        guard cost.isUsable, (1...1_024).contains(count) else { return nil }
        var output: [UInt8] = .init(repeating: 0, count: count)
        let isDone: Bool = password.withUnsafeBytes { password in
            EVP_PBE_scrypt(
                password.baseAddress?.assumingMemoryBound(to: CChar.self), password.count, salt, salt.count, cost.n,
                cost.r, cost.p, cost.memoryBytes, &output, count) == 1
        }
        guard isDone else {
            ERR_clear_error()
            return nil
        }
        return output
    }
}
