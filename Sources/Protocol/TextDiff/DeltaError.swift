/// Why a text delta cannot be read or does not fit its text. On the wire all of these are code 440.
public enum DeltaError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A token begins with something other than `=`, `-` or `+`. `token` counts the tokens from 0.
    case unknownToken(token: Int)
    /// The count of a `=` or `-` token is missing, is no decimal number or is too large.
    case badCount(token: Int)
    /// A `+` token holds `%` without two hex digits, or bytes that are not UTF-8.
    case badEscape(token: Int)
    /// The sum of `=` and `-` is not the length of the text. UTF-16 code units.
    case lengthMismatch(delta: Int, text: Int)
    /// The outcome would hold half of a surrogate pair.
    case splitSurrogate

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
