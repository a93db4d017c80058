import ThicketProtocol

/// Why an answer to the upgrade request is not a WebSocket. A Thicket server accepts every upgrade and checks logins
/// afterwards, so most statuses come from a proxy in front of it.
struct UpgradeRefusal: Equatable {
    /// What answered, with which status, and the remedy, as a text for the user.
    let detail: String
    /// The pause in milliseconds that the answer requests, at most `SyncLimits.retryAfterMaxMilliseconds`; nil when it
    /// requests none.
    let retryAfter: Int64?

    init(_ head: HTTPResponseHead) {
        let seconds = head.fields["retry-after"].flatMap(Self.seconds)
        retryAfter = seconds.map { min($0 * 1_000, SyncLimits.retryAfterMaxMilliseconds) }
        let pause = seconds.map { "; it says to try again in \($0) s" } ?? ""
        let what = "HTTP \(head.status) in place of a WebSocket: "
        switch head.status {
        case 300..<400:
            let place = head.fields["location"].map { ": " + String($0.prefix(Self.locationMax)) } ?? ""
            detail =
                what
                + "it names another address\(place), and redirects are not followed. Is the server's address right?"
        case 401, 403:
            detail =
                what + "a proxy or firewall in front of the server refuses the connection; the login was not checked"
        case 407: detail = what + "a proxy requires a user name and password, or refused the given ones"
        case 429: detail = what + "too many requests\(pause)"
        case 502, 504: detail = what + "a proxy in front of the server does not reach it\(pause)"
        case 503: detail = what + "the server, or a proxy in front of it, does not accept connections now\(pause)"
        case 500..<600: detail = what + "the server, or a proxy in front of it, failed\(pause)"
        default:
            detail =
                what
                + "a proxy on the way removes the header 'Upgrade' (it must forward WebSockets), or there is no "
                + "thicket server at this address"
        }
    }

    /// Characters of a redirect's address that are shown.
    private static let locationMax = 200

    /// `retry-after` in seconds (RFC 9110, 10.2.3); dates are not parsed.
    private static func seconds(_ text: String) -> Int64? { Int64(text).flatMap { $0 >= 0 ? min($0, 86_400) : nil } }
}
