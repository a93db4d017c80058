package import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Requests to the server other than sync: accounts, partners, tokens, devices.
package struct ServerCalls: Sendable {
    /// The default timeout in seconds. Hashing a password on a busy server takes a while.
    package static let timeoutSeconds = 30
    /// The timeout in seconds of the logout request, which an app should not have to wait for.
    static let logoutSeconds = 10
    /// Upper bound, in bytes, of a server's error text that is shown.
    private static let explanationMax = 200

    private let http: HTTPClient
    /// A separate client for requests that must not wait behind a slow call: renewals and logouts.
    private let urgent: HTTPClient
    let address: String
    let app: String
    package let apiKey: String
    package let deviceId: String
    private let timeoutSeconds: Int
    /// Options of all connections to the server.
    let options: TransportOptions

    /// - Parameter timeoutSeconds: timeout of a request, 1...86,400.
    package init(
        address: String, app: String, apiKey: String, deviceId: String, options: TransportOptions,
        timeoutSeconds: Int = ServerCalls.timeoutSeconds
    ) throws(ClientError) {
        guard (1...86_400).contains(timeoutSeconds) else {
            throw ClientError(.invalidOptions, "the answer timeout must be 1 to 86,400 seconds")
        }
        guard LoginToken.isAcceptable(apiKey) || apiKey.isEmpty, LoginToken.isAcceptable(deviceId) else {
            throw ClientError(.invalidOptions, "the API key or the device id contains invalid characters")
        }
        (self.address, self.app, self.apiKey, self.deviceId) = (address, app, apiKey, deviceId)
        (self.timeoutSeconds, self.options) = (timeoutSeconds, options)
        http = try HTTPClient(options: options)
        urgent = try HTTPClient(options: options)
    }

    /// Sends one request; throws when the server refuses it.
    ///
    /// - Parameters:
    ///   - path: the path after the server's address; must not need percent-encoding.
    ///   - body: the JSON object of a POST.
    ///   - fields: the header fields that authenticate the request.
    ///   - isUrgent: the request does not wait behind other calls.
    ///   - accepted: statuses of refusals that are returned to the caller, for their code.
    func ask(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String],
        timeoutSeconds: Int? = nil, isUrgent: Bool = false, accepting accepted: Set<Int> = []
    ) async throws(ClientError) -> HTTPAnswer {
        let isPost = method == "POST"
        var fields = fields
        if isPost { fields.append("Content-Type: application/json") }
        let answer = try await (isUrgent ? urgent : http).request(
            address + path, method: isPost || method == "GET" ? nil : method, fields: fields,
            body: isPost ? body?.serialized() ?? [] : nil, timeoutSeconds: timeoutSeconds ?? self.timeoutSeconds)
        guard (200..<300).contains(answer.status) || accepted.contains(answer.status) else {
            throw Self.refusal(answer)
        }
        return answer
    }

    /// As above, with a body that holds a secret.
    func ask(
        _ method: String, _ path: String, secret: SecureBytes, fields: [String]
    ) async throws(ClientError) -> HTTPAnswer {
        let answer = try await http.request(
            address + path, method: method == "POST" ? nil : method,
            fields: fields + ["Content-Type: application/json"], secret: secret, timeoutSeconds: timeoutSeconds)
        guard (200..<300).contains(answer.status) else { throw Self.refusal(answer) }
        return answer
    }

    /// POSTs a JSON text that holds secrets, authenticated by the app's public API key; throws when the server refuses
    /// it.
    package func ask(_ path: String, secret: SecureBytes) async throws(ClientError) -> JSONObject {
        try Self.object(try await ask("POST", path, secret: secret, fields: appFields))
    }

    /// GETs a public resource.
    package func look(_ path: String) async throws(ClientError) -> JSONObject {
        try Self.object(try await ask("GET", path, fields: []))
    }

    /// Parses an answer as a JSON object.
    package static func object(_ answer: HTTPAnswer) throws(ClientError) -> JSONObject {
        guard let object = (try? JSONValue(parsing: answer.body))?.objectValue else {
            throw ClientError(.protocolViolation, "the server's answer is not a JSON object")
        }
        return object
    }

    package static func text(_ name: String, in object: JSONObject) throws(ClientError) -> String {
        guard let text = object[name]?.stringValue, !text.isEmpty else {
            throw ClientError(.protocolViolation, "the server's answer has no \(name)")
        }
        return text
    }

    // MARK: - Header fields that authenticate a request

    /// For a request of the app itself; the API key is not a secret.
    var appFields: [String] { ["X-Simperium-Api-Key: \(apiKey)"] }

    /// For a request of a partner's user to the data API.
    func partnerTokenFields(_ token: String) -> [String] {
        ["X-Simperium-Token: \(token)", "x-rezolve-device-id: \(deviceId)"]
    }

    /// For a request of a user of a built-in account.
    func accountFields(_ token: String) -> [String] { ["X-Simperium-Token: \(token)"] }

    /// For a request of a partner's app; with a token, of its user on this device.
    func partnerFields(_ token: String? = nil) -> [String] {
        var fields = ["x-rezolve-partner-apikey: \(apiKey)", "x-rezolve-device-id: \(deviceId)"]
        if let token { fields.append("Authorization: Bearer \(token)") }
        return fields
    }

    // MARK: - Refusals

    /// Maps an answer that is not a success to an error, with the HTTP status as its `number`.
    package static func refusal(_ answer: HTTPAnswer) -> ClientError {
        let words = explanation(answer)
        switch answer.status {
        case 401, 403: return ClientError(.unauthorized, words, number: answer.status)
        case 404: return ClientError(.notFound, words, number: 404)
        case 429:
            let wait = answer.fields["retry-after"].map { "; try again in \($0) s" } ?? ""
            return ClientError(.unavailable, words + wait, number: 429)
        case 500...: return ClientError(.unavailable, words, number: answer.status)
        default:
            var error = ClientError(.refused, words, number: answer.status)
            error.newestEntry = newestEntry(answer)
            return error
        }
    }

    /// The member `newest` of a refused entry of the key log (docs/AUTH.md).
    private static func newestEntry(_ answer: HTTPAnswer) -> [UInt8]? {
        let text = (try? JSONValue(parsing: answer.body))?.objectValue?["newest"]?.stringValue
        return text.flatMap { Base64.decodeURL(Array($0.utf8)[...]) }
    }

    /// The refusal's text, or the message in its JSON, with control characters removed.
    private static func explanation(_ answer: HTTPAnswer) -> String {
        let parsed = (try? JSONValue(parsing: answer.body))?.objectValue
        let text = parsed?["message"]?.stringValue ?? (parsed == nil ? answerText(answer) : "")
        let shown = String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(explanationMax).filter { $0.value >= 0x20 && $0.value != 0x7F }))
        return shown.isEmpty ? "the server answered \(answer.status)" : shown
    }

    private static func answerText(_ answer: HTTPAnswer) -> String {
        // An HTML page, such as a proxy's, is not shown.
        let text = String(decoding: answer.body.prefix(explanationMax), as: UTF8.self)
        return text.contains("<") ? "" : text
    }
}
