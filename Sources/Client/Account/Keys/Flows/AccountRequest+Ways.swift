package import ThicketCrypto
import ThicketProtocol

// Ways to a password, and to keys, for who has the account in another form.
extension AccountRequest {
    /// A code for another password, sent to the name if that is an address.
    static func forgot(_ name: AccountName) -> AccountRequest {
        .init(method: "POST", path: "forgot", asker: .app, body: secretBody { $0.add("u", .string(name.text)) })
    }

    /// Another password, by the code. The account is locked by it.
    /// - Parameter code: digits.
    static func verify(_ name: AccountName, code: SecureBytes, _ authKey: SecureBytes, _ pin: PasswordPin)
        -> AccountRequest
    {
        .init(
            method: "POST", path: "verify", asker: .app,
            body: secretBody { body in
                body.add("u", .string(name.text))
                body.add("code", quoted: code)
                body.add("a", bytes: authKey)
                body.add(pin)
            })
    }

    /// A login as it was before the account had keys: what is sent of name and password, letters of base64.
    package struct SentLogin: Sendable {
        let username: SecureBytes
        let password: SecureBytes

        /// - Parameters: texts that stand in JSON as they are.
        package init(username: SecureBytes, password: SecureBytes) {
            (self.username, self.password) = (username, password)
        }
    }

    /// Keys for an account that has none; and the access key under the password from before, for who goes on with it.
    static func upgrade(_ login: SentLogin, to new: NewAccount, old: (wrap: [UInt8], pin: PasswordPin))
        -> AccountRequest
    {
        .init(
            method: "POST", path: "upgrade", asker: .app,
            body: secretBody { body in
                body.add("username", quoted: login.username)
                body.add("password", quoted: login.password)
                body.add(new)
                body.add("old_salt", octets: old.pin.salt)
                body.add("old_access", octets: old.wrap)
            })
    }

    /// Another access key, with what is sealed under and around it.
    struct NewAccessKey {
        /// The password, and the access key until now.
        let authKey: SecureBytes
        let proof: SecureBytes
        let access: [UInt8]
        let bundle: [UInt8]
        /// Of the bundle that is replaced.
        let version: UInt64
        /// Of the new key.
        let recover: SecureBytes
    }

    static func changeAccessKey(_ new: NewAccessKey, token: String) -> AccountRequest {
        .init(
            method: "POST", path: "access", asker: .user(token: token),
            body: secretBody { body in
                body.add("a", bytes: new.authKey)
                body.add("r", bytes: new.proof)
                body.add("version", .number(JSONNumber(Int64(clamping: new.version))))
                body.add("access", octets: new.access)
                body.add("bundle", octets: new.bundle)
                body.add("recover", bytes: new.recover)
            })
    }

    /// The end of the login from before.
    static func finishUpgrade(_ name: AccountName, proof: SecureBytes, device: String) -> AccountRequest {
        .init(
            method: "PUT", path: "upgrade", asker: .app,
            body: secretBody { body in
                body.add("u", .string(name.text))
                body.add("r", bytes: proof)
                body.add("device", .string(device))
            })
    }
}
