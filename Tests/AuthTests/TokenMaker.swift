import ThicketCrypto
import ThicketPlatform

/// Makes valid and invalid tokens.
enum TokenMaker {
    static func sign(_ header: String, _ payload: String, key: String) -> String {
        sign(header: Array(header.utf8), payload: Array(payload.utf8), key: Array(key.utf8))
    }

    static func sign(header: [UInt8], payload: [UInt8], key: [UInt8]) -> String {
        let signed = Base64.encodeURL(header) + "." + Base64.encodeURL(payload)
        return signed + "." + Base64.encodeURL(Hash.hmacSHA512(key: key, Array(signed.utf8)[...]))
    }

    static let loginHeader = #"{"alg":"HS512","auth":"v2","typ":"JWT"}"#
    static let registrationHeader = #"{"alg":"HS512","typ":"JWT"}"#

    static func login(
        entity: String, partnerEntity: String, device: String, expiry: String, key: String,
        header: String = loginHeader
    ) -> String {
        sign(
            header,
            #"{"rezolve_entity_id":"\#(entity)","partner_entity_id":"\#(partnerEntity)","device_id":"\#(device)","exp":\#(expiry)}"#,
            key: key)
    }

    static func registration(partnerEntity: String, expiry: String, key: String) -> String {
        sign(
            registrationHeader,
            #"{"rezolve_entity_id":":NONE:","partner_entity_id":"\#(partnerEntity)","exp":\#(expiry)}"#, key: key)
    }
}
