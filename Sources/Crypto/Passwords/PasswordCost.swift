/// The cost of one guess of a password: the scrypt parameters of an account (spec 3.2).
///
/// Only `PasswordRules` makes values of this type, so that unchecked parameters are never used.
public struct PasswordCost: Sendable, Hashable {
    /// Logarithm of N to base 2: 17 means 128 MiB and about a second.
    public let log2N: Int
    /// Size of a block: always 8.
    public let r: Int
    /// Number of runs one after another.
    public let p: Int

    /// The cost for new accounts: N = 2^17, r = 8, p = 1.
    public static let standard = PasswordCost(log2N: 17, r: 8, p: 1)

    fileprivate init(log2N: Int, r: Int, p: Int) { (self.log2N, self.r, self.p) = (log2N, r, p) }

    var scrypt: Scrypt.Cost { .init(n: 1 << UInt64(log2N), r: UInt64(r), p: UInt64(p)) }
}

/// The bounds of parameters that a server may ask for. A server with weaker parameters could guess the password, and
/// one with stronger parameters could keep the device busy; both are refused before any computation (threat T7).
public struct PasswordRules: Sendable {
    /// The number of scrypt among the key derivations; 2 is reserved for Argon2id.
    public static let scryptNumber = 1

    private let log2N: ClosedRange<Int>
    private let p: ClosedRange<Int> = 1...4

    /// The bounds for production: 2^17 ≤ N ≤ 2^20, r = 8, 1 ≤ p ≤ 4.
    public static let product = PasswordRules(log2N: 17...20)

    #if DEBUG
        /// Bounds from 2^14, for tests that sign in often. Not in release builds.
        package static let tests = PasswordRules(log2N: 14...20)
    #endif

    private init(log2N: ClosedRange<Int>) { self.log2N = log2N }

    /// Checks parameters that a server has sent.
    ///
    /// - Throws: `outOfBounds(.suite)` for another key derivation, `outOfBounds(.cost)` for parameters out of bounds.
    public func cost(kdf: Int, log2N: Int, r: Int, p: Int) throws(CryptoError) -> PasswordCost {
        guard kdf == Self.scryptNumber else { throw .outOfBounds(.suite) }
        guard self.log2N.contains(log2N), r == 8, self.p.contains(p) else { throw .outOfBounds(.cost) }
        return PasswordCost(log2N: log2N, r: r, p: p)
    }
}
