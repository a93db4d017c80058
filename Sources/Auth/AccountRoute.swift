import ThicketProtocol

/// The request about a built-in account that a path names, whatever the method.
public struct AccountRoute: Sendable, Hashable {
    /// The app that the path names.
    public let app: AppID
    let call: Call

    enum Call: Sendable, Hashable {
        // As in Simperium's API.
        case create, authorize, update, resetPassword, delete, forgot, verify
        // The password stays with the client.
        case prelogin, signup, login, password, recover, bundle, remove, forgotKey, verifyKey
        case tokens, token(String), logout, notes, upgrade, access
        // Guests of links.
        case guests, guest(String)
        // A new device gets the keys from an old one.
        case openPairing, pairing(String)
    }

    /// nil for other paths.
    public init?(_ path: Substring) {
        guard path.utf8.starts(with: "/1/".utf8) else { return nil }
        var parts: [Substring] = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2).map { $0 }
        if parts.count > 2, parts.last?.isEmpty == true { parts.removeLast() }
        guard parts.count >= 2, let call = Self.call(parts.dropFirst().map(String.init)),
            let app = try? AppID(String(parts[0]))
        else { return nil }
        (self.app, self.call) = (app, call)
    }

    private static func call(_ words: [String]) -> Call? {
        switch words {
        case ["create"]: .create
        case ["authorize"]: .authorize
        case ["update"]: .update
        case ["reset_password"]: .resetPassword
        case ["delete"]: .delete
        case ["forgot"]: .forgot
        case ["verify"]: .verify
        case ["auth", "prelogin"]: .prelogin
        case ["auth", "signup"]: .signup
        case ["auth", "login"]: .login
        case ["auth", "password"]: .password
        case ["auth", "recover"]: .recover
        case ["auth", "bundle"]: .bundle
        case ["auth", "delete"]: .remove
        case ["auth", "forgot"]: .forgotKey
        case ["auth", "verify"]: .verifyKey
        case ["auth", "tokens"]: .tokens
        case ["auth", "guests"]: .guests
        case ["auth", "logout"]: .logout
        case ["auth", "notes"]: .notes
        case ["auth", "upgrade"]: .upgrade
        case ["auth", "access"]: .access
        case ["auth", "pair"]: .openPairing
        default: words.count == 3 && words[0] == "auth" ? named(words[1], words[2]) : nil
        }
    }

    private static func named(_ kind: String, _ name: String) -> Call? {
        switch kind {
        case "tokens": .token(name)
        case "guests": .guest(name)
        case "pair": .pairing(name)
        default: nil
        }
    }

    /// The methods that the route takes, as in the `allow` field.
    public var methods: String {
        switch call {
        case .bundle, .pairing: "GET, PUT"
        case .tokens, .guests: "GET, POST"
        case .notes: "GET"
        case .upgrade: "POST, PUT"
        case .token, .guest: "DELETE"
        default: "POST"
        }
    }

    /// Whether the route accepts the method.
    public func accepts(_ method: String) -> Bool { methods.split(separator: ", ").contains { $0 == method } }
}

extension AccountRoute.Call {
    var style: AccountAnswer.Style {
        switch self {
        case .create, .authorize, .update, .resetPassword, .delete, .forgot, .verify: .text
        default: .json
        }
    }
}
