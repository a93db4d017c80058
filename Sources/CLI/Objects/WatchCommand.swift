import ThicketClient
import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket watch`: prints the events of a bucket as they happen, until Ctrl-C.
enum WatchCommand {
    /// What the command waits for, in one stream.
    private enum Happening: Sendable {
        case event(BucketEvent)
        case status(SyncStatus)
        case interrupted
    }

    static func run(_ call: Call) async throws(Failure) {
        let keys = call.arguments("KEY")
        for key in keys { try Keys.check(key) }
        let account = try Account(call)
        let open = try await OpenBucket.open(account, bucket: call.argument("BUCKET"), store: .watch)
        let (stream, continuation) = AsyncStream.makeStream(
            of: Happening.self, bufferingPolicy: .bufferingOldest(StreamLimits.eventsMax))
        // The bucket may already be complete: a reader that waits for a repeated event about that would never show
        // anything.
        let events = await open.bucket.changesTellingCaughtUp
        let statuses = await open.session.status
        let interrupts = Interrupts.stream()
        try await open.ready()
        var view = WatchView(
            name: open.name, keys: keys, isJSON: call.flag("json"), isRepeating: call.flag("all"),
            renewal: open.renewal)
        view.describe(server: account.profile.server)
        await reportRefused(account, open.name)
        await withTaskGroup { group in
            group.addTask { for await event in events { continuation.yield(.event(event)) } }
            group.addTask { for await status in statuses { continuation.yield(.status(status)) } }
            group.addTask {
                for await _ in interrupts {}
                continuation.yield(.interrupted)
            }
            for await happening in stream {
                guard await view.show(happening, open) else { break }
            }
            group.cancelAll()
            continuation.finish()
            await open.close()
            // The thread that waits for a signal would keep its task alive: the program ends now anyway.
            Interrupts.release()
        }
        if let problem = view.problem { throw problem }
    }

    /// The copy that this command uses holds no edits. Refused edits in the profile's copy are named at the beginning;
    /// while another command uses that copy, the other command names them.
    private static func reportRefused(_ account: Account, _ name: String) async {
        guard let folder = account.folder, Files.stamp("\(folder)/objects/\(name).db") != nil,
            let kept = try? await OpenBucket.count(account, bucket: name)
        else { return }
        for edit in kept.refused.prefix(OpenBucket.refusalsShownMax) {
            Terminal.writeError("thicket: \(OpenBucket.line(edit, in: name))\n")
        }
    }

    /// Decides what is printed.
    private struct WatchView {
        let name: String
        let keys: Set<String>
        let isJSON: Bool
        let isRepeating: Bool
        /// Everything that existed before the start has arrived.
        private var isLive = false
        private var before = [String: JSONObject]()
        private var lastStatus = "connected"
        private(set) var problem: Failure?
        private let renewal: String

        init(name: String, keys: [String], isJSON: Bool, isRepeating: Bool, renewal: String) {
            self.name = name
            self.keys = Set(keys)
            self.isJSON = isJSON
            self.isRepeating = isRepeating
            self.renewal = renewal
        }

        func describe(server: String) {
            let which = keys.isEmpty ? name : keys.sorted().map { "\(name)/\($0)" }.joined(separator: ", ")
            Terminal.writeError("watching \(which) at \(server); Ctrl-C ends it\n")
        }

        /// Returns false when the command must end.
        mutating func show(_ happening: Happening, _ open: OpenBucket) async -> Bool {
            switch happening {
            case .interrupted: return false
            case .status(let status): return show(status)
            case .event(.caughtUp):
                guard !isLive else { return true }
                isLive = true
                return await begin(open)
            case .event(let event): return show(event)
            }
        }

        /// Reads the present objects and prints them if requested.
        private mutating func begin(_ open: OpenBucket) async -> Bool {
            guard let all = try? await open.bucket.keys() else { return false }
            for key in all where keys.isEmpty || keys.contains(key) {
                guard let object = try? await open.bucket.get(key) else { continue }
                if !keys.isEmpty || all.count <= WatchView.rememberedMax { before[key] = object }
                guard isRepeating else { continue }
                let row: JSONObject = ["event": "present", "key": .string(key), "object": .object(object)]
                guard emit(row, ["= \(key)  " + Screen.line(.object(object), columns: columns - key.count - 5)]) else {
                    return false
                }
            }
            return true
        }

        /// Most objects whose last state is kept in order to describe changes.
        private static let rememberedMax = 10_000
        private var columns: Int { max(40, Terminal.columns(Terminal.standardOutput)) }

        private mutating func show(_ event: BucketEvent) -> Bool {
            switch event {
            case .changed(let change):
                guard keys.isEmpty || keys.contains(change.key) else { return true }
                defer {
                    if before[change.key] != nil || before.count < WatchView.rememberedMax {
                        before[change.key] = change.object
                    }
                }
                guard isLive else { return true }
                let row: JSONObject = [
                    "event": "changed", "key": .string(change.key), "new": .bool(change.isNew),
                    "object": .object(change.object), "diff": change.diff.json,
                ]
                return emit(row, lines(change))
            case .removed(let removal):
                guard keys.isEmpty || keys.contains(removal.key) else { return true }
                before[removal.key] = nil
                guard isLive else { return true }
                return emit(["event": "removed", "key": .string(removal.key)], ["- \(removal.key)  removed"])
            case .overrun(let missed):
                let row: JSONObject = ["event": "missed", "count": .number(JSONNumber(Int64(missed)))]
                return emit(row, ["! \(missed) changes came too fast to be shown; 'thicket get' shows how things are"])
            case .unavailable(let reason):
                Terminal.writeError("the server does not open the bucket (\(reason.detail)); trying again\n")
                return true
            case .integrity(let report):
                let row: JSONObject = [
                    "event": "integrity", "key": .string(report.key), "kind": .string(report.kind.rawValue),
                    "detail": .string(report.detail),
                ]
                return emit(row, OpenBucket.lines(event).map { "! \($0)" })
            case .conflict(let report):
                guard keys.isEmpty || keys.contains(report.key) else { return true }
                let row: JSONObject = [
                    "event": "conflict", "key": .string(report.key), "path": .array(report.path.map { .string($0) }),
                    "losing": report.losing ?? .null, "winning": report.winning ?? .null,
                ]
                return emit(row, OpenBucket.lines(event).map { "! \($0)" })
            case .refused, .caughtUp: return true
            }
        }

        private func lines(_ change: ObjectChange) -> [String] {
            guard !change.isNew, let old = before[change.key] else {
                let mark = change.isNew ? "+" : "~"
                return [
                    "\(mark) \(change.key)  "
                        + Screen.line(.object(change.object), columns: columns - change.key.count - 5)
                ]
            }
            // The stream may have skipped a state: the description compares with the state that was shown last.
            let diff = JSONDiff.diff(from: old, to: change.object)
            return ["~ \(change.key)"] + DiffText.lines(diff, from: old, columns: columns - 5).map { "    \($0)" }
        }

        /// Prints statuses on standard error, each once.
        private mutating func show(_ status: SyncStatus) -> Bool {
            let text: String
            switch status {
            case .connecting: text = "connecting"
            case .indexing: text = "reading the bucket"
            case .syncing, .upToDate: text = "connected"
            case .offline(.unreachable(let reason)), .offline(.untrusted(let reason)):
                text = "offline (\(reason)); trying again"
            case .offline(.unauthorized(let reason)):
                problem = Failure("the login has ended (\(reason)). \(renewal)", .unauthorized)
                return false
            case .offline(.storeFailed(let reason)): text = "the local copy cannot be written (\(reason)); trying again"
            case .offline(.wrongAccount):
                problem = Failure(
                    "the token belongs to another user than the copy kept on this machine; 'thicket login' with --profile "
                        + "OTHER keeps both apart", .unauthorized)
                return false
            case .offline: return true
            }
            // A reconnect is reported by its outcome.
            guard !same(text, lastStatus), status != .connecting else { return true }
            lastStatus = text
            Terminal.writeError("\(text)\n")
            return true
        }

        /// Returns false when the output has no reader any more.
        private func emit(_ row: JSONObject, _ lines: [String]) -> Bool {
            if isJSON { return Terminal.write(JSONValue.object(row).serializedText + "\n") }
            let time = Clock.timeOfDay()
            let text = lines.enumerated().map { ($0 == 0 ? "\(time) " : "") + $1 + "\n" }.joined()
            return Terminal.write(Terminal.isTerminal(Terminal.standardOutput) ? Screen.safe(text) : text)
        }
    }
}

/// The clocks of the commands.
enum Clock {
    /// The time of day in the user's time zone: `17:05:59`.
    static func timeOfDay() -> String {
        var now = time(nil)
        var parts = tm()
        localtime_r(&now, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { ($0 < 10 ? "0" : "") + String($0) }.joined(
            separator: ":")
    }
}
