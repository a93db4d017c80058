import ThicketClient
import ThicketCrypto

/// Makes the derivation of keys from passwords and passphrases cheap for tests, which sign in often. The server is
/// still given the parameters of the product. Release builds do not contain it.
enum CheapPasswords {
    #if DEBUG
        /// The variable of the environment by which tests tell their programs so.
        static let variable = "THICKET_CHEAP_PASSPHRASES"

        static func rules(_ call: Call) -> PasswordRules { isWanted(call) ? .tests : .product }

        static func cost(_ call: Call) -> PasswordCost { isWanted(call) ? cheapest ?? .standard : .standard }

        static func stretch(_ call: Call) -> AccountAPIClient.Stretch? { isWanted(call) ? cheap : nil }

        /// The derivation of these programs, for tests that use the library beside them.
        static let cheap: AccountAPIClient.Stretch = { password, salt, cost throws(CryptoError) in
            try PasswordKeys(password: password, salt: salt, cost: cheapest ?? cost)
        }

        private static let cheapest = try? PasswordRules.tests.cost(
            kdf: PasswordRules.scryptNumber, log2N: 14, r: 8, p: 1)

        private static func isWanted(_ call: Call) -> Bool { call.environment[variable]?.isEmpty == false }
    #else
        static func rules(_ call: Call) -> PasswordRules { .product }
        static func cost(_ call: Call) -> PasswordCost { .standard }
        static func stretch(_ call: Call) -> AccountAPIClient.Stretch? { nil }
    #endif
}
