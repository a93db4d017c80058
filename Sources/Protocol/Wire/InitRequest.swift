/// The argument of `init` (wire contract, section 4), before its names are checked. Nothing here is required: what is
/// missing decides the answer, not whether there is one.
public struct InitRequest: Sendable, Equatable {
    /// `clientid`, or `client_id` as one example in the public notes has it.
    public var clientID: String?
    /// `api`, a string or a number ("1.1", 1.1, 1.1000000238).
    public var api: String?
    public var token: String?
    /// `app_id`
    public var appID: String?
    /// The bucket.
    public var name: String?
    public var library: String?
    /// Of the library; some send a number.
    public var version: String?
    /// Sent by browser clients in the place of library and version.
    public var build: String?
    /// `cmd`: a command to run once the channel is authorised, such as `i::::50` or `cv:…`.
    public var command: String?
    /// What the client believes the user to be called.
    public var username: String?
    /// How a `thicket` client wants the channel; other libraries do not send it.
    public var mode: String?
    /// `device_id`: the device that a partner's login token was made for.
    public var deviceID: String?
    /// False when the argument was no JSON object.
    public var isReadable: Bool = true

    /// API version from which clients understand a failed `auth` as JSON.
    static let currentAPI = 1.1

    public init() {}

    /// Reads the argument of `init`; a text that is no JSON object gives a request without fields.
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

    /// True for clients that know only `auth:expired`: it must come before the JSON of a failure. They take the JSON
    /// alone for their user's name (wire contract, section 4).
    public var expectsExpired: Bool {
        guard let api, let number = JSONNumber(lexeme: api)?.double else { return true }
        return number < Self.currentAPI
    }

    /// The request in `cmd`, as if it had been sent after the `init`; nil when there is none. Only `i` and `cv` may
    /// stand there, as in the streaming API's examples: whatever else is `unknown`.
    public var firstRequest: ChannelRequest? { firstCommand?.read() }

    /// The same, its argument not read yet.
    public var firstCommand: UnreadRequest? {
        guard let command, !command.isEmpty else { return nil }
        let (name, argument) = WireText.split(Array(command.utf8)[...])
        let request = UnreadRequest(name: name, argument: argument ?? [])
        return request.command == .index || request.command == .changesSince ? request : UnreadRequest(unknown: name)
    }

    /// Writes the object, without what is nil.
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
