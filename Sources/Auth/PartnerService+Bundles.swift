import ThicketCrypto
public import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// What the server keeps of the keys of a partner's user. All of it is opaque to the server.
public struct EntityBundle: Sendable, Hashable {
    /// The access key, sealed under a passphrase that only the user knows, and the parameters of its derivation.
    public struct Wrap: Sendable, Hashable {
        /// Parameters of the passphrase's derivation.
        public let stretch: Account.Stretch
        /// The access key, sealed by the client.
        public let access: [UInt8]

        /// A wrap of an access key.
        public init(stretch: Account.Stretch, access: [UInt8]) { (self.stretch, self.access) = (stretch, access) }
    }

    /// The sealed keys, with their version.
    public let bundle: Bundle
    /// Keyed hash of the proof derived from the access key; nil: any token of the user permits replacing the bundle.
    public let recovery: [UInt8]?
    /// nil: the access key is only on the user's devices and in its recovery words.
    public let wrap: Wrap?

    /// The stored keys of one user in one app.
    public init(bundle: Bundle, recovery: [UInt8]?, wrap: Wrap?) {
        (self.bundle, self.recovery, self.wrap) = (bundle, recovery, wrap)
    }
}

/// The store of bundles of partners' users. A change is on disk when the call returns.
public protocol EntityBundles: AnyObject {
    /// nil when the user has none in the app.
    func bundle(of entity: String, in app: String) throws(DirectoryError) -> EntityBundle?
    /// Writes the bundle if the stored one has the version before it (0: none is stored).
    /// - Parameter entries: of the key log, added in the same step; a reset is authorised.
    /// - Returns: whether it was written.
    /// - Throws: an error with `refusedEntry`, and nothing is written, when an entry does not follow those in the log.
    func put(
        _ bundle: EntityBundle, of entity: String, in app: String, entries: [KeyLogEntry]
    ) throws(DirectoryError) -> Bool
    /// Keyed hash of a secret that a client sends, under the server's key file.
    func verifier(of secret: [UInt8]) -> [UInt8]
}

// `/1/{APP}/auth/bundle` with a login token: the sealed keys of users that a partner vouches for. The server has no
// account and no password of them, so it keeps the bundle, optionally the access key under a passphrase, and a
// proof that protects both from a client with a token but without the key: above all from the partner.
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

    /// Writes the version after the one that the body names, 0 for the first, whose first writer wins.
    mutating func putBundle(_ asked: BundleAsked) throws -> HTTPResponse {
        let entity = try owner(asked)
        let kept = try directory.bundle(of: entity, in: asked.app.text)
        let body: AccountBody
        let next: EntityBundle
        let entries: [KeyLogEntry]
        do throws(AccountRefusal) {
            body = try .init(asked.request.body)
            next = try self.next(kept, body)
            entries = try Self.entries(body, isFirst: kept == nil, entity, asked)
        } catch {
            return PartnerAnswer.of(error)
        }
        if let recovery = kept?.recovery { try prove(body, recovery, entity, asked) }
        let version = kept?.bundle.version ?? 0
        let isWritten: Bool
        do throws(DirectoryError) {
            let follows = next.bundle.version == version + 1
            isWritten = follows ? try directory.put(next, of: entity, in: asked.app.text, entries: entries) : false
        } catch {
            guard let refusal = error.refusedEntry else { throw error }
            return PartnerAnswer.of(.badEntry(refusal, newest: error.newestEntry))
        }
        guard isWritten else {
            let current = try directory.bundle(of: entity, in: asked.app.text)
            return PartnerAnswer.outdated(current: current?.bundle.version ?? 0)
        }
        return Self.unkept(PartnerAnswer.success(["version": .number(JSONNumber(next.bundle.version))]))
    }

    /// The entries of the first bundle. The log takes later ones from the user (`POST keylog/entries`).
    private static func entries(
        _ body: AccountBody, isFirst: Bool, _ entity: String, _ asked: BundleAsked
    ) throws(AccountRefusal) -> [KeyLogEntry] {
        guard isFirst || !body.has("entries") else {
            throw .badRequest("entries are sent with the first bundle; later ones to keylog/entries")
        }
        let now = Int64(max(-1e15, min(1e15, asked.now * 1_000)))
        return try SentEntries.first(body, ofEntity: entity, app: asked.app.text, now: now)
    }

    /// The user of a partner's login token, for other parts of the server.
    /// - Parameter now: seconds since 1970.
    /// - Throws: `TokenRefusal`; `DirectoryError`.
    public func user(of request: HTTPRequest, in app: AppID, now: Double) throws -> String {
        try owner(BundleAsked(request: request, app: app, now: now))
    }

    /// The user of the login token, checked as in the data API.
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

    /// The bundle that results from the body; members that it omits stay.
    private func next(_ kept: EntityBundle?, _ body: AccountBody) throws(AccountRefusal) -> EntityBundle {
        guard let version = body.integer("version"), version >= 0, version < .max else {
            throw .badRequest("version is required: the one that is replaced, 0 for the first")
        }
        let content = try AccountService.sealed("bundle", body, max: AccountService.bundleBytesMax)
        var (recovery, wrap) = (kept?.recovery, kept?.wrap)
        if body.has("recover") {
            let shown = directory.verifier(of: try AccountService.bytes("recover", body))
            let isSame = recovery.map { ConstantTime.equal(shown, $0) } ?? true
            recovery = shown
            // The access key changes: a wrap kept under the passphrase would be one of the old key.
            guard isSame || kept?.wrap == nil || body.has("access") else {
                throw .badRequest("access is required: the stored one seals another access key; null removes it")
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

    /// Checks that the client has the access key, or the recovery words. A token alone proves only what the partner
    /// says.
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

    /// Forbids caches to store the answer.
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

extension PartnerService {
    /// Whether the token of a request has the form of a partner's.
    public static func hasLoginToken(_ request: HTTPRequest) -> Bool {
        single("x-simperium-token", in: request.fields)?.utf8.contains(UInt8(ascii: ".")) ?? false
    }
}

extension AccountRoute {
    /// The partner route of a request for an account's bundle that carries a partner's token: such tokens have
    /// dots, the server's have none.
    public func ofPartner(_ request: HTTPRequest) -> PartnerService.Route? {
        call == .bundle && PartnerService.hasLoginToken(request) ? .bundle(app) : nil
    }
}
