package import ThicketCrypto
import ThicketProtocol

/// Something that is done with an account, step by step: what is asked of the server, what is reckoned, and what comes
/// of it. A value; who runs it does the work (`AccountDoor`), and tests whatever they like between two steps.
package protocol AccountFlow: Sendable {
    associatedtype Outcome: Sendable

    /// The first step.
    mutating func begin() throws(AccountError) -> AccountStep<Outcome>
    /// The step that follows from what came of the last one.
    mutating func take(_ event: AccountEvent) throws(AccountError) -> AccountStep<Outcome>
}

/// What is to be done next.
package enum AccountStep<Outcome: Sendable>: Sendable {
    case ask(AccountRequest)
    /// A password, and how it is stretched.
    case stretch(SecureBytes, salt: [UInt8], PasswordCost)
    case done(Outcome)
}

/// What came of a step.
package enum AccountEvent: Sendable {
    case answered(AccountReply)
    /// The server refused, or its answer did not come.
    case refused(ClientError)
    case stretched(PasswordKeys)
}

/// Bounds of what is done again.
enum AccountFlowLimits {
    /// A bundle that others write at the same time is tried so often.
    static let writesMax = 5
    /// Requests whose answer did not come, and which do no harm a second time.
    static let asksMax = 2
}

/// A user who came in, with open keys.
public struct SignedIn: Sendable {
    public let account: OpenAccount
    /// Of this login; good until it is ended, or another password set.
    public let accessToken: String
}

extension SignedIn: CustomStringConvertible, CustomReflectable {
    /// Says nothing of what it holds.
    public var description: String { "(a login with its keys)" }
    /// Shows nothing of what it holds.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

extension AccountFlow {
    /// What a step of another kind than the one that was waited for means: a mistake of whoever runs the flow.
    func outOfStep() -> AccountError { .unusable("an answer came that nobody waited for") }
}

extension ClientError {
    /// Whether the server may have done what it was asked for.
    package var leavesItOpen: Bool {
        switch code {
        case .network, .deadline, .protocolViolation: true
        case .unavailable: number != 429
        default: false
        }
    }

    /// The same of the first request that could have done it: nothing was asked for before, so one that was not sent
    /// did nothing.
    var leavesFirstOpen: Bool { leavesItOpen && !isUnsent }

    /// Whether the account has got another access key than the one that was shown (docs/AUTH.md).
    var isOtherAccessKey: Bool { number == 409 && detail.contains("access key") }
}

extension AccountPlace {
    /// As `seal`, with an error for a person.
    static func wrap(
        _ key: AccessKey, app: String, user: String, under vaultKey: SecureBytes
    ) throws(AccountError) -> [UInt8] {
        do throws(CryptoError) {
            return try ofAccessKey(app: app, user: user).seal(key, under: vaultKey)
        } catch { throw .unusable("\(error)") }
    }

    /// - Returns: nil when it does not open.
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

/// A name as it is sent: normalisation form C, 1 to 254 bytes (spec 3.2).
package struct AccountName: Sendable {
    package let text: String

    package init(_ text: String) throws(AccountError) {
        guard let composed = try? UnicodeText.composed(Array(text.utf8)), (1...254).contains(composed.count)
        else { throw .unusable("a name has 1 to 254 bytes") }
        self.text = String(decoding: composed, as: UTF8.self)
    }
}
