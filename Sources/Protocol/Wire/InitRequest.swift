/// The argument of `init` (wire contract, section 4), before its names are checked. All fields are optional: a missing
/// one affects the content of the answer, but the server always answers.
public struct InitRequest: Sendable, Equatable {
    /// `clientid`, or `client_id` as in one example of the public notes.
    public var clientID: String?
    /// `api`, a string or a number ("1.1", 1.1, 1.1000000238).
    public var api: String?
    /// `token`: the access token.
    public var token: String?
    /// `app_id`: the application.
    public var appID: String?
    /// `name`: the bucket.
    public var name: String?
    /// `library`: the name of the client library.
    public var library: String?
    /// `version` of the library; some clients send a number.
    public var version: String?
    /// `build`, sent by browser clients instead of library and version.
    public var build: String?
    /// `cmd`: a command to run once the channel is authorised, such as `i::::50` or `cv:…`.
    public var command: String?
    /// `username`: the user's name, as the client knows it.
    public var username: String?
    /// `mode`: how a Thicket client wants to use the channel; other libraries do not send it.
    public var mode: String?
    /// `device_id`: the device for which a partner's login token was made.
    public var deviceID: String?
    /// False when the argument is not a JSON object.
    public var isReadable = true

    /// API version from which clients understand a failed `auth` as JSON.
    static let currentAPI = 1.1

    /// A request without fields.
    public init() {}

    /// Reads the argument of `init`; a text that is not a JSON object gives a request without fields.
    public init(parsing argument: ArraySlice<UInt8>) {
        guard let root = try? JSONDocument(parsing: argument).root, root.kind == .object else {
            isReadable = false
            return
        }
        clientID = root["clientid"]?.looseText ?? root["client_id"]?.looseText
        api = root["api"]?.looseText
        token = root["token"]?.looseText
        appID = root["app_id"]?.looseText
        name = root["name"]?.looseText
        library = root["library"]?.looseText
        version = root["version"]?.looseText
        build = root["build"]?.looseText
        command = root["cmd"]?.looseText
        username = root["username"]?.looseText
        mode = root["mode"]?.looseText
        deviceID = root["device_id"]?.looseText
    }

    /// Whether the client knows only `auth:expired`, which must be sent before the JSON of a failure. Such a client
    /// would take the JSON alone for its user's name (wire contract, section 4).
    public var expectsExpired: Bool {
        guard let api, let number = JSONNumber(lexeme: api)?.double else { return true }
        return number < Self.currentAPI
    }

    /// The request in `cmd`, as if it had been sent after the `init`; nil without one. Only `i` and `cv` are permitted,
    /// as in the streaming API's examples; any other command is `unknown`.
    public var firstRequest: ChannelRequest? { firstCommand?.read() }

    /// The request in `cmd`, with its argument not parsed yet; nil without one.
    public var firstCommand: UnreadRequest? {
        guard let command, !command.isEmpty else { return nil }
        let (name, argument) = WireText.split(Array(command.utf8)[...])
        let request = UnreadRequest(name: name, argument: argument ?? [])
        return request.command == .index || request.command == .changesSince ? request : UnreadRequest(unknown: name)
    }

    /// Writes the object as JSON, without the fields that are nil.
    public func write(to writer: inout JSONWriter) {
        var object = JSONObject()
        let fields = [
            ("clientid", clientID), ("api", api), ("token", token), ("app_id", appID), ("name", name),
            ("library", library), ("version", version), ("build", build), ("cmd", command), ("username", username),
            ("mode", mode), ("device_id", deviceID),
        ]
        for (key, text) in fields { object[key] = text.map(JSONValue.string) }
        writer.write(object)
    }
}
