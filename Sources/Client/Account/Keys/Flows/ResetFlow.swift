public import ThicketCrypto

/// Requests a code for setting another password. The server gives the same answer for every name.
package struct ForgotFlow: AccountFlow {
    package typealias Outcome = Void

    private let name: AccountName

    package init(name: String) throws(AccountError) { self.name = try AccountName(name) }

    package mutating func begin() throws(AccountError) -> AccountStep<Void> { .ask(.forgot(name)) }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Void> {
        switch event {
        case .answered: return .done(())
        case .refused(let error): throw .server(error)
        case .stretched: throw outOfStep()
        }
    }
}

/// Sets another password by a mailed code. Only the proof is reset: the account is then locked, until its words, the
/// previous password or a device with the keys opens it (spec 3.2).
package struct ResetFlow: AccountFlow {
    package typealias Outcome = Void

    private enum State { case stretching, asking }

    private let name: AccountName
    private let code: SecureBytes
    private let password: SecureBytes
    private let pin: PasswordPin
    private var state = State.stretching

    /// - Parameter code: as typed, with any separators between its digits.
    package init(
        name: String, code: SecureBytes, password: SecureBytes, random: AccountRandom = .system
    ) throws(AccountError) {
        guard password.count > 0 else { throw .unusable("the new password is empty") }
        let digits = Self.digits(of: code)
        guard (1...Self.digitsMax).contains(digits.count) else { throw .unusable("a code consists of digits only") }
        self.name = try AccountName(name)
        (self.code, self.password) = (digits, password)
        pin = .new(salt: random.salt())
    }

    private static let digitsMax = 64

    /// Removes spaces, dashes and line breaks; empty when the text contains anything else but digits.
    private static func digits(of code: SecureBytes) -> SecureBytes {
        code.withUnsafeBytes { bytes in
            let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
            guard bytes.allSatisfy({ isDigit($0) || [0x09, 0x0A, 0x0D, 0x20, 0x2D].contains($0) }) else {
                return SecureBytes(count: 0) { _ in }
            }
            return SecureBytes(count: bytes.count(where: isDigit)) { room in
                var place = 0
                for byte in bytes where isDigit(byte) {
                    room[place] = byte
                    place += 1
                }
            }
        }
    }

    package mutating func begin() throws(AccountError) -> AccountStep<Void> {
        .stretch(password, salt: pin.salt, .standard)
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Void> {
        switch (state, event) {
        case (.stretching, .stretched(let keys)):
            state = .asking
            return .ask(.verify(name, code: code, keys.authKey, pin))
        case (.asking, .answered(let reply)):
            guard reply.flag("locked") else {
                throw .server(ClientError(.protocolViolation, "the server does not report that the account is locked"))
            }
            return .done(())
        case (.asking, .refused(let error)):
            // A code is valid once: repeating the request would be refused, whatever the first one did.
            if error.leavesFirstOpen { throw .unknown(error) }
            throw error.number == 401 && error.detail.contains("login") ? .wrongCode : .server(error)
        default: throw outOfStep()
        }
    }
}

extension Accounts {
    /// Requests a mail with a code for setting another password. The result does not reveal whether the name exists.
    ///
    /// - Throws: `server`.
    public func sendResetCode(name: String) async throws(AccountError) {
        try await api.run(try ForgotFlow(name: name))
    }

    /// Sets another password by a mailed code. The account is then locked: a sign-in with the password gives `locked`.
    ///
    /// - Throws: `wrongCode` for a wrong, used or expired code; `unknown`: a sign-in with the password shows whether it
    ///   was set.
    public func reset(name: String, code: SecureBytes, newPassword: SecureBytes) async throws(AccountError) {
        try await api.run(try ResetFlow(name: name, code: code, password: newPassword, random: random))
    }
}
