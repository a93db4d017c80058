import ThicketCommandLine
import ThicketProtocol

/// `thicketd ask`: sends a question to the running server through its control socket.
enum AskCommand {
    static func run(_ call: Invocation, _ config: ServerConfig) throws(CommandFailure) {
        let question = try question(call)
        let folder = try AdminCommands.folder(config, creating: false)
        var asked = 0
        var answers = 0
        do throws(ControlError) {
            try ControlClient.ask(question, folder: folder) { (reply: RemoteReply) in
                switch reply {
                case .asked(let count):
                    asked = count
                    Terminal.writeError("asked \(count) client\(count == 1 ? "" : "s")\n")
                case .answer(let client, let json):
                    answers += 1
                    var writer = JSONWriter()
                    writer.raw("{\"client\":")
                    writer.write(string: client)
                    writer.raw(",\"answer\":")
                    writer.raw(json)
                    writer.raw("}\n")
                    Terminal.write(writer.bytes, to: Terminal.standardOutput)
                case .ended, .failed: break
                }
            }
        } catch {
            throw CommandFailure(error.description, error.isNoServer ? .noServer : .failure)
        }
        if asked == 0 { throw CommandFailure("no client has that bucket open now") }
        if answers == 0 { throw CommandFailure("no client answered in \(question.seconds) s; some never do") }
    }

    private static func question(_ call: Invocation) throws(CommandFailure) -> RemoteQuestion {
        let kind: RemoteQuestion.Kind
        switch call.argument("WHAT") ?? "" {
        case "index": kind = .index
        case "log:0": kind = .log(0)
        case "log:1": kind = .log(1)
        case "log:2": kind = .log(2)
        case let other: throw CommandFailure("'\(other)' cannot be asked; say index, log:0, log:1 or log:2", .usage)
        }
        let bucket: BucketID
        do throws(IdentifierError) {
            bucket = BucketID(
                app: try AppID(call.argument("APP") ?? ""), user: try UserID(call.argument("USER") ?? ""),
                name: try BucketName(call.argument("BUCKET") ?? ""))
        } catch {
            throw CommandFailure(error.description, .usage)
        }
        do throws(ValueError) {
            let milliseconds = try SettingValue.milliseconds(call.value("wait") ?? "5s")
            let seconds = Int(min(milliseconds, 1 << 40) + 999) / 1_000
            guard ControlLine.secondsRange.contains(seconds) else { throw ValueError("is outside 1s…5m") }
            return RemoteQuestion(bucket: bucket, kind: kind, seconds: seconds)
        } catch {
            throw CommandFailure("--wait: \(error.problem)", .usage)
        }
    }
}
