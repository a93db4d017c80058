import ThicketProtocol

// Parsing of the requests of partners' apps.
extension PartnerService {
    /// The request that a path names; nil for other paths.
    public static func route(of path: Substring) -> Route? {
        if let route = fixed[String(path)] { return route }
        let parts: [Substring] = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { $0 }
        guard parts.count == 7, parts[0] == "api", parts[1] == "v1", parts[2] == "partner", parts[4] == "customer",
            let partner = PercentCoding.decode(parts[3]), let entity = PercentCoding.decode(parts[5])
        else { return nil }
        switch parts[6] {
        case "publickey": return .publicKey(partner: partner, entity: entity)
        case "devices": return .devices(partner: partner, entity: entity)
        default: return nil
        }
    }

    private static let fixed: [String: Route] = [
        "/api/v1/authentication/register": .register, "/api/v2/authentication/register": .register,
        "/v1/user/logout": .logout, "/api/v2/authentication/register/guest": .registerGuest,
        "/api/v2/authentication/login/guest": .loginGuest,
    ].merging(Credentials.allCases.map { ("/v2/credentials/" + $0.rawValue, .credentials($0)) }) { first, _ in first }

    /// Whether a request takes tens of milliseconds of processor time, to hash a password.
    public static func isCostly(_ route: Route) -> Bool {
        switch route {
        case .credentials(let call): call != .ping
        default: false
        }
    }

    /// Whether a route accepts the method.
    public static func accepts(_ method: String, _ route: Route) -> Bool {
        methods(of: route).split(separator: ", ").contains { $0.utf8.elementsEqual(method.utf8) }
    }

    /// The methods that a route takes, as in the `allow` field.
    public static func methods(of route: Route) -> String {
        switch route {
        case .publicKey, .bundle: "GET, PUT"
        case .devices, .credentials(.ping): "GET"
        case .register, .logout, .registerGuest, .loginGuest, .credentials: "POST"
        }
    }

    /// The value of a field that occurs exactly once; a repeated one counts as missing.
    static func single(_ name: String, in fields: HTTPFields) -> String? {
        fields.count(of: name) == 1 ? fields[name] : nil
    }

    /// The token after `Bearer` and one space (RFC 6750, 2.1; the scheme in any case).
    static func bearer(_ fields: HTTPFields) -> ArraySlice<UInt8>? {
        guard let value = single("authorization", in: fields) else { return nil }
        let bytes: [UInt8] = Array(value.utf8)
        let scheme: [UInt8] = Array("bearer ".utf8)
        guard bytes.count > scheme.count,
            zip(bytes, scheme).allSatisfy({ (0x41...0x5A).contains($0) ? $0 | 0x20 == $1 : $0 == $1 })
        else { return nil }
        return bytes[scheme.count...]
    }

    /// One `@` with text on both sides, no white space or control character; stricter checks are left to the partner.
    public static func isEmail(_ text: String) -> Bool {
        let bytes: [UInt8] = Array(text.utf8)
        guard bytes.count <= emailBytesMax, bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return false }
        let parts: [ArraySlice<UInt8>] = bytes.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty }
    }
}
