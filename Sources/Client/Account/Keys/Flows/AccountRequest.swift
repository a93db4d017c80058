package import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// A request of docs/AUTH.md, "Where the password stays with the client". Its body holds login secrets.
package struct AccountRequest: Sendable {
    /// The authentication of a request.
    package enum Asker: Sendable {
        /// The app's public API key.
        case app
        /// The account's user.
        case user(token: String)
        /// A partner's user; the device is named beside the token.
        case partner(token: String)
    }

    package let method: String
    /// The path after `/1/{APP}/auth/`.
    package let path: String
    package let asker: Asker
    package let body: SecureBytes?

    static func prelogin(_ name: AccountName) -> AccountRequest {
        .init(method: "POST", path: "prelogin", asker: .app, body: secretBody { $0.add("u", .string(name.text)) })
    }

    /// The members of a new account.
    struct NewAccount {
        let name: AccountName
        let keys: PasswordKeys
        let pin: PasswordPin
        let access: [UInt8]
        let bundle: [UInt8]
        let proof: SecureBytes
        let device: String
        /// The account's first entries in the key log (`KeyLogEntry.bytes`).
        let entries: [[UInt8]]
    }

    static func signup(_ new: NewAccount) -> AccountRequest {
        .init(
            method: "POST", path: "signup", asker: .app,
            body: secretBody { $0.add(new) })
    }

    static func login(_ name: AccountName, _ authKey: SecureBytes, device: String) -> AccountRequest {
        .init(
            method: "POST", path: "login", asker: .app,
            body: secretBody { body in
                body.add("u", .string(name.text))
                body.add("a", bytes: authKey)
                body.add("device", .string(device))
            })
    }

    /// Another password, or the same one with another wrap.
    struct NewPassword {
        let authKey: SecureBytes
        let pin: PasswordPin
        let access: [UInt8]
        let device: String
    }

    /// - Parameter proof: the proof of the access key that is sealed under the new password.
    static func password(
        _ old: SecureBytes, proof: SecureBytes, _ new: NewPassword, token: String
    ) -> AccountRequest {
        .init(
            method: "POST", path: "password", asker: .user(token: token),
            body: secretBody { body in
                body.add("a_old", bytes: old)
                body.add("r", bytes: proof)
                body.add(new)
            })
    }

    static func recover(_ name: AccountName, proof: SecureBytes, _ new: NewPassword) -> AccountRequest {
        .init(
            method: "POST", path: "recover", asker: .app,
            body: secretBody { body in
                body.add("u", .string(name.text))
                body.add("r", bytes: proof)
                body.add(new)
            })
    }

    static func delete(_ authKey: SecureBytes, token: String) -> AccountRequest {
        .init(
            method: "POST", path: "delete", asker: .user(token: token), body: secretBody { $0.add("a", bytes: authKey) }
        )
    }

    static func openPairing(_ hello: [UInt8]) -> AccountRequest {
        .init(method: "POST", path: "pair", asker: .app, body: secretBody { $0.add("hello", octets: hello) })
    }

    static func lookAtPairing(_ code: String) -> AccountRequest {
        .init(method: "GET", path: "pair/\(code)", asker: .app, body: nil)
    }

    static func answerPairing(_ code: String, _ sealed: [UInt8]) -> AccountRequest {
        .init(method: "PUT", path: "pair/\(code)", asker: .app, body: secretBody { $0.add("sealed", octets: sealed) })
    }

    /// Makes a login for another device.
    static func addToken(_ proof: SecureBytes, device: String, token: String) -> AccountRequest {
        .init(
            method: "POST", path: "tokens", asker: .user(token: token),
            body: secretBody { body in
                body.add("r", bytes: proof)
                body.add("device", .string(device))
            })
    }

    /// Revokes the token.
    static func logout(token: String) -> AccountRequest {
        .init(method: "POST", path: "logout", asker: .user(token: token), body: nil)
    }

    package static func readBundle(_ asker: Asker) -> AccountRequest {
        .init(method: "GET", path: "bundle", asker: asker, body: nil)
    }

    /// Additional members for a partner's user.
    package struct PartnerMembers {
        /// Required from the second version on.
        package var proof: SecureBytes?
        /// For the first version.
        package var recover: SecureBytes?
        /// nil: the wrap does not change.
        package var wrap: Wrap?
        /// For the first version: the user's first entries in the key log.
        package var entries: [[UInt8]] = []
        package enum Wrap: Sendable {
            case none
            case passphrase([UInt8], PasswordPin)
        }

        package init(proof: SecureBytes? = nil, recover: SecureBytes? = nil, wrap: Wrap? = nil) {
            (self.proof, self.recover, self.wrap) = (proof, recover, wrap)
        }
    }

    package static func putBundle(
        _ bundle: [UInt8], replacing version: UInt64, _ asker: Asker, _ members: PartnerMembers = .init()
    ) -> AccountRequest {
        .init(
            method: "PUT", path: "bundle", asker: asker,
            body: secretBody { body in
                body.add("version", .number(JSONNumber(Int64(clamping: version))))
                body.add("bundle", octets: bundle)
                if let proof = members.proof { body.add("r", bytes: proof) }
                if let recover = members.recover { body.add("recover", bytes: recover) }
                body.add(entries: members.entries)
                switch members.wrap {
                case nil: break
                case .some(.none): body.add("access", .null)
                case .passphrase(let wrap, let pin)?:
                    body.add("access", octets: wrap)
                    body.add(pin)
                    body.add("n", .number(JSONNumber(Int64(pin.log2N))))
                    body.add("p", .number(JSONNumber(Int64(pin.p))))
                }
            })
    }

    static func secretBody(_ write: (inout SecretWriter) -> Void) -> SecureBytes {
        var writer = SecretWriter()
        write(&writer)
        return writer.text
    }
}

extension SecretWriter {
    mutating func add(_ name: StaticString, quoted letters: SecureBytes) {
        let quote = SecureBytes(copying: [UInt8(ascii: "\"")])
        add(name, .joined([quote, letters, quote]))
    }

    mutating func add(_ new: AccountRequest.NewAccount) {
        add("u", .string(new.name.text))
        add("a", bytes: new.keys.authKey)
        add(new.pin)
        add("access", octets: new.access)
        add("bundle", octets: new.bundle)
        add("recover", bytes: new.proof)
        add("device", .string(new.device))
        add(entries: new.entries)
    }

    /// Adds nothing when there are none.
    mutating func add(entries: [[UInt8]]) {
        guard !entries.isEmpty else { return }
        add("entries", .array(entries.map { .string(Base64.encodeURL($0)) }))
    }

    mutating func add(_ name: StaticString, octets: [UInt8]) {
        add(name, .string(Base64.encodeURL(octets)))
    }

    mutating func add(_ pin: PasswordPin) {
        add("kdf", .number(JSONNumber(Int64(pin.kdf))))
        add("salt", octets: pin.salt)
    }

    mutating func add(_ new: AccountRequest.NewPassword) {
        add("a", bytes: new.authKey)
        add(new.pin)
        add("access", octets: new.access)
        add("device", .string(new.device))
    }
}

/// The server's answer, parsed as strictly as untrusted input.
package struct AccountReply: Sendable {
    /// The members as the server wrote them.
    package let members: JSONObject

    package init(_ members: JSONObject) { self.members = members }

    private static func lacks(_ name: String) -> AccountError {
        .server(ClientError(.protocolViolation, "the server's answer has no usable \(name)"))
    }

    func text(_ name: String) throws(AccountError) -> String {
        guard let text = members[name]?.stringValue, !text.isEmpty else { throw Self.lacks(name) }
        return text
    }

    /// A usable token.
    func token() throws(AccountError) -> String {
        let token = try text("access_token")
        guard LoginToken.isAcceptable(token) else { throw Self.lacks("access_token") }
        return token
    }

    func isNull(_ name: String) -> Bool { members[name]?.isNull ?? true }

    func flag(_ name: String) -> Bool { members[name]?.boolValue ?? false }

    func octets(_ name: String) throws(AccountError) -> [UInt8] {
        guard let text = members[name]?.stringValue,
            let bytes = Base64.decodeURL(Array(text.utf8)[...])
        else { throw Self.lacks(name) }
        return bytes
    }

    func version() throws(AccountError) -> UInt64 {
        guard let number = members["version"]?.intValue, let version = UInt64(exactly: number) else {
            throw Self.lacks("version")
        }
        return version
    }

    /// The parameters of the key derivation.
    ///
    /// - Parameter isBare: the member has no scheme, because its place in the answer determines it.
    func pin(isBare: Bool = false) throws(AccountError) -> PasswordPin {
        func number(_ name: String) throws(AccountError) -> Int {
            guard let number = members[name]?.intValue, let int = Int(exactly: number) else {
                throw Self.lacks(name)
            }
            return int
        }
        return PasswordPin(
            scheme: isBare ? 1 : try number("scheme"), kdf: try number("kdf"), log2N: try number("n"),
            r: try number("r"), p: try number("p"), salt: try octets("salt"))
    }

    /// A part that is itself an answer.
    func part(_ name: String) -> AccountReply? { members[name]?.objectValue.map(AccountReply.init) }
}
