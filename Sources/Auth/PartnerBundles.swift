import ThicketCrypto
import ThicketProtocol

/// What a partner's user keeps here of the keys of its data. All of it is opaque to the server.
public struct EntityBundle: Sendable, Hashable {
    /// The access key, sealed under a passphrase that only the user knows, and how that is stretched.
    public struct Wrap: Sendable, Hashable {
        public let stretch: Account.Stretch
        public let access: [UInt8]

        public init(stretch: Account.Stretch, access: [UInt8]) { (self.stretch, self.access) = (stretch, access) }
    }

    public let bundle: Bundle
    /// Keyed hash of what the access key proves; nil: whoever has a token of the user may replace the bundle.
    public let recovery: [UInt8]?
    /// nil: the access key is on the user's devices and in its words alone.
    public let wrap: Wrap?

    public init(bundle: Bundle, recovery: [UInt8]?, wrap: Wrap?) {
        (self.bundle, self.recovery, self.wrap) = (bundle, recovery, wrap)
    }
}

/// Where bundles of partners' users are kept. What a call has changed is on disk when it returns.
public protocol EntityBundles: AnyObject {
    /// nil where there is none.
    func bundle(of entity: String, in app: String) throws(DirectoryError) -> EntityBundle?
    /// Writes the bundle if the one that is there is of the version before; 0 where there is none.
    /// - Returns: whether it was written.
    func put(_ bundle: EntityBundle, of entity: String, in app: String) throws(DirectoryError) -> Bool
    /// Keyed hash of a secret that a client sends, under the server's key file.
    func verifier(of secret: [UInt8]) -> [UInt8]
}

// `/1/{APP}/auth/bundle` by a login token: the sealed keys of users for whom a partner vouches. There is no account and
// no password of theirs here, so what is kept is the bundle, beside it perhaps the access key under a passphrase, and
// what protects both from who has a token and no key: the partner above all.
extension PartnerService {
    func readBundle(_ asked: BundleAsked) throws -> HTTPResponse {
        let entity = try owner(asked)
        let kept = try directory.bundle(of: entity, in: asked.app.text)
        var body: JSONObject = [
            "bundle": kept.map { .string(Base64.encodeURL($0.bundle.content)) } ?? .null,
            "version": .number(JSONNumber(kept?.bundle.version ?? 0)), "access": .null,
        ]
        if let wrap = kept?.wrap {
            AccountService.write(wrap.access, under: wrap.stretch, to: &body)
        }
        return Self.unkept(PartnerAnswer.success(body))
    }

    /// Writes the next version in the place of the one that the body names, 0 for the first, whose writer wins.
    mutating func putBundle(_ asked: BundleAsked) throws -> HTTPResponse {
        let entity = try owner(asked)
        let kept = try directory.bundle(of: entity, in: asked.app.text)
        let body: AccountBody
        let next: EntityBundle
        do throws(AccountRefusal) {
            body = try .init(asked.request.body)
            next = try self.next(kept, body)
        } catch {
            return PartnerAnswer.of(error)
        }
        if let recovery = kept?.recovery { try prove(body, recovery, entity, asked) }
        let version = kept?.bundle.version ?? 0
        guard next.bundle.version == version + 1, try directory.put(next, of: entity, in: asked.app.text) else {
            let current = try directory.bundle(of: entity, in: asked.app.text)
            return PartnerAnswer.outdated(current: current?.bundle.version ?? 0)
        }
        return Self.unkept(PartnerAnswer.success(["version": .number(JSONNumber(next.bundle.version))]))
    }

    /// The user whose login token is shown, as the data API takes it.
    private func owner(_ asked: BundleAsked) throws -> String {
        let partner = try directory.partner(ofApp: asked.app.text)
        guard let token = Self.single("x-simperium-token", in: asked.request.fields) else {
            throw TokenRefusal.denied(.authorization)
        }
        let device = Self.single("x-rezolve-device-id", in: asked.request.fields) ?? ""
        let user = try login(
            Array(token.utf8)[...], of: partner, device: device, asked.now, fits: { _, _ in true })
        return user.entity.id
    }

    /// What the body makes of what is kept: members that it leaves out stay.
    private func next(_ kept: EntityBundle?, _ body: AccountBody) throws(AccountRefusal) -> EntityBundle {
        guard let version = body.integer("version"), version >= 0, version < .max else {
            throw .badRequest("version is wanted: the one that is replaced, 0 where there is none")
        }
        let content = try AccountService.sealed("bundle", body, max: AccountService.bundleBytesMax)
        var (recovery, wrap) = (kept?.recovery, kept?.wrap)
        if body.has("recover") {
            let shown = directory.verifier(of: try AccountService.bytes("recover", body))
            let isSame = recovery.map { ConstantTime.equal(shown, $0) } ?? true
            recovery = shown
            // Another access key: what is kept under the passphrase would be a wrap of the old one.
            guard isSame || kept?.wrap == nil || body.has("access") else {
                throw .badRequest("access is wanted: what is kept seals another access key; null takes it away")
            }
        }
        if body.isNull("access") {
            wrap = nil
        } else if body.has("access") {
            wrap = EntityBundle.Wrap(
                stretch: try AccountService.stretch(body, \.isHonoured),
                access: try AccountService.sealed("access", body, max: AccountService.accessBytesMax))
        }
        return EntityBundle(bundle: Bundle(version: version + 1, content: content), recovery: recovery, wrap: wrap)
    }

    /// Whether who writes has the access key, or the words for it. A token alone proves what the partner says.
    private mutating func prove(
        _ body: AccountBody, _ recovery: [UInt8], _ entity: String, _ asked: BundleAsked
    ) throws {
        let place = "bundle \(asked.app.text) \(entity)"
        if let seconds = attempts.wait(name: place, now: asked.now) { throw Limited(seconds: seconds) }
        let shown: [UInt8]
        do throws(AccountRefusal) {
            shown = try AccountService.bytes("r", body)
        } catch {
            throw BadBody("r")
        }
        guard ConstantTime.equal(directory.verifier(of: shown), recovery) else {
            attempts.failed(name: place, now: asked.now)
            throw TokenRefusal.denied(.password)
        }
        attempts.succeeded(name: place)
    }

    /// Nobody on the way keeps it.
    private static func unkept(_ response: HTTPResponse) -> HTTPResponse {
        var response = response
        response.fields.append("cache-control", "no-store")
        return response
    }

    /// A request about a bundle while it is answered.
    struct BundleAsked {
        let request: HTTPRequest
        let app: AppID
        /// Seconds since 1970.
        let now: Double
    }
}

extension AccountService.Route {
    /// What a request for an account's bundle is when a partner's token comes with it: those have dots, ours have none.
    public func ofPartner(_ request: HTTPRequest) -> PartnerService.Route? {
        guard call == .bundle, let token = PartnerService.single("x-simperium-token", in: request.fields),
            token.utf8.contains(UInt8(ascii: "."))
        else { return nil }
        return .bundle(app)
    }
}
