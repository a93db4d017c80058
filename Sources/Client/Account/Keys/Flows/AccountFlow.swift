package import ThicketCrypto
import ThicketProtocol

/// An operation on an account as a sequence of steps: requests to the server, key derivations, and a result. It is a
/// value; the runner does the work (`AccountAPIClient`), and tests can do anything between two steps.
package protocol AccountFlow: Sendable {
    associatedtype Outcome: Sendable

    mutating func begin() throws(AccountError) -> AccountStep<Outcome>
    /// The step that follows from the result of the last one.
    mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Outcome>
}

/// The next step.
package enum AccountStep<Outcome: Sendable>: Sendable {
    case ask(AccountRequest)
    /// Derive keys from a password.
    case stretch(SecureBytes, salt: [UInt8], PasswordCost)
    case done(Outcome)
}

/// The result of a step.
package enum AccountEvent: Sendable {
    case answered(AccountReply)
    /// The server refused, or its answer did not arrive.
    case refused(ClientError)
    case stretched(PasswordKeys)
}

/// Bounds of repetitions.
enum AccountFlowLimits {
    /// Attempts to write a bundle that other devices write at the same time.
    static let writesMax = 5
    /// Attempts of a request whose answer did not arrive, if repeating it is harmless.
    static let asksMax = 2
}

/// A login with open keys.
public struct SignedIn: Sendable {
    /// The account with its keys.
    public let account: OpenAccount
    /// The token of this login; valid until it is revoked or another password is set.
    public let accessToken: String
}

extension SignedIn: CustomStringConvertible, CustomReflectable {
    /// A fixed text: keys and token never reach a log.
    public var description: String { "(a login with its keys)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

extension AccountFlow {
    /// The error for a result of another kind than the one expected: a bug of the runner.
    func outOfStep() -> AccountError { .unusable("an unexpected answer arrived") }
}

extension ClientError {
    /// Whether the server may have done what was requested.
    package var leavesItOpen: Bool {
        switch code {
        case .network, .deadline, .protocolViolation: true
        case .unavailable: number != 429
        default: false
        }
    }

    /// As above, for the first request that could have done it: if that was not sent, nothing was done.
    var leavesFirstOpen: Bool { leavesItOpen && !isUnsent }

    /// Whether the account has another access key than the one that was shown (docs/AUTH.md).
    var isOtherAccessKey: Bool { number == 409 && detail.contains("access key") }
}

extension AccountPlace {
    /// As `seal`, with an error for the user.
    static func wrap(
        _ key: AccessKey, app: String, user: String, under vaultKey: SecureBytes
    ) throws(AccountError) -> [UInt8] {
        do throws(CryptoError) {
            return try ofAccessKey(app: app, user: user).seal(key, under: vaultKey)
        } catch { throw .unusable("\(error)") }
    }

    /// - Returns: nil when it cannot be opened.
    static func unwrap(_ wrap: [UInt8], app: String, user: String, under vaultKey: SecureBytes) -> AccessKey? {
        try? ofAccessKey(app: app, user: user).openAccessKey(wrap, under: vaultKey)
    }
}

extension AccessKey {
    func proof() throws(AccountError) -> SecureBytes {
        do throws(CryptoError) { return try recoveryAuth() } catch { throw .unusable("\(error)") }
    }

    func userID(app: String) throws(AccountError) -> String {
        do throws(CryptoError) { return try AccountPlace.userID(app: app, key: self) } catch {
            throw .unusable("the app's name is too long")
        }
    }
}

/// A name as sent: Unicode normalisation form C, 1 to 254 bytes (spec 3.2).
package struct AccountName: Sendable {
    package let text: String

    package init(_ text: String) throws(AccountError) {
        guard let composed = try? UnicodeText.composed(Array(text.utf8)), (1...254).contains(composed.count)
        else { throw .unusable("a name has 1 to 254 bytes") }
        self.text = String(decoding: composed, as: UTF8.self)
    }
}
