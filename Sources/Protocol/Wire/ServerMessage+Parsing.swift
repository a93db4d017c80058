extension ServerMessage {
    /// Reads one message.
    ///
    /// - Throws: `WireError` when an answer is incomplete: a client must not act on a part of it.
    public init(parsing message: [UInt8]) throws(WireError) { try self.init(parsing: message[...]) }

    /// Reads one message; JSON in it keeps the array behind the slice alive.
    ///
    /// - Throws: `WireError` when an answer is incomplete: a client must not act on a part of it.
    public init(parsing message: ArraySlice<UInt8>) throws(WireError) {
        let (head, rest) = WireText.split(message)
        if let channel = try WireText.channel(head) {
            let (command, argument) = WireText.split(rest ?? [])
            self = .channel(channel, try ServerReply(command: command, argument: argument))
        } else if WireText.equals(head, "h") {
            self = .heartbeat(rest.flatMap(WireText.integer) ?? 0)
        } else if WireText.equals(head, "log") {
            self = .log(rest.flatMap(WireText.integer).map { Int($0) } ?? 0)
        } else {
            throw .notAMessage
        }
    }
}

extension ServerReply {
    init(command: ArraySlice<UInt8>, argument: ArraySlice<UInt8>?) throws(WireError) {
        let rest = argument ?? []
        if WireText.equals(command, "c") {
            self = try Self.changes(parsing: rest)
        } else if WireText.equals(command, "e") {
            self = .entity(try EntityReply(parsing: rest))
        } else if WireText.equals(command, "i") {
            self = .index(try IndexPage(try Self.json(rest, "i")))
        } else if WireText.equals(command, "auth") {
            self = Self.auth(parsing: rest)
        } else if WireText.equals(command, "cv"), WireText.equals(rest, "?") {
            self = .changeVersionUnknown
        } else if WireText.equals(command, "index") {
            self = .indexRequest
        } else if WireText.equals(command, "?") {
            self = .notUnderstood
        } else if WireText.equals(command, "o") {
            self = .options(try Self.json(rest, "o").value)
        } else if WireText.equals(command, "removed") {
            self = .removed(try RemovedPage(try Self.json(rest, "removed")))
        } else {
            self = .unknown(command: WireText.text(command.prefix(ChannelRequest.unknownCommandBytesMax)))
        }
    }

    private static func json(_ argument: ArraySlice<UInt8>, _ command: String) throws(WireError) -> JSONNode {
        do throws(JSONError) {
            return try JSONDocument(parsing: argument).root
        } catch {
            throw .json(command: command, error)
        }
    }

    private static func changes(parsing argument: ArraySlice<UInt8>) throws(WireError) -> ServerReply {
        if WireText.equals(argument, "?") { return .changeVersionUnknown }
        let root = try json(argument, "c")
        guard root.kind == .array else { throw .shape(command: "c", problem: "not an array") }
        var events = [ChangeEvent]()
        events.reserveCapacity(root.count)
        for element in root.elements { events.append(try ChangeEvent(element)) }
        return .changes(events)
    }

    /// An argument that begins with a brace is a failure, even if members are missing.
    private static func auth(parsing argument: ArraySlice<UInt8>) -> ServerReply {
        if WireText.equals(argument, "expired") { return .authExpired }
        guard argument.first == UInt8(ascii: "{") else { return .authorized(user: WireText.text(argument)) }
        let root = try? JSONDocument(parsing: argument).root
        let code = root?["code"]?.looseInteger ?? Int64(ErrorCode.serverError.rawValue)
        return .authFailed(code: Int(code), message: root?["msg"]?.looseText ?? "")
    }
}

extension EntityReply {
    init(parsing argument: ArraySlice<UInt8>) throws(WireError) {
        guard let lineEnd = argument.firstIndex(of: UInt8(ascii: "\n")) else {
            throw .shape(command: "e", problem: "one line")
        }
        guard let (key, version) = WireText.reference(argument[..<lineEnd]) else {
            throw .shape(command: "e", problem: "no version")
        }
        let body = argument[(lineEnd + 1)...]
        if WireText.equals(body, "?") {
            self.init(key: key, version: version, data: nil)
            return
        }
        let root: JSONNode
        do throws(JSONError) {
            root = try JSONDocument(parsing: body).root
        } catch {
            throw .json(command: "e", error)
        }
        guard let data = root["data"], data.kind == .object else {
            throw .shape(command: "e", problem: "data")
        }
        self.init(key: key, version: version, data: .node(data))
    }
}
