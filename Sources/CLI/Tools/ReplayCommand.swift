import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform
import ThicketReplay

/// `thicket replay`: types recorded sessions through real clients and a server, and compares every client's final text.
enum ReplayCommand {
    static func run(_ call: Call) async throws(Failure) {
        let account = try Account(call)
        guard account.profile.kind != .partner else {
            throw Failure("replay works with an account or an operator's token, not with a partner's user", .usage)
        }
        let shared = try options(account, call)
        var difference: String?
        for path in call.arguments("TRACE") {
            difference = try await replay(path, shared, call)
            guard difference == nil else { break }
        }
        guard let difference else {
            Terminal.write("MATCH\n")
            return
        }
        Terminal.write("\(difference)\n")
        throw Failure("", .failure)
    }

    /// What all recordings of the call share, including the secret of a sealed bucket. Without a given name the sealed
    /// bucket gets a fresh one, since its content can never be opened again.
    private static func options(_ account: Account, _ call: Call) throws(Failure) -> Replay.Options {
        var options = Replay.Options(
            server: account.profile.server, app: account.profile.app, token: account.profile.token, key: "")
        let isSealed = call.flag("sealed")
        options.bucket = call.value("bucket") ?? (isSealed ? "sealed-replay-\(RandomBytes.hex(8))" : "replay")
        if isSealed {
            do { options.keys = try Replay.randomKeys(app: options.app, bucket: options.bucket) } catch {
                throw Failure("the bucket's keys could not be made: \(error)")
            }
        }
        options.clients = try call.number("clients", in: 1...64, default: 2)
        options.session = account.sessionOptions(isOnline: true)
        options.patience = account.timeout
        return options
    }

    /// A trace as JSON, compressed with gzip or not.
    private static func read(_ path: String) throws -> Trace {
        let bytes = try Inputs.bytes(Files.read(path, bytesMax: Gzip.unpackedBytesMax), path)
        return try Trace(json: bytes.starts(with: [0x1F, 0x8B]) ? try Gzip.unpack(bytes) : bytes)
    }

    /// The first difference, or nil.
    private static func replay(
        _ path: String, _ shared: Replay.Options, _ call: Call
    ) async throws(Failure) -> String? {
        let trace: Trace
        let replay: Replay
        let observer: ReplayObserver
        do {
            trace = try read(path)
            var options = shared
            options.key = "replay-\(SystemClock.unixNanoseconds())"
            observer = ReplayObserver(label: "typing", total: trace.transactions.count)
            replay = try Replay(trace, options: options, observer: observer)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure("\(path): \(error)", .usage)
        }
        if trace.isConcurrent, call.value("clients") != nil {
            Terminal.writeError(
                "\(path) was typed by \(trace.agentCount) people at once: each is a client, --clients is ignored\n")
        }
        let report: Replay.Report
        do {
            report = try await replay.run()
        } catch let error as ClientError {
            observer.finish()
            if error.code == .refused, call.flag("sealed"), let name = call.value("bucket") {
                throw Failure(
                    "\(path): the server refuses what is typed, or \(name) holds objects of an earlier replay, whose "
                        + "secret is lost: leave --bucket out, or name a new one", .refused)
            }
            throw Failure("\(path)", error)
        } catch {
            observer.finish()
            throw Failure("\(path): \(error)", .offline)
        }
        observer.finish()
        let rate = report.seconds > 0 ? Int(Double(report.edits) / report.seconds) : report.edits
        let seconds = "\(Int(report.seconds)).\(Int(report.seconds * 10) % 10)"
        Terminal.write(
            "\(path): \(report.edits) edits by \(replay.clientCount) clients in \(seconds) s, \(rate) edits/s, "
                + "\(report.bytesSent) bytes sent, final length \(report.length) characters\n")
        return report.difference.map { "\(path): \($0)" }
    }
}

/// Draws the progress of the typing.
private final class ReplayObserver: Replay.Observer {
    private struct State {
        var bar: ProgressBar?
        var done = 0
    }

    // The bar is used only while the lock is held.
    private let state: Mutex<State>

    init(label: String, total: Int) {
        state = Mutex(State(bar: ProgressBar(label, total: total)))
    }

    func opened(_ sessions: [Session]) async {}
    func blocked(client: Int) async {}
    func ending() async {}

    func typed(client: Int, count: Int, inserted: String) async {
        state.withLock { state in
            state.done += 1
            state.bar?.update(state.done)
        }
    }

    func finish() {
        state.withLock { state in
            state.bar?.finish()
            state.bar = nil
        }
    }
}
