package import ThicketCrypto

/// Deletes an account; requires the password again.
package struct DeleteFlow: AccountFlow {
    package typealias Outcome = Void

    private enum State { case begun, asking, stretching, deleting }

    private let account: OpenAccount
    private let name: AccountName
    private let token: String
    private let password: SecureBytes
    private let rules: PasswordRules
    private var state = State.begun

    package init(
        _ account: OpenAccount, token: String, password: SecureBytes, rules: PasswordRules = .product
    ) throws(AccountError) {
        name = try AccountName(account.name)
        (self.account, self.token, self.password, self.rules) = (account, token, password, rules)
    }

    package mutating func begin() throws(AccountError) -> AccountStep<Void> {
        state = .asking
        return .ask(.prelogin(name))
    }

    package mutating func receive(_ event: AccountEvent) throws(AccountError) -> AccountStep<Void> {
        switch (state, event) {
        case (.asking, .answered(let reply)):
            let pin = try reply.pin()
            let cost = try pin.cost(rules, known: account.pin)
            state = .stretching
            return .stretch(password, salt: pin.salt, cost)
        case (.stretching, .stretched(let keys)):
            state = .deleting
            return .ask(.delete(keys.authKey, token: token))
        case (.deleting, .answered): return .done(())
        case (.deleting, .refused(let error)):
            if error.leavesFirstOpen { throw .unknown(error) }
            throw error.number == 401 && error.detail.contains("login")
                ? .wrongPassword(isChanged: false) : .server(error)
        case (_, .refused(let error)): throw .server(error)
        default: throw outOfStep()
        }
    }
}
