import ThicketProtocol

/// Writes the messages of the server as frames. Everything that comes from clients goes through the JSON writer.
enum Reply {
    /// `N:?`: not understood, or not now.
    static func notUnderstood(_ channel: ChannelNumber) -> SharedFrame { frame(channel, .notUnderstood) }
    /// `N:cv:?`: the position is unknown, the client reads the index.
    static func changeVersionUnknown(_ channel: ChannelNumber) -> SharedFrame { frame(channel, .changeVersionUnknown) }
    /// `N:index`: a request for the client's state.
    static func indexRequest(_ channel: ChannelNumber) -> SharedFrame { frame(channel, .indexRequest) }
    /// `N:auth:expired`: what clients before API 1.1 understand.
    static func authExpired(_ channel: ChannelNumber) -> SharedFrame { frame(channel, .authExpired) }
    /// `log:L`: a request for the client's log messages.
    static func logRequest(_ level: Int) -> SharedFrame { SharedFrame(text: ServerMessage.log(level).encoded()) }
    /// `h:n`.
    static func heartbeat(_ count: Int64) -> SharedFrame { SharedFrame(text: ServerMessage.heartbeat(count).encoded()) }

    /// `N:auth:NAME`.
    static func authorized(_ channel: ChannelNumber, _ user: UserID) -> SharedFrame {
        frame(channel, .authorized(user: user.text))
    }

    /// `N:auth:{"msg":…,"code":…}`.
    static func authFailed(_ channel: ChannelNumber, _ code: ErrorCode, _ message: String) -> SharedFrame {
        frame(channel, .authFailed(code: code.rawValue, message: message))
    }

    /// `N:o:{"mode":…,"store":…}`: the mode of the bucket, and its identity; either may be missing.
    static func options(_ channel: ChannelNumber, mode: BucketMode?, store: String?) -> SharedFrame {
        var options = JSONObject()
        if let mode { options["mode"] = .string(mode.word) }
        if let store { options["store"] = .string(store) }
        return frame(channel, .options(.object(options)))
    }

    /// `N:removed:{"removed":[…]}`.
    static func removed(_ channel: ChannelNumber, _ page: RemovedPage) -> SharedFrame {
        frame(channel, .removed(page))
    }

    /// `N:e:ARGUMENT` and a line with `?`, for an argument without a version.
    static func noEntity(_ channel: ChannelNumber, _ argument: String) -> SharedFrame {
        SharedFrame(text: head(channel, "e:") + Array(argument.utf8) + [0x0A, 0x3F])
    }

    /// `N:e:KEY.VERSION` and a line with the object or `?`.
    static func entity(_ channel: ChannelNumber, key: String, version: Version, body: [UInt8]?) -> SharedFrame {
        var text = head(channel, "e:")
        text.reserveCapacity(text.count + key.utf8.count + 32 + (body?.count ?? 0))
        text.append(contentsOf: key.utf8)
        text.append(contentsOf: ".\(version)\n".utf8)
        guard let body else {
            text.append(0x3F)
            return SharedFrame(text: text)
        }
        text.append(contentsOf: "{\"data\":".utf8)
        text.append(contentsOf: body)
        text.append(0x7D)
        return SharedFrame(text: text)
    }

    /// `N:c:[…]` with elements that are JSON already.
    static func changes<Elements: Sequence<[UInt8]>>(
        _ channel: ChannelNumber, _ elements: Elements, bytes: Int = 0
    ) -> SharedFrame {
        var text = head(channel, "c:[")
        text.reserveCapacity(text.count + bytes + 64)
        var isFirst = true
        for element in elements {
            if !isFirst { text.append(0x2C) }
            isFirst = false
            text.append(contentsOf: element)
        }
        text.append(0x5D)
        return SharedFrame(text: text)
    }

    /// One error as an element of a `c:[…]`.
    ///
    /// - Parameter tree: adds `reason`, and to a change of another version `ev`; clients that do not know these members
    ///   ignore them.
    static func refusal(
        client: String, key: String, code: ErrorCode, changeIDs: [String], tree: TreeRejection? = nil
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.bytes.append(contentsOf: "{\"clientid\":".utf8)
        writer.write(string: client)
        writer.bytes.append(contentsOf: ",\"id\":".utf8)
        writer.write(string: key)
        writer.bytes.append(contentsOf: ",\"error\":\(code.rawValue),\"ccids\":[".utf8)
        for (index, changeID) in changeIDs.enumerated() {
            if index > 0 { writer.bytes.append(0x2C) }
            writer.write(string: changeID)
        }
        writer.bytes.append(0x5D)
        if let tree {
            writer.bytes.append(contentsOf: ",\"reason\":".utf8)
            writer.write(string: tree.word)
            if let current = tree.current { writer.bytes.append(contentsOf: ",\"ev\":\(current)".utf8) }
        }
        writer.bytes.append(0x7D)
        return writer.bytes
    }

    /// `N:` and the start of a message.
    static func head(_ channel: ChannelNumber, _ start: StaticString) -> [UInt8] {
        var text: [UInt8] = Array(String(channel).utf8)
        text.append(0x3A)
        start.withUTF8Buffer { text.append(contentsOf: $0) }
        return text
    }

    private static func frame(_ channel: ChannelNumber, _ reply: ServerReply) -> SharedFrame {
        SharedFrame(text: ServerMessage.channel(channel, reply).encoded())
    }
}
