package import ThicketCrypto
import ThicketProtocol

// Requests for a reset of the password, the upgrade of an old account, and a change of the access key.
extension AccountRequest {
    /// Requests a code for setting another password, sent to the name if that is a mail address.
    static func forgot(_ name: AccountName) -> AccountRequest {
        .init(method: "POST", path: "forgot", asker: .app, body: secretBody { $0.add("u", .string(name.text)) })
    }

    /// Sets another password by the code, which locks the account.
    ///
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

    /// The login of the account before it had keys: name and password as sent, in base64.
    package struct SentLogin: Sendable {
        let username: SecureBytes
        let password: SecureBytes

        /// - Parameters: texts that need no escaping in JSON.
        package init(username: SecureBytes, password: SecureBytes) {
            (self.username, self.password) = (username, password)
        }
    }

    /// Gives keys to an account without keys, with the access key also sealed under the old password for resuming the
    /// upgrade.
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

    /// A new access key, with the data sealed under and around it.
    struct NewAccessKey {
        /// Proofs of the password and of the old access key.
        let authKey: SecureBytes
        let proof: SecureBytes
        let access: [UInt8]
        let bundle: [UInt8]
        /// The version of the replaced bundle.
        let version: UInt64
        /// The proof of the new key.
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

    /// Ends the old login.
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
