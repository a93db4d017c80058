import ThicketProtocol

/// A question of an administrator to the clients that have a bucket open (streaming API, "Server to Client Commands").
public struct RemoteQuestion: Sendable, Equatable {
    /// What is asked for.
    public enum Kind: Sendable, Equatable {
        /// `N:index`: the client's state.
        case index
        /// `log:L`: the client's log messages; 0 stops them, 1 is normal, 2 verbose.
        case log(Int)
    }
    /// The bucket whose clients are asked.
    public let bucket: BucketID
    /// What is asked for.
    public let kind: Kind
    /// Seconds to wait for answers, 1...300.
    public let seconds: Int

    /// A question; `seconds` is checked where it is decoded.
    public init(bucket: BucketID, kind: Kind, seconds: Int) {
        self.bucket = bucket
        self.kind = kind
        self.seconds = seconds
    }
}

/// A reply to such a question.
public enum RemoteReply: Sendable, Equatable {
    /// So many channels were asked; this reply comes first.
    case asked(Int)
    /// One client's answer as JSON on one line.
    case answer(client: String, json: [UInt8])
    /// No more answers come.
    case ended
    /// The question could not be asked.
    case failed(String)
}

/// A request on the control socket.
enum ControlRequest: Sendable, Equatable {
    case ask(RemoteQuestion)
    /// Tokens of the user have ended: close the connections they opened.
    case signOut(AppID, UserID)
    /// Buckets of that name have another mode: notify their clients.
    case changeMode(AppID, BucketName, BucketMode)
}

/// The lines on the control socket: one JSON object each, a request first, then replies until `ended` or `failed`.
///
/// `{"ask":"sign_out","app":"a","user":"u"}` and `{"ask":"mode","app":"a","bucket":"b","mode":"sealed"}` are
/// answered by `ended` alone; the others are questions to clients:
/// `{"ask":"index","app":"a","user":"u","bucket":"b","seconds":5}` or `{"ask":"log","level":1,…}`; replies
/// `{"asked":2}`, `{"client":"c","answer":…}`, `{"ended":true}`, `{"failed":"why"}`.
enum ControlLine {
    /// Longest request line, bytes.
    static let requestBytesMax = 4_096
    static let secondsRange = 1...300

    static func encoded(_ question: RemoteQuestion) -> [UInt8] {
        var object = JSONObject()
        switch question.kind {
        case .index: object["ask"] = "index"
        case .log(let level):
            object["ask"] = "log"
            object["level"] = .number(JSONNumber(Int64(level)))
        }
        object["app"] = .string(question.bucket.app.text)
        object["user"] = .string(question.bucket.user.text)
        object["bucket"] = .string(question.bucket.name.text)
        object["seconds"] = .number(JSONNumber(Int64(question.seconds)))
        return object.serialized() + [0x0A]
    }

    static func encoded(signingOut app: AppID, _ user: UserID) -> [UInt8] {
        let object: JSONObject = ["ask": "sign_out", "app": .string(app.text), "user": .string(user.text)]
        return object.serialized() + [0x0A]
    }

    static func encoded(changing app: AppID, _ name: BucketName, to mode: BucketMode) -> [UInt8] {
        let object: JSONObject = [
            "ask": "mode", "app": .string(app.text), "bucket": .string(name.text), "mode": .string(mode.word),
        ]
        return object.serialized() + [0x0A]
    }

    /// - Throws: `ControlError` with a text for the administrator.
    static func request(_ line: [UInt8]) throws(ControlError) -> ControlRequest {
        guard let object = (try? JSONValue(parsing: line))?.objectValue,
            let what = object["ask"]?.stringValue
        else { return .ask(try question(line)) }
        if what.utf8.elementsEqual("sign_out".utf8) {
            return .signOut(
                try name(object["app"], { (text) throws(IdentifierError) in try AppID(text) }),
                try name(object["user"], { (text) throws(IdentifierError) in try UserID(text) }))
        }
        if what.utf8.elementsEqual("mode".utf8) {
            guard let mode = BucketMode(word: object["mode"]?.stringValue ?? ""), mode.isSetByOperators else {
                throw ControlError("a bucket is open or sealed")
            }
            return .changeMode(
                try name(object["app"], { (text) throws(IdentifierError) in try AppID(text) }),
                try name(object["bucket"], { (text) throws(IdentifierError) in try BucketName(text) }), mode)
        }
        return .ask(try question(line))
    }

    private static func name<Name>(
        _ value: JSONValue?, _ make: (String) throws(IdentifierError) -> Name
    ) throws(ControlError) -> Name {
        do {
            return try make(value?.stringValue ?? "")
        } catch {
            throw ControlError(error.description)
        }
    }

    /// - Throws: `ControlError` with a text for the administrator.
    static func question(_ line: [UInt8]) throws(ControlError) -> RemoteQuestion {
        guard let json = try? JSONValue(parsing: line), let object = json.objectValue else {
            throw ControlError("the request is not a JSON object")
        }
        let kind: RemoteQuestion.Kind
        switch object["ask"]?.stringValue {
        case "index": kind = .index
        case "log":
            guard let level = object["level"]?.intValue, (0...2).contains(level) else {
                throw ControlError("the log level is not 0, 1 or 2")
            }
            kind = .log(Int(level))
        default: throw ControlError("only 'index' and 'log' can be asked")
        }
        guard let seconds = object["seconds"]?.intValue, secondsRange.contains(Int(seconds)) else {
            throw ControlError("the time to wait is not within 1 to 300 seconds")
        }
        do throws(IdentifierError) {
            let bucket = BucketID(
                app: try AppID(object["app"]?.stringValue ?? ""), user: try UserID(object["user"]?.stringValue ?? ""),
                name: try BucketName(object["bucket"]?.stringValue ?? ""))
            return RemoteQuestion(bucket: bucket, kind: kind, seconds: Int(seconds))
        } catch {
            throw ControlError(error.description)
        }
    }

    static func encoded(_ reply: RemoteReply) -> [UInt8] {
        var writer = JSONWriter()
        switch reply {
        case .asked(let count): writer.bytes += Array("{\"asked\":\(count)}".utf8)
        case .answer(let client, let json):
            writer.bytes += Array("{\"client\":".utf8)
            writer.write(string: client)
            writer.bytes += Array(",\"answer\":".utf8)
            writer.bytes += json
            writer.bytes.append(0x7D)
        case .ended: writer.bytes += Array("{\"ended\":true}".utf8)
        case .failed(let reason):
            writer.bytes += Array("{\"failed\":".utf8)
            writer.write(string: reason)
            writer.bytes.append(0x7D)
        }
        return writer.bytes + [0x0A]
    }

    static func reply(_ line: [UInt8]) -> RemoteReply? {
        guard let json = try? JSONValue(parsing: line), let object = json.objectValue else {
            return nil
        }
        if let count = object["asked"]?.intValue { return .asked(Int(count)) }
        if let reason = object["failed"]?.stringValue { return .failed(reason) }
        if object["ended"]?.boolValue == true { return .ended }
        guard let client = object["client"]?.stringValue, let answer = object["answer"] else {
            return nil
        }
        return .answer(client: client, json: answer.serialized())
    }
}

/// A failure on the control socket, with a text for the administrator.
public struct ControlError: Error, Equatable, CustomStringConvertible {
    /// The text.
    public let description: String
    /// No server listens on the folder's control socket.
    public let isNoServer: Bool
    init(_ description: String, isNoServer: Bool = false) {
        self.description = description
        self.isNoServer = isNoServer
    }
}
