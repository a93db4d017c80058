package import ThicketCrypto
import ThicketProtocol

/// The guests of a session's account, and what a link to its branches names.
extension ClientSession {
    /// Where the server of the session is, and how an app is known there.
    package var serverPlace: (server: String, app: String, apiKey: String) {
        (calls.address, calls.app, calls.apiKey)
    }

    /// Makes a guest of this account: its keys are made here, and sealed under the password.
    ///
    /// - Parameters:
    ///   - root: the id of the branch's root.
    ///   - password: UTF-8; it never leaves the device, but in the link.
    ///   - stretch: the key derivation of tests; nil: the usual one.
    /// - Throws: `server` with the server's refusal; `unknown` when the guest may have been made: without its password
    ///   it is of no use, and `guests` lists it.
    package func makeGuest(
        _ root: String, _ purpose: LinkPurpose, _ limits: LinkLimits, password: SecureBytes,
        stretch: AccountAPIClient.Stretch? = nil
    ) async throws(AccountError) -> GuestAccount {
        let clock = SystemSessionClock()
        let now = UInt64(max(0, clock.unixSeconds() * 1_000))
        let client: AccountAPIClient
        do throws(ClientError) { client = try AccountAPIClient(calls, stretch: stretch) } catch {
            throw .server(error)
        }
        return try await client.run(
            try GuestFlow(
                GuestFlow.Wish(app: calls.app, root: root, purpose: purpose, limits: limits), password: password,
                token: await accessToken, now: now))
    }

    /// The guests of this account, the newest first.
    ///
    /// - Throws: as `calling`.
    package func guests() async throws(ClientError) -> [GuestAccount] {
        guard case .array(let items)? = try await look("auth/guests")["guests"] else {
            throw ClientError(.protocolViolation, "the server's answer has no guests")
        }
        return items.compactMap { $0.objectValue.flatMap(GuestAccount.init) }
    }

    /// Removes a guest of this account: it logs in no more, and its connections end.
    ///
    /// - Returns: false when the server has no such guest of this account.
    /// - Throws: as `calling`.
    @discardableResult
    package func removeGuest(_ guest: UserID) async throws(ClientError) -> Bool {
        guard guest.isGuest else { return false }
        let calls = calls
        do throws(ClientError) {
            _ = try await calling { token throws(ClientError) in
                try await calls.ask(
                    "DELETE", "/1/\(calls.app)/auth/guests/\(guest.text)", fields: calls.accountFields(token))
            }
            return true
        } catch {
            guard error.code == .notFound else { throw error }
            return false
        }
    }
}
