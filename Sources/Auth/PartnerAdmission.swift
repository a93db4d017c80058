import ThicketProtocol

/// What a good login token gives: whom it lets in, on which device, and until when.
public struct PartnerPass: Sendable, Hashable {
    /// Id of the partner.
    public let partner: String
    /// Our id of the user.
    public let entity: String
    public let device: String
    /// SHA-256 of the token.
    public let token: [UInt8]
    /// Seconds since 1970 from which on it lets nobody in, leeway included.
    public let ends: Double

    public init(partner: String, entity: String, device: String, token: [UInt8], ends: Double) {
        (self.partner, self.entity, self.device, self.token, self.ends) = (partner, entity, device, token, ends)
    }

    /// As it is denied: for as long as any leeway that may be set lets it live.
    public var denied: DeniedToken { DeniedToken(hash: token, until: ends + TokenRules.expiryLeewayMax) }
}

// Login tokens as sync tokens: shown in the `init` of a channel.
extension PartnerService {
    /// What came out of a token that was shown in an `init`.
    public enum Admission: Sendable {
        case admitted(PartnerPass)
        case refused(TokenRefusal)
        /// Too many failed tokens of late; it was not looked at, and none will be for so many whole seconds.
        case tooMany(seconds: Int)
        case failed(DirectoryError)
    }

    /// Judges a login token by the rules of requests; the partner is that of the app.
    /// - Parameters:
    ///   - device: what the `init` says beside the token; nil is as bad as another one.
    ///   - app: its id as text.
    ///   - address: of the client, as text: failures are counted by it and the app.
    ///   - now: seconds since 1970.
    public mutating func admit(
        _ token: String, device: String?, app: String, from address: String, now: Double
    ) -> Admission {
        let name = "app \(app) \(address)"
        if let seconds = attempts.failures.wait(name, now: now) { return .tooMany(seconds: seconds) }
        do {
            let partner = try directory.partner(ofApp: app)
            let user = try login(
                Array(token.utf8)[...], of: partner, device: device ?? "", now, fits: { _, _ in true })
            return .admitted(user.pass)
        } catch let refusal as TokenRefusal {
            if refusal != .expired { attempts.failures.add(name, now: now) }
            return .refused(refusal)
        } catch {
            return .failed(error as? DirectoryError ?? DirectoryError("\(error)"))
        }
    }
}
