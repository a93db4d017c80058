import ThicketProtocol

/// Logins of partner users whose passwords the Thicket server keeps (`/v2/credentials`, docs/AUTH.md).
enum PartnerPasswords {
    /// The result of a login.
    struct Grant: Sendable {
        let entityId: String
        let partnerId: String
        let accessToken: String
    }

    static func signUp(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError) {
        let body: JSONObject = ["username": .string(login.name), "password": .string(login.password)]
        _ = try await calls.ask("POST", "/v2/credentials/register", body, fields: calls.partnerFields())
    }

    static func signIn(_ login: AccountLogin, _ calls: ServerCalls) async throws(ClientError) -> Grant {
        let body: JSONObject = [
            "deviceId": .string(calls.deviceId), "username": .string(login.name), "password": .string(login.password),
        ]
        let answer = try await calls.ask(
            "POST", "/v2/credentials/login", body, fields: calls.partnerFields())
        let user = try ServerCalls.object(answer)
        return Grant(
            entityId: try ServerCalls.text("sdkEntity", in: user),
            partnerId: try ServerCalls.text("sdkPartner", in: user),
            accessToken: try bearer(answer.fields["authorization"]))
    }

    /// The server prefixes the token with `Bearer`, because clients copy the value unchanged into their next request.
    static func bearer(_ value: String?) throws(ClientError) -> String {
        let words: [Substring] = (value ?? "").split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bearer", LoginToken.isAcceptable(String(words[1])) else {
            throw ClientError(.protocolViolation, "the server's answer has no usable token")
        }
        return String(words[1])
    }
}

/// Renews tokens of users whose passwords the Thicket server keeps. The server accepts a token for renewal up to a day
/// after its expiry.
struct PingSource: TokenSource {
    let calls: ServerCalls

    func token(for request: TokenRequest) async throws -> String {
        do throws(ClientError) {
            let answer = try ServerCalls.object(
                try await calls.ask(
                    "GET", "/v2/credentials/ping", fields: calls.partnerFields(request.accessToken), isUrgent: true))
            return try PartnerPasswords.bearer(answer["accessToken"]?.stringValue)
        } catch {
            if error.code == .unauthorized { throw TokenDenied() }
            throw error
        }
    }
}
