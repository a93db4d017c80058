import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

// Public keys: made by the user's own devices, never by the server.
extension PartnerService {
    /// Bytes of an X25519 and of an Ed25519 public key (RFC 7748, RFC 8032).
    static let keyBytes = 32

    /// `PUT …/publickey`, with a login token of the user: stores the keys if the user has none. The same keys again
    /// get the same answer; other keys are refused, because an attacker with a token for half an hour must not be
    /// able to read what is sealed for the user from then on.
    func uploadKeys(
        _ request: HTTPRequest, _ apiKey: String, _ pathPartner: String, _ pathEntity: String, _ now: Double
    ) throws -> HTTPResponse {
        let entity = try login(request, apiKey, now) { claims, partner in
            same(pathPartner, partner.id) && same(pathEntity, claims.entity)
        }.entity
        let body = try Self.object(request)
        let publicKey = try Self.key("public_key", body)
        let signKey = try Self.key("sign_key", body)
        guard try directory.setKeys(public: publicKey, sign: signKey, of: entity.id) else {
            return PartnerAnswer.keysTaken
        }
        return Self.keys(publicKey, signKey)
    }

    private static func key(_ name: String, _ body: JSONNode) throws(BadBody) -> [UInt8] {
        guard let text = body[name]?.string, text.utf8.count == 44,
            let key = Base64.decode(Array(text.utf8)[...]), key.count == keyBytes,
            key.contains(where: { $0 != 0 })
        else { throw BadBody(name) }
        return key
    }
}
