import Synchronization
import ThicketClient
import ThicketCrypto
import ThicketProtocol
public import ThicketSealed

/// Types a recorded session through real clients and a real server, and compares every client's final text with the
/// recorded one.
///
/// One object holds the text and, for each person, how many of their recorded edits it contains: an edit and its count
/// are one change, so a client always knows exactly which edits its text contains.
public final class Replay: Sendable {
    /// Where and how to replay.
    public struct Options: Sendable {
        /// The server's address.
        public var server: String
        /// The app's name.
        public var app: String
        /// The access token of all clients.
        public var token: String
        /// The bucket's name.
        public var bucket = "replay"
        /// The object's key.
        public var key: String
        /// The keys of a sealed bucket, shared by all clients; nil: an open bucket.
        public var keys: SealedBucketKeys?
        /// Clients that take turns in a sequential trace; in a concurrent trace each person is a client.
        public var clients: Int = 2
        /// Edits of one client before the next takes over, in a sequential trace.
        public var turnEdits: Int = 200
        /// The local store of client `n`; the fresh client at the end has `n` = -1.
        public var store: @Sendable (Int) -> StoreLocation = { _ in .memory }
        /// The connection options of all clients.
        public var session = SessionOptions()
        /// Longest wait for one message, after which the replay fails.
        public var patience: Duration = .seconds(60)

        /// Options with the default bucket, two clients and stores in memory.
        public init(server: String, app: String, token: String, key: String) {
            self.server = server
            self.app = app
            self.token = token
            self.key = key
        }
    }

    /// How a replay ended.
    public struct Report: Sendable {
        /// Patches typed by all clients.
        public let edits: Int
        /// Duration of the replay in seconds.
        public let seconds: Double
        /// Bytes sent by all clients.
        public let bytesSent: Int64
        /// Code points of the recorded final text.
        public let length: Int
        /// nil: every client and a fresh one hold exactly the recorded text.
        public let difference: Difference?
    }

    /// The first position at which a client's text is not the recorded one.
    public struct Difference: Sendable, CustomStringConvertible {
        /// The client's name.
        public let client: String
        /// Code points from the start.
        public let position: Int
        /// The recorded text at the position.
        public let expected: String
        /// The client's text at the position.
        public let found: String
        /// The difference as a sentence.
        public var description: String {
            "\(client) differs at code point \(position): expected \(quoted(expected)), found \(quoted(found))"
        }
        private func quoted(_ text: String) -> String {
            text.isEmpty ? "the end" : String(decoding: JSONValue.string(text).serialized(), as: UTF8.self)
        }
    }

    /// Receives the progress, for a display or for deliberate disturbances. Called from the clients' tasks.
    public protocol Observer: Sendable {
        /// The clients exist and nothing is typed yet.
        func opened(_ sessions: [Session]) async
        /// Client `client` has typed `count` of its transactions; `inserted` is the text of the last one.
        func typed(client: Int, count: Int, inserted: String) async
        /// Client `client` cannot continue before edits of others arrive.
        func blocked(client: Int) async
        /// Everything is typed; from here on disturbances must stop.
        func ending() async
    }

    private let trace: Trace
    private let options: Options
    private let carrier: Mutex<TraceCarrier>
    private let byAgent: [[Int]]
    private let observer: (any Observer)?
    /// Contradictions that clients of a sealed bucket have reported.
    private let alarms: Mutex<[String]> = Mutex([])

    /// - Throws: `TraceError` when the trace contradicts itself.
    public init(_ trace: Trace, options: Options, observer: (any Observer)? = nil) throws(TraceError) {
        self.trace = trace
        self.options = options
        self.observer = observer
        let carrier = try TraceCarrier(trace)
        byAgent = carrier.byAgent
        self.carrier = Mutex(carrier)
    }

    /// Clients that the replay opens, without the fresh one at the end.
    public var clientCount: Int { trace.isConcurrent ? trace.agentCount : max(1, options.clients) }

    /// Replays the whole trace.
    ///
    /// - Throws: `ClientError` from the clients; `ReplayError` when they cannot continue, or when the object already
    ///   exists.
    public func run() async throws -> Report {
        var sessions = [Session]()
        do {
            for number in 0..<clientCount { sessions.append(try await session(number)) }
            let report = try await run(sessions)
            for session in sessions { await session.close() }
            return report
        } catch {
            for session in sessions { await session.close() }
            throw error
        }
    }

    private func run(_ sessions: [Session]) async throws -> Report {
        let buckets = try await start(sessions)
        let watchers: [Task<Void, Never>] = buckets.map { (bucket: Bucket) in Task { await self.watch(bucket) } }
        defer { for watcher in watchers { watcher.cancel() } }
        await observer?.opened(sessions)
        let clock = ContinuousClock()
        let begin = clock.now
        if trace.isConcurrent {
            try await withThrowingTaskGroup { group in
                for agent in 0..<trace.agentCount {
                    group.addTask { try await self.typeAll(of: agent, as: agent, in: buckets[agent]) }
                }
                try await group.waitForAll()
            }
        } else {
            try await typeInTurns(buckets)
        }
        await observer?.ending()
        for session in sessions { await session.goOnline() }
        for (client, bucket) in buckets.enumerated() { try await settle(bucket, client: client) }
        let elapsed = begin.duration(to: clock.now)
        var sent: Int64 = 0
        for session in sessions { sent += await session.traffic.bytesSent }
        let difference = try await compare(buckets)
        if let alarm = alarms.withLock({ $0.first }) {
            throw ReplayError("something does not fit in the sealed bucket: \(alarm)")
        }
        return Report(
            edits: trace.patchCount, seconds: elapsed / .seconds(1), bytesSent: sent,
            length: trace.endContent.unicodeScalars.count, difference: difference)
    }

    // MARK: - Clients

    private func session(_ number: Int) async throws -> Session {
        try await Thicket.connect(
            server: options.server, app: options.app, token: options.token, store: options.store(number),
            options: options.session)
    }

    /// The bucket of the replay, opened by a client.
    public func bucket(of session: Session) async throws(ClientError) -> Bucket {
        guard let keys = options.keys else { return try await session.bucket(options.bucket) }
        return try await session.bucket(options.bucket, sealedBy: keys)
    }

    /// Keys of a new sealed bucket, from a random secret that no account has.
    public static func randomKeys(app: String, bucket: String) throws(CryptoError) -> SealedBucketKeys {
        try SealedBucketKeys(owner: "replay", app: app, bucket: bucket, secrets: [0: SecureBytes.random(32)])
    }

    private func watch(_ bucket: Bucket) async {
        for await event in await bucket.changes {
            guard case .integrity(let report) = event else { continue }
            alarms.withLock { $0.append("\(report.kind): \(report.detail)") }
        }
    }

    /// The first client makes the object; all wait until they have it.
    private func start(_ sessions: [Session]) async throws -> [Bucket] {
        var buckets = [Bucket]()
        for session in sessions { buckets.append(try await bucket(of: session)) }
        // The counts in an older object would not belong to this replay.
        try await buckets[0].waitUntilSynced(timeout: options.patience)
        guard try await buckets[0].get(options.key) == nil else {
            throw ReplayError("there is an object \(options.key) already: replay under another key")
        }
        var pairs: [(key: String, value: JSONValue)] = [("text", .string(trace.startContent))]
        for agent in 0..<trace.agentCount { pairs.append((Self.counter(agent), .number(JSONNumber(0)))) }
        try await buckets[0].set(options.key, to: JSONObject(pairs))
        for bucket in buckets { try await wait(in: bucket, "the empty document") { !$0.isEmpty } }
        return buckets
    }

    static func counter(_ agent: Int) -> String { "typed\(agent)" }

    /// Waits until the object satisfies `isThere`.
    private func wait(
        in bucket: Bucket, _ what: String, _ isThere: @escaping @Sendable (JSONObject) -> Bool
    ) async throws {
        let key = options.key
        try await withDeadline(options.patience, what) {
            let events = await bucket.changes
            if let object = try await bucket.get(key), isThere(object) { return }
            for await _ in events {
                if let object = try await bucket.get(key), isThere(object) { return }
            }
        }
    }

    // MARK: - Typing

    private func typeAll(of agent: Int, as client: Int, in bucket: Bucket) async throws {
        let events = await bucket.changes
        for (count, row) in byAgent[agent].enumerated() {
            if try await !type(row, of: agent, in: bucket) {
                await observer?.blocked(client: client)
                try await withDeadline(options.patience, "the edits before edit \(count) of client \(client)") {
                    var isTyped = try await self.type(row, of: agent, in: bucket)
                    if isTyped { return }
                    for await _ in events {
                        isTyped = try await self.type(row, of: agent, in: bucket)
                        if isTyped { return }
                    }
                    throw ReplayError("client \(client) was closed")
                }
            }
            await observer?.typed(client: client, count: count + 1, inserted: text(of: row))
        }
    }

    private func text(of row: Int) -> String { trace.transactions[row].patches.last?.inserted ?? "" }

    /// Types one transaction if its parents have arrived.
    private func type(_ row: Int, of agent: Int, in bucket: Bucket) async throws -> Bool {
        try await bucket.edit(options.key) { object, _ in
            guard let object else { return nil }
            return self.carrier.withLock { Self.diff(of: row, by: agent, in: object, carrier: &$0) }
        }
    }

    private static func diff(
        of row: Int, by agent: Int, in object: JSONObject, carrier: inout TraceCarrier
    ) -> ObjectDiff? {
        let needs = carrier.needs(row)
        for other in needs.indices where other != agent {
            let count = Int(object[counter(other)]?.numberValue?.int64 ?? 0)
            guard count >= needs[other] else { return nil }
            carrier.saw(agent: agent, other: other, count: count)
        }
        var length = carrier.seenLength(of: agent)
        var delta = TextDelta.identity(length: length)
        for edit in carrier.type(row) {
            let step = edit.delta(length: length)
            length = step.targetLength
            // Lengths fit by construction; if they did not, the object's own check would refuse the edit.
            delta = (try? TextDelta.compose(delta, step)) ?? step
        }
        var operations: [(key: String, operation: Operation)] = [
            (counter(agent), .replace(.number(JSONNumber(Int64(carrier.seen(by: agent)[agent])))))
        ]
        if !delta.isIdentity { operations.append(("text", .text(delta))) }
        return ObjectDiff(operations)
    }

    /// A sequential trace: the clients type in turn, each from the text that the previous one has left.
    private func typeInTurns(_ buckets: [Bucket]) async throws {
        var done = 0
        var turn = 0
        while done < byAgent[0].count {
            let client = turn % buckets.count
            let stretch = byAgent[0][done..<min(done + options.turnEdits, byAgent[0].count)]
            let before = done
            try await wait(in: buckets[client], "the turn of client \(client)") {
                $0[Self.counter(0)]?.numberValue?.int64 ?? 0 >= Int64(before)
            }
            for row in stretch {
                guard try await type(row, of: 0, in: buckets[client]) else {
                    throw ReplayError("the document does not exist any more at client \(client)")
                }
                done += 1
                await observer?.typed(client: client, count: done, inserted: text(of: row))
            }
            turn += 1
        }
    }

    // MARK: - The end

    /// Waits until a client has sent all its edits and holds those of all clients.
    private func settle(_ bucket: Bucket, client: Int) async throws {
        let totals = byAgent.map(\.count)
        try await wait(in: bucket, "all edits at client \(client)") { object in
            totals.indices.allSatisfy { object[Self.counter($0)]?.numberValue?.int64 ?? 0 >= Int64(totals[$0]) }
        }
        try await bucket.waitUntilSynced(timeout: options.patience)
    }

    private func compare(_ buckets: [Bucket]) async throws -> Difference? {
        for (client, bucket) in buckets.enumerated() {
            if let difference = try await compare(bucket, "client \(client)") { return difference }
        }
        let fresh = try await session(-1)
        do {
            let bucket = try await bucket(of: fresh)
            try await settle(bucket, client: clientCount)
            let difference = try await compare(bucket, "a fresh client")
            await fresh.close()
            return difference
        } catch {
            await fresh.close()
            throw error
        }
    }

    private func compare(_ bucket: Bucket, _ client: String) async throws -> Difference? {
        let object = try await bucket.get(options.key)
        let found = Array((object?["text"]?.stringValue ?? "").unicodeScalars)
        let expected = Array(trace.endContent.unicodeScalars)
        guard found != expected else { return nil }
        let position =
            zip(found, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(found.count, expected.count)
        func excerpt(_ text: [Unicode.Scalar]) -> String {
            var excerpt = ""
            excerpt.unicodeScalars.append(contentsOf: text[position..<min(text.count, position + 20)])
            return excerpt
        }
        return Difference(client: client, position: position, expected: excerpt(expected), found: excerpt(found))
    }
}

/// Why a replay could not continue.
public struct ReplayError: Error, CustomStringConvertible {
    /// The reason as a sentence.
    public let description: String
    init(_ description: String) { self.description = description }
}

/// Runs `body`, and cancels it when it takes longer than `patience`.
func withDeadline(
    _ patience: Duration, _ what: String, _ body: @escaping @Sendable () async throws -> Void
) async throws {
    try await withThrowingTaskGroup { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: patience)
            throw ReplayError("waited \(patience) for \(what): is the server reachable?")
        }
        defer { group.cancelAll() }
        try await group.next()
    }
}
