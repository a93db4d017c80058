import ThicketProtocol

/// The contents of a good login token: the user, the device, and the end.
public struct PartnerPass: Sendable, Hashable {
    /// Id of the partner.
    public let partner: String
    /// The server's id of the user.
    public let entity: String
    /// The device's id.
    public let device: String
    /// SHA-256 of the token.
    public let token: [UInt8]
    /// Seconds since 1970 at which it ends, leeway included.
    public let ends: Double

    /// A pass for a token that has been checked.
    public init(partner: String, entity: String, device: String, token: [UInt8], ends: Double) {
        (self.partner, self.entity, self.device, self.token, self.ends) = (partner, entity, device, token, ends)
    }

    /// The entry that denies it, for as long as the largest leeway that may be configured keeps it alive.
    public var denied: DeniedToken { DeniedToken(hash: token, until: ends + TokenRules.expiryLeewayMax) }
}

// Login tokens as sync tokens: shown in the `init` of a channel.
extension PartnerService {
    /// The result of checking a token of an `init`.
    public enum Admission: Sendable {
        /// The token is good.
        case admitted(PartnerPass)
        /// The token is not good.
        case refused(TokenRefusal)
        /// Too many failed tokens of late; this one was not checked, and none is checked for so many whole seconds.
        case tooMany(seconds: Int)
        /// The directory could not be read.
        case failed(DirectoryError)
    }

    /// Checks a login token by the rules of requests; the partner is that of the app.
    /// - Parameters:
    ///   - device: `device_id` of the `init`; a missing one is refused like a wrong one.
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
