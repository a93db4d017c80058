internal import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The clocks that token renewal uses; tests replace them.
package protocol SessionClock: Sendable {
    /// Milliseconds of a monotonic clock.
    func milliseconds() -> Int64
    /// Seconds since 1970.
    func unixSeconds() -> Double
    /// Returns at the given value of `milliseconds()`, or when the task is cancelled.
    func sleep(until moment: Int64) async
}

/// The system's clocks.
package struct SystemSessionClock: SessionClock {
    package init() {}
    package func milliseconds() -> Int64 { monotonicMilliseconds() }

    package func unixSeconds() -> Double {
        Double(SystemClock.unixNanoseconds()) / 1e9
    }

    package func sleep(until moment: Int64) async {
        try? await Task.sleep(for: .milliseconds(max(0, moment - milliseconds())))
    }
}

/// The parts of a login token that a client reads. It checks no signature: the server does.
enum LoginToken {
    /// The `exp` claim, in seconds since 1970; nil when the token is not a JWT with that claim.
    static func expiry(of token: String) -> Double? {
        let parts: [ArraySlice<UInt8>] = Array(token.utf8).split(separator: 0x2E, omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64.decodeURL(parts[1]),
            let document = try? JSONDocument(parsing: payload[...], maxDepth: 64),
            let expiry = document.root["exp"]?.number?.double, expiry.isFinite
        else { return nil }
        return expiry
    }

    /// Milliseconds until the token expires by this machine's clock; nil when the token has no expiry, or when the
    /// result is implausible (not above 0, or 1e9 s and more), which means a wrong clock.
    static func lifetime(of token: String, now: Double) -> Int64? {
        guard let expiry = expiry(of: token) else { return nil }
        let seconds = expiry - now
        return seconds > 0 && seconds < 1e9 ? Int64(seconds * 1_000) : nil
    }

    /// Whether a token can be sent at all: not empty, at most 8 KiB, printable ASCII without spaces.
    static func isAcceptable(_ token: String) -> Bool {
        !token.isEmpty && token.utf8.count <= TokenLimits.tokenBytesMax
            && token.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}
