/// Why a text delta cannot be read or does not fit its text. On the wire all of these are code 440.
public enum DeltaError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A token begins with something other than `=`, `-` or `+`. `token` counts the tokens from 0.
    case unknownToken(token: Int)
    /// The count of a `=` or `-` token is missing, is not a decimal number or is too large.
    case badCount(token: Int)
    /// A `+` token contains `%` without two hex digits, or bytes that are not UTF-8.
    case badEscape(token: Int)
    /// The sum of `=` and `-` differs from the length of the text, in UTF-16 code units.
    case lengthMismatch(delta: Int, text: Int)
    /// The result would contain half of a surrogate pair.
    case splitSurrogate

    /// The problem. Safe to log: contains nothing of the text.
    public var description: String {
        switch self {
        case .unknownToken(let token): "delta token \(token) has no known operation"
        case .badCount(let token): "delta token \(token) has no usable count"
        case .badEscape(let token): "delta token \(token) is wrongly escaped"
        case .lengthMismatch(let delta, let text): "the delta covers \(delta) units, the text has \(text)"
        case .splitSurrogate: "the delta leaves half a surrogate pair"
        }
    }
}
