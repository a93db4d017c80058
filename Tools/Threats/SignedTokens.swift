import ThicketCrypto
import ThicketPlatform

/// Tokens as a partner's server makes them, and as a forger would.
public enum SignedTokens {
    public static let loginHeader = #"{"alg":"HS512","auth":"v2","typ":"JWT"}"#
    public static let registrationHeader = #"{"alg":"HS512","typ":"JWT"}"#

    public static func sign(_ header: String, _ payload: String, key: String) -> String {
        let signed = Base64.encodeURL(Array(header.utf8)) + "." + Base64.encodeURL(Array(payload.utf8))
        return signed + "." + Base64.encodeURL(Hash.hmacSHA512(key: Array(key.utf8), Array(signed.utf8)[...]))
    }

    /// - Parameter ends: seconds since 1970.
    public static func login(entity: String, user: String, device: String, ends: Int64, key: String) -> String {
        sign(
            loginHeader,
            #"{"rezolve_entity_id":"\#(entity)","partner_entity_id":"\#(user)","device_id":"\#(device)","exp":\#(ends)}"#,
            key: key)
    }

    public static func registration(user: String, ends: Int64, key: String) -> String {
        sign(
            registrationHeader,
            #"{"rezolve_entity_id":":NONE:","partner_entity_id":"\#(user)","exp":\#(ends)}"#, key: key)
    }
}
