import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// `thicket login --partner --token-file FILE`: a login by a token that the partner's own server has signed. It gives
/// access to sealed bytes only; 'thicket keys' opens the keys. When the login ends, the same command with the next
/// token continues it.
enum PartnerTokenLogin {
    static func run(_ call: Call, _ place: LoginPlace) async throws(Failure) {
        let old = place.old.flatMap { same($0.server, place.server) && same($0.app, place.app) ? $0 : nil }
        let apiKey = call.setting("api-key") ?? old?.login?.apiKey
        let partner = call.value("partner-id") ?? old?.login?.partnerId
        guard let apiKey, let partner, let token = try Secrets.token(call) else {
            throw LoginPlace.missing([
                apiKey == nil ? "--api-key KEY, the partner's, which is not a secret" : nil,
                partner == nil ? "--partner-id ID, the partner's, such as 1000" : nil,
            ])
        }
        guard let claims = Claims(token) else {
            throw Failure(
                "not logged in: this is not a login token of a partner, which names a user and a device. The partner's "
                    + "server signs one.", .usage)
        }
        place.warnIfReadable(.token)
        var profile = try place.profile(token: token)
        (profile.kind, profile.user) = (.partner, claims.name)
        profile.login = Profile.Login(
            apiKey: apiKey, userId: claims.entity, partnerId: partner, device: claims.device)
        _ = try await LoginCommand.check(profile, call)
        try await place.keep(profile)
    }

    /// What the token says about its owner. The server verifies the token; this type only reads it.
    struct Claims {
        let entity: String
        let name: String
        let device: String
        /// The server issued the token for a password, and renews it while that login lasts.
        let isOfPassword: Bool

        init?(_ token: String) {
            let parts: [Substring] = token.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 3, let payload = Base64.decodeURL(Array(parts[1].utf8)[...]),
                let object = (try? JSONValue(parsing: payload))?.objectValue,
                let entity = object["rezolve_entity_id"]?.stringValue, !same(entity, ":NONE:"),
                let device = object["device_id"]?.stringValue
            else { return nil }
            (self.entity, self.device) = (entity, device)
            isOfPassword = object["thicket_session"] != nil
            name = object["partner_entity_id"]?.stringValue ?? entity
        }
    }
}
