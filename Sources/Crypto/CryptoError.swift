/// Why a cryptographic call gave no result. None of it says anything of a secret.
public enum CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was sealed did not open: cut, changed, of another key, of another place, of an unknown suite, not even of
    /// the right shape. One case for all of it, so that nobody learns from the error which it was.
    case openingFailed
    /// A parameter is outside of what the standard allows, or of what this implementation does.
    case outOfBounds(Parameter)
    /// A public key that leads to a secret which everybody knows (RFC 7748, 6.1), or that is no key.
    case unusablePublicKey
    /// A context has sealed or opened as many messages as its numbers can count (RFC 9180, 5.2).
    case messageLimitReached

    /// What was out of bounds.
    public enum Parameter: String, Sendable {
        case suite, rounds, cost, memory, salt, info, count, key, nonce, words, password
    }

    public var description: String {
        switch self {
        case .openingFailed: "what was sealed did not open"
        case .outOfBounds(let parameter): "out of bounds: \(parameter.rawValue)"
        case .unusablePublicKey: "the public key cannot be used"
        case .messageLimitReached: "this context has handled as many messages as it can count"
        }
    }
}
