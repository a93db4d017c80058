internal import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The account of a session: its password, its logins, its deletion.
extension ClientSession {
    /// Sets another password of a built-in account. This signs other devices out; this device continues with a new
    /// token, and no edit is lost.
    ///
    /// - Throws: `unauthorized` (401) when the old password is wrong, `refused` (400) when the new one is not
    ///   acceptable, `invalidOptions` when the session does not belong to a built-in account; in these cases nothing
    ///   was changed. `unavailable`, `network`: the password may have been changed. If it was, the user is signed out
    ///   soon and has to sign in with the new password.
    public func changePassword(from old: String, to new: String) async throws(ClientError) {
        let login = try login(old)
        let (scheme, calls) = (scheme, calls)
        try await keeper.replace { () async throws(ClientError) in
            try await scheme.changePassword(login, to: new, calls).accessToken
        }
    }

    /// Logs in again to the same built-in account after a sign-out. Edits that waited are sent.
    ///
    /// - Throws: `unauthorized` (401) for a wrong password, `invalidOptions` when the session does not belong to a
    ///   built-in account.
    public func signIn(password: String) async throws(ClientError) {
        try await signIn(accessToken: try await scheme.signIn(try login(password), calls).accessToken)
    }

    /// Deletes the built-in account with all its data on the server, and signs out. The local copy stays.
    ///
    /// - Throws: `unauthorized` (401) for a wrong password, `invalidOptions` when the session does not belong to a
    ///   built-in account; in these cases nothing was deleted. `network`: the account may have been deleted.
    public func deleteAccount(password: String) async throws(ClientError) {
        try await scheme.deleteAccount(try login(password), calls)
        await keeper.end(.deleted)
    }

    private func login(_ password: String) throws(ClientError) -> AccountLogin {
        guard case .account(let name, _) = user else {
            throw ClientError(.invalidOptions, "only a built-in account has a password at this server")
        }
        return AccountLogin(name: name, password: password)
    }

    // MARK: - Logins of the user

    /// The devices on which the user is logged in, the newest first.
    ///
    /// For a partner's user: the devices that the server has admitted. For a built-in account: the logins whose tokens
    /// are still valid, under the device names that they gave.
    ///
    /// - Throws: as `calling`.
    public func devices() async throws(ClientError) -> [SessionDevice] {
        guard case .partner(let entity, let partner) = user else {
            return try await tokens().map { token in
                SessionDevice(
                    id: token.device.isEmpty ? token.id : token.device, firstSeen: token.created, lastSeen: nil,
                    isThisOne: token.isCurrent)
            }
        }
        let path = "/api/v1/partner/\(Self.coded(partner))/customer/\(Self.coded(entity))/devices"
        let own = deviceId
        let calls = calls
        let answer = try await calling { token throws(ClientError) in
            try await calls.ask("GET", path, fields: calls.partnerFields(token))
        }
        return try Self.list("devices", answer) { item in
            guard let id = item["device_id"]?.stringValue, let first = item["first_seen"]?.intValue
            else { return nil }
            return SessionDevice(
                id: id, firstSeen: first, lastSeen: item["last_seen"]?.intValue,
                isThisOne: id.utf8.elementsEqual(own.utf8))
        }
    }

    /// The valid tokens of a built-in account, one for each login.
    ///
    /// - Throws: as `calling`; `invalidOptions` when the session does not belong to a built-in account.
    public func tokens() async throws(ClientError) -> [SessionToken] {
        try Self.list("tokens", try await account("GET", "tokens")) { item in
            guard let id = item["id"]?.stringValue, let created = item["created"]?.intValue else {
                return nil
            }
            return SessionToken(
                id: id, created: created, expires: item["expires"]?.intValue,
                device: item["device"]?.stringValue ?? "", isCurrent: item["current"]?.boolValue ?? false)
        }
    }

    /// Revokes a token, which signs its holder out. The server then closes all connections of the user; clients with
    /// other tokens reconnect by themselves.
    ///
    /// - Parameter id: an id from `tokens`.
    /// - Throws: as `calling`; `notFound` when the token does not exist, `invalidOptions` when the session does not
    ///   belong to a built-in account.
    public func revokeToken(_ id: String) async throws(ClientError) {
        do throws(ClientError) { _ = try await account("DELETE", "tokens/\(Self.coded(id))") } catch {
            guard error.number == 400 else { throw error }
            throw ClientError(.notFound, error.detail, number: 400)
        }
    }

    private func account(_ method: String, _ path: String) async throws(ClientError) -> HTTPAnswer {
        guard case .account = user else {
            throw ClientError(.invalidOptions, "only built-in accounts have tokens that can be listed and ended")
        }
        let calls = calls
        return try await calling { token throws(ClientError) in
            try await calls.ask(method, "/1/\(calls.app)/auth/\(path)", fields: calls.accountFields(token))
        }
    }

    private static func list<Item>(
        _ name: String, _ answer: HTTPAnswer, _ read: (JSONObject) -> Item?
    ) throws(ClientError) -> [Item] {
        guard case .array(let items)? = try ServerCalls.object(answer)[name] else {
            throw ClientError(.protocolViolation, "the server's answer has no \(name)")
        }
        return items.compactMap { $0.objectValue.flatMap(read) }
    }

    /// Percent-encodes a text for one path segment: all but the unreserved characters (RFC 3986, 2.3).
    static func coded(_ text: String) -> String {
        var coded = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
                coded.unicodeScalars.append(Unicode.Scalar(byte))
            default: coded += "%" + Hex.encode([byte]).uppercased()
            }
        }
        return coded
    }
}

/// A device on which a user is, or was, logged in.
public struct SessionDevice: Sendable, Equatable {
    /// The device's id; for a login of a built-in account that gave no device name, the token's id.
    public let id: String
    /// The first login, in seconds since 1970.
    public let firstSeen: Int64
    /// The last use, in seconds since 1970, rounded to the hour; nil when the server does not keep it.
    public let lastSeen: Int64?
    /// Whether it is the device of this session.
    public let isThisOne: Bool
}

/// A token of a built-in account, without its text: the server does not return that again.
public struct SessionToken: Sendable, Equatable {
    /// The id to pass to `ClientSession.revokeToken`.
    public let id: String
    /// When it was issued, in seconds since 1970.
    public let created: Int64
    /// When it expires, in seconds since 1970; nil: valid until it is revoked.
    public let expires: Int64?
    /// The device name that the login gave; empty when it gave none.
    public let device: String
    /// Whether it is the token of this session.
    public let isCurrent: Bool
}
