/// Why a cryptographic call failed. Contains nothing about secrets.
public enum CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The sealed bytes did not open: truncated, changed, sealed with another key or for another place, of an unknown
    /// suite or in a wrong form. One case for all of these, so that an attacker cannot learn from the error which one
    /// it was.
    case openingFailed
    /// A parameter is outside the bounds of the standard, or of this implementation.
    case outOfBounds(Parameter)
    /// A public key that leads to a shared secret which anyone can compute (RFC 7748, 6.1), or bytes that are not a
    /// public key.
    case unusablePublicKey
    /// A context has sealed or opened as many messages as its numbers can count (RFC 9180, 5.2).
    case messageLimitReached

    /// The parameter that is out of bounds.
    public enum Parameter: String, Sendable {
        /// The parameters of this module's functions.
        case suite, rounds, cost, memory, salt, info, count, key, nonce, words, password
    }

    /// The problem, without secrets.
    public var description: String {
        switch self {
        case .openingFailed: "the sealed bytes cannot be opened"
        case .outOfBounds(let parameter): "out of bounds: \(parameter.rawValue)"
        case .unusablePublicKey: "the public key cannot be used"
        case .messageLimitReached: "this context has handled as many messages as it can count"
        }
    }
}
