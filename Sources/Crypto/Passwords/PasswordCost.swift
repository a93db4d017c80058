/// What one guess at a password costs: scrypt's parameters as an account has them (spec 3.2).
///
/// Only `PasswordRules` make one, so that no parameters are honoured that were not held against the bounds.
public struct PasswordCost: Sendable, Hashable {
    /// Logarithm of N to base 2: 17 is 128 MiB and about a second.
    public let log2N: Int
    /// Size of a block: always 8.
    public let r: Int
    /// Runs one after the other.
    public let p: Int

    /// What new accounts have: N = 2^17, r = 8, p = 1.
    public static let standard = PasswordCost(log2N: 17, r: 8, p: 1)

    fileprivate init(log2N: Int, r: Int, p: Int) { (self.log2N, self.r, self.p) = (log2N, r, p) }

    var scrypt: Scrypt.Cost { .init(n: 1 << UInt64(log2N), r: UInt64(r), p: UInt64(p)) }
}

/// Which parameters of a server are honoured. A server that says weaker ones wants to guess the password, and one that
/// says stronger ones to keep the device busy: both are refused before anything is computed (threat T7).
public struct PasswordRules: Sendable {
    /// The number of scrypt among the derivations; 2 is reserved for Argon2id.
    public static let scryptNumber = 1

    private let log2N: ClosedRange<Int>
    private let p: ClosedRange<Int> = 1...4

    /// 2^17 ≤ N ≤ 2^20, r = 8, 1 ≤ p ≤ 4.
    public static let product = PasswordRules(log2N: 17...20)

    #if DEBUG
        /// From 2^14 on, for tests that sign in often. Release builds have no such rules.
        package static let tests = PasswordRules(log2N: 14...20)
    #endif

    private init(log2N: ClosedRange<Int>) { self.log2N = log2N }

    /// - Parameters: as a server has said them.
    /// - Throws: `outOfBounds(.suite)` for another derivation, `outOfBounds(.cost)` for other parameters.
    public func cost(kdf: Int, log2N: Int, r: Int, p: Int) throws(CryptoError) -> PasswordCost {
        guard kdf == Self.scryptNumber else { throw .outOfBounds(.suite) }
        guard self.log2N.contains(log2N), r == 8, self.p.contains(p) else { throw .outOfBounds(.cost) }
        return PasswordCost(log2N: log2N, r: r, p: p)
    }
}
