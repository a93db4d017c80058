internal import CCurl

/// Why a server's identity was not accepted, or a secure connection was not possible. Nothing was sent to it.
///
/// Linux only: the numbers are libcurl's and OpenSSL's. On Apple platforms the same cases follow from the system's
/// trust errors.
enum ServerTrust: Equatable {
    /// The issuer of the certificate is not trusted on this machine.
    case unknownAuthority
    /// The certificate is for another host name.
    case wrongHost
    case expired
    case notYetValid
    /// The public key matches none of the pins.
    case wrongPin
    /// Client and server share no TLS version or cipher: an old server, or one without TLS on this port.
    case noCommonTLS
    /// The file with the certificates to trust cannot be used.
    case certificateFile
    /// Any other problem with the certificate.
    case certificate

    /// nil when the failure has another cause.
    ///
    /// - Parameters:
    ///   - verification: OpenSSL's error number for the certificate (X509_V_ERR_…), 0 for none.
    ///   - text: libcurl's description.
    init?(_ code: CURLcode, verification: Int, text: String) {
        switch code {
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: self = .wrongPin
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER: self = .noCommonTLS
        case CURLE_SSL_CACERT_BADFILE: self = .certificateFile
        case CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS: self = .certificate
        case CURLE_PEER_FAILED_VERIFICATION: self = .init(verification, text)
        default: return nil
        }
    }

    private init(_ verification: Int, _ text: String) {
        switch verification {
        case 9: self = .notYetValid
        case 10: self = .expired
        case 18...21, 2: self = .unknownAuthority
        case 62: self = .wrongHost
        // libcurl compares host names itself, before it reports OpenSSL's result.
        default: self = verification <= 1 && text.contains("subject name") ? .wrongHost : .certificate
        }
    }

    /// The meaning and the remedy, as a text for the user.
    var advice: String {
        switch self {
        case .unknownAuthority:
            "the server's certificate comes from an authority that is not trusted here; if it is yours, name its file (--ca)"
        case .wrongHost:
            "the server's certificate is for another host name; use the name that it was made for"
        case .expired:
            "the server's certificate has expired; its operator has to renew it, or this machine's clock is wrong"
        case .notYetValid: "the server's certificate is not valid yet; perhaps this machine's clock is wrong"
        case .wrongPin:
            "the server's key is not the pinned one; if its operator says that it was changed, use the new pin (--pin),"
                + " otherwise somebody stands between"
        case .noCommonTLS:
            "no TLS 1.2 or 1.3 with this server; it is too old, or does not speak TLS on this port (then the address begins with"
                + " http://)"
        case .certificateFile: "the file of certificates to trust cannot be used"
        case .certificate: "the server's certificate is not valid"
        }
    }
}

extension CurlHandle {
    /// A description of the error for the user, and whether the cause is the server's identity.
    func failure(_ code: CURLcode) -> (detail: String, isUntrusted: Bool) {
        let text = text(code)
        guard let trust = ServerTrust(code, verification: verification, text: text) else { return (text, false) }
        return ("\(trust.advice) (\(text))", true)
    }

    /// The failure as the error of a request.
    func error(_ code: CURLcode) -> ClientError {
        let failure = failure(code)
        return ClientError(
            failure.isUntrusted ? .untrusted : .network, failure.detail,
            isUnsent: failure.isUntrusted || Self.unconnected.contains(code.rawValue))
    }

    /// libcurl's errors that mean that nothing was sent. A handle makes one request, so it cannot have reused an older
    /// connection.
    private static let unconnected = [
        CURLE_COULDNT_RESOLVE_PROXY.rawValue, CURLE_COULDNT_RESOLVE_HOST.rawValue, CURLE_COULDNT_CONNECT.rawValue,
    ]

    /// An https address is never left for another scheme, even if a server redirects; and redirects are not followed at
    /// all.
    func allow(isSecure: Bool) {
        let schemes = isSecure ? "https" : "http,https"
        set(CURLOPT_PROTOCOLS_STR, schemes)
        set(CURLOPT_REDIR_PROTOCOLS_STR, schemes)
        set(CURLOPT_FOLLOWLOCATION, 0)
    }

    /// The TLS options of every connection.
    func secure(_ options: TransportOptions) {
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_SSL_VERIFYPEER, 1)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        if let file = options.certificateFile { set(CURLOPT_CAINFO, file) }
        if let pins = options.pinnedKeys { set(CURLOPT_PINNEDPUBLICKEY, pins) }
    }
}

/// Pins of public keys in the format of `curl --pinnedpubkey`: `sha256//` and the base64 of the SHA-256 of the key
/// (SubjectPublicKeyInfo); several are separated by semicolons.
enum KeyPins {
    /// Most pins in one list.
    private static let pinsMax = 16

    static func isGood(_ text: String) -> Bool {
        let pins: [Substring] = text.split(separator: ";", omittingEmptySubsequences: false)
        return pins.count <= pinsMax && pins.allSatisfy { isPin($0.utf8) }
    }

    /// 32 bytes in base64 are 43 characters and one padding character.
    private static func isPin(_ pin: Substring.UTF8View) -> Bool {
        let prefix = "sha256//".utf8
        guard pin.starts(with: prefix), pin.count == prefix.count + 44, pin.last == UInt8(ascii: "=") else {
            return false
        }
        return pin.dropFirst(prefix.count).dropLast().allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
            default: false
            }
        }
    }
}
