public import ThicketProtocol

/// A named set of JSON objects that is kept the same on all of a user's devices.
///
/// Reading and editing need no connection and never wait for one. When a call returns, the edit is kept in the local
/// store. Keys are 1–256 of `[A-Za-z0-9._%@-]`; others throw `invalidName`. All calls throw `store` when the local
/// store fails and `closed` after `Session.close()`.
public struct Bucket: Sendable {
    let engine: SyncEngine
    let bucket: BucketName

    init(engine: SyncEngine, name: BucketName) {
        self.engine = engine
        bucket = name
    }

    public var name: String { bucket.text }

    // MARK: - Reading

    /// The object as the app sees it, local edits included; nil when there is none.
    public func get(_ key: String) async throws(ClientError) -> JSONObject? {
        let key = try Self.key(key)
        let bucket: BucketName = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.object(bucket, key), []) }
    }

    /// All keys, in byte order.
    public func keys() async throws(ClientError) -> [String] {
        var keys = [String]()
        var last: String?
        while true {
            let page = try await self.keys(after: last, limit: 10_000)
            keys.append(contentsOf: page)
            guard page.count == 10_000 else { return keys }
            last = page.last
        }
    }

    /// Keys behind `after`, in byte order, at most `limit`.
    public func keys(after: String?, limit: Int) async throws(ClientError) -> [String] {
        var from: EntityKey?
        if let after { from = try Self.key(after) }
        let bucket: BucketName = bucket
        let bounds: (after: EntityKey?, limit: Int) = (from, max(0, limit))
        return try await engine.act { (machine, _) throws(ClientError) in
            (try machine.keys(bucket, after: bounds.after, limit: bounds.limit).map(\.text), [])
        }
    }

    /// The app's keys by those under which the server knows the objects, which in an open bucket are the same.
    package func namesByStoredKey() async throws(ClientError) -> [String: String] {
        let bucket = bucket
        let names = try await keys()
        return try await engine.act { (machine, _) throws(ClientError) in
            var stored = [String: String]()
            for name in names { stored[try machine.wireKey(bucket, try Self.key(name)).text] = name }
            return (stored, [])
        }
    }

    /// What is known about an object besides its content; version 0 when nothing is.
    public func info(_ key: String) async throws(ClientError) -> ObjectInfo {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in
            let standing = try machine.standing(bucket, key)
            let info = ObjectInfo(
                version: standing.version, hasUnconfirmedEdits: standing.hasEdits, refusal: standing.refusal,
                revision: machine.revision)
            return (info, [])
        }
    }

    // MARK: - Editing

    /// Makes the object equal to `object`; the difference to what was there is sent.
    ///
    /// What others have set to the same value meanwhile is left as it is: two devices that set one text to the same end
    /// with that text. Edits by `edit` and `editText` are never merged away so (docs/decisions/0086).
    public func set(_ key: String, to object: JSONObject) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            ((), try machine.set(bucket, key, to: object, now: now))
        }
    }

    /// Removes the object; nothing happens when there is none.
    public func remove(_ key: String) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            ((), try machine.remove(bucket, key, now: now))
        }
    }

    /// Removes the object if it is as `condition` wants it, with nothing in between.
    ///
    /// - Parameter condition: gets the object as it is now. Runs on the session's thread: must not block.
    /// - Returns: whether it was removed; false also when there is none.
    @discardableResult
    public func remove(
        _ key: String, if condition: @Sendable (_ object: JSONObject) -> Bool
    ) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            guard let object = try machine.object(bucket, key), condition(object) else {
                return (false, [])
            }
            return (true, try machine.remove(bucket, key, now: now))
        }
    }

    /// Applies exactly this difference to the object (to the empty one when there is none).
    ///
    /// - Throws: `misfit` when it does not fit; the object is as before then.
    public func edit(_ key: String, by diff: ObjectDiff) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            ((), try machine.edit(bucket, key, by: diff, now: now))
        }
    }

    /// Reads the object and edits it by what `body` returns, with nothing in between.
    ///
    /// - Parameter body: gets the object (nil when there is none) and the revision of the last event that led to it;
    ///   returns the difference to apply, nil for none. Runs on the session's thread: must not block.
    /// - Throws: `misfit` when the difference does not fit.
    @discardableResult
    public func edit(
        _ key: String, _ body: @Sendable (_ object: JSONObject?, _ revision: Int64) -> ObjectDiff?
    ) async throws(ClientError) -> Bool {
        try await edit(key, isWhole: false, body)
    }

    /// As `edit`, but the object that the difference makes is wanted as a whole, as by `set`.
    @discardableResult
    package func replace(
        _ key: String, _ body: @Sendable (_ object: JSONObject?, _ revision: Int64) -> ObjectDiff?
    ) async throws(ClientError) -> Bool {
        try await edit(key, isWhole: true, body)
    }

    private func edit(
        _ key: String, isWhole: Bool, _ body: @Sendable (_ object: JSONObject?, _ revision: Int64) -> ObjectDiff?
    ) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            let object = try machine.object(bucket, key)
            guard let diff = body(object, machine.revision) else { return (false, []) }
            return (true, try machine.edit(bucket, key, by: diff, isWhole: isWhole, now: now))
        }
    }

    /// Reads the object and makes it what `body` leaves in its argument (nil removes it), with nothing in between.
    ///
    /// - Parameter body: runs on the session's thread: must not block.
    public func update(_ key: String, _ body: @Sendable (inout JSONObject?) -> Void) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            var object = try machine.object(bucket, key)
            body(&object)
            guard let object else { return ((), try machine.remove(bucket, key, now: now)) }
            return ((), try machine.set(bucket, key, to: object, now: now))
        }
    }

    /// Edits a text in the object at exactly this place.
    ///
    /// - Parameters:
    ///   - path: the keys that lead to the text.
    ///   - position: UTF-16 code units from the text's start.
    ///   - deleted: UTF-16 code units to delete there.
    ///   - inserted: text to put in their place.
    /// - Throws: `misfit` when there is no text at `path`, or the place is not inside it; `invalidValue` for an empty
    ///   path.
    public func editText(
        _ key: String, path: [String], at position: Int, deleting deleted: Int = 0, inserting inserted: String = ""
    ) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            let diff = try TextEdit(path: path, position: position, deleted: deleted, inserted: inserted)
                .diff(in: try machine.object(bucket, key))
            return ((), try machine.edit(bucket, key, by: diff, now: now))
        }
    }

    /// Gives up the edits of an object that the server refused (`ObjectInfo.refusal`, or a token that may not change
    /// anything): the object is as the server has it again.
    ///
    /// - Returns: false when there is nothing of the kind. Edits whose fate is open are never given up.
    @discardableResult
    public func discardRefused(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            guard try machine.isRefused(bucket, key) else { return (false, []) }
            return (true, try machine.discard(bucket, key, now: now))
        }
    }

    /// The edits that the server refused and that are kept here, until they are given up (`discardRefused`), sent once
    /// more (`retryRefused`), or the object is edited again. Edits that only wait because the token permits no changes
    /// are among them (`unauthorized`) once the server has said so on this connection.
    public func refused() async throws(ClientError) -> [RefusedEdit] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.refusals(bucket), []) }
    }

    /// Sends an edit that the server refused for good once more, as it is: its limits may be others by now.
    ///
    /// - Returns: false when no edit of the object was refused.
    @discardableResult
    public func retryRefused(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            try machine.retryRefused(bucket, key, now: now)
        }
    }

    /// Gives up the edits of an object that the server certainly does not have: refused ones, as `discardRefused`, and
    /// edits that were never sent. Read the object before: what is given up is nowhere else.
    ///
    /// - Returns: false when there is nothing of the kind. Edits whose fate is open are never given up.
    @discardableResult
    public func discardUnsent(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            guard try machine.isUnsent(bucket, key) else { return (false, []) }
            return (true, try machine.discard(bucket, key, now: now))
        }
    }

    /// Whether the server certainly does not have the object's edits: what `discardUnsent` gives up.
    package func isUnsent(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.isUnsent(bucket, key), []) }
    }

    /// The keys of objects with edits that the server has not confirmed, in no order.
    package func unconfirmedKeys() async throws(ClientError) -> [String] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.unconfirmedKeys(bucket), []) }
    }

    /// Objects that are sent again since the last call, because the server, which need not be the one known before, did
    /// not have them. They are noted from the first call on.
    package func takeBroughtBack() async throws(ClientError) -> [String] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.takeBroughtBack(bucket), []) }
    }

    // MARK: - Repair of sealed objects

    /// What makes an object of a sealed bucket read-only, for a person; nil: nothing does.
    public func problem(of key: String) async throws(ClientError) -> String? {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.problem(bucket, key), []) }
    }

    /// The keys of objects that are read-only until `keepMine` or `takeServers`, in byte order. Those that the app has
    /// deleted are among them: they are in no other list.
    public func problems() async throws(ClientError) -> [String] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in
            (try machine.problems(bucket).map(\.text), [])
        }
    }

    /// What the server shows of an object that is read-only; nil: it has none. What it holds of others is `get`.
    ///
    /// - Throws: `integrity` when that does not open, or holds two histories at once; `notFound` when there is nothing
    ///   to choose.
    public func servers(_ key: String) async throws(ClientError) -> JSONObject? {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.servers(bucket, key), []) }
    }

    /// Keeps what this device shows of an object that is read-only (`BucketEvent.integrity`): it begins anew, and what
    /// the server holds is removed. Other devices are asked the same question or get the new one. Where this device has
    /// deleted the object, what the server shows is deleted.
    ///
    /// - Returns: false when there is nothing to choose.
    /// - Throws: `integrity` when what the server holds was written by a newer program.
    @discardableResult
    public func keepMine(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            try machine.keepMine(bucket, key, now: now)
        }
    }

    /// Takes what the server shows of an object that is read-only. What this device showed is told as a conflict, so
    /// that it can be kept elsewhere.
    ///
    /// - Returns: false when there is nothing to choose.
    /// - Throws: `integrity` when what the server shows does not open.
    @discardableResult
    public func takeServers(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            try machine.takeServers(bucket, key, now: now)
        }
    }

    // MARK: - Following

    /// What happens to the objects from now on. Each reader has its own stream of at most `StreamLimits.eventsMax`
    /// waiting events. A new reader's begins with the conflicts and alarms that came before and that no reader has got,
    /// at most `StreamLimits.unheardMax`: also those of an earlier life of the program, which the store keeps until
    /// somebody has them. In front of them each edit that is refused at this moment is told (`BucketEvent.refused`).
    ///
    /// Who waits for `caughtUp` takes `changesTellingCaughtUp`: it may have been told before this reader was there.
    public var changes: AsyncStream<BucketEvent> { get async { await follow(tellsCaughtUp: false) } }

    /// As `changes`; where everything was read before, `caughtUp` is told to this reader all the same.
    public var changesTellingCaughtUp: AsyncStream<BucketEvent> { get async { await follow(tellsCaughtUp: true) } }

    private func follow(tellsCaughtUp: Bool) async -> AsyncStream<BucketEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: BucketEvent.self, bufferingPolicy: .bufferingOldest(StreamLimits.eventsMax))
        await engine.listen(bucket, tellsCaughtUp: tellsCaughtUp, continuation)
        return stream
    }

    /// For who does not follow the events: conflicts and alarms that came while nobody did, or for which no reader had
    /// room, the oldest first, at most `StreamLimits.unheardMax`. They are told once; the store keeps them until then.
    public func unheard() async -> [BucketEvent] { await engine.takeUnheard(bucket) }

    /// Objects with edits that the server has not confirmed.
    public var pendingCount: Int {
        get async throws(ClientError) {
            let bucket = bucket
            return try await engine.act { (machine, _) throws(ClientError) in (machine.unconfirmed(bucket).edited, []) }
        }
    }

    /// Waits until the server confirmed every edit and told everything it has.
    ///
    /// - Throws: `deadline` when that takes longer than `timeout` (or the task is cancelled), `refused` when the server
    ///   does not take an edit, `unavailable` when it does not open the bucket, `unauthorized`, `closed`.
    public func waitUntilSynced(timeout: Duration) async throws(ClientError) {
        try await engine.waitUntilSynced(bucket, milliseconds: timeout.wholeMilliseconds)
    }

    // MARK: - History

    /// Versions of an object that the server keeps, newest first.
    ///
    /// - Parameter limit: how many versions back to look, 1...1,000. The server keeps the last 60, then every tenth.
    /// - Throws: `offline` without a connection, `deadline`.
    public func history(of key: String, limit: Int = 60) async throws(ClientError) -> [ObjectVersion] {
        try await history(of: key, limit: limit, \.object)
    }

    /// The same as the server has stored it: sealed, in a sealed bucket.
    package func storedHistory(of key: String, limit: Int) async throws(ClientError) -> [ObjectVersion] {
        try await history(of: key, limit: limit, \.stored)
    }

    /// The key under which the server has an object.
    package func storedKey(of key: String) async throws(ClientError) -> String {
        let (bucket, key) = (bucket, try Self.key(key))
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.wireKey(bucket, key).text, []) }
    }

    private func history(
        of key: String, limit: Int, _ form: KeyPath<FetchedVersion, JSONObject?> & Sendable
    ) async throws(ClientError) -> [ObjectVersion] {
        let newest: Version = try await info(key).version
        let oldest: Version = max(1, newest - Version(min(max(limit, 1), StreamLimits.versionsMax)) + 1)
        var found = [ObjectVersion]()
        var next: Version = newest
        while next >= oldest {
            let last: Version = max(oldest, next - Version(StreamLimits.versionsInFlightMax) + 1)
            found.append(contentsOf: try await versions(of: key, from: next, downTo: last, form))
            next = last - 1
        }
        return found
    }

    /// One version of an object; nil when the server does not have it.
    ///
    /// - Throws: `offline` without a connection, `deadline`.
    public func version(_ version: Int64, of key: String) async throws(ClientError) -> JSONObject? {
        try await fetched(version, of: key).object
    }

    private func fetched(_ version: Int64, of key: String) async throws(ClientError) -> FetchedVersion {
        let key = try Self.key(key)
        return try await engine.fetch(bucket, key, version, milliseconds: SyncLimits.answerMilliseconds)
    }

    private func versions(
        of key: String, from newest: Version, downTo oldest: Version,
        _ form: KeyPath<FetchedVersion, JSONObject?> & Sendable
    ) async throws(ClientError) -> [ObjectVersion] {
        let result: Result<[ObjectVersion], ClientError> = await withTaskGroup { group in
            for version in oldest...newest {
                group.addTask { () async -> Result<ObjectVersion?, ClientError> in
                    do throws(ClientError) {
                        guard let object: JSONObject = try await fetched(version, of: key)[keyPath: form] else {
                            return .success(nil)
                        }
                        return .success(ObjectVersion(version: version, object: object))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            var found = [ObjectVersion]()
            for await one in group {
                switch one {
                case .success(let version): if let version { found.append(version) }
                case .failure(let error): return .failure(error)
                }
            }
            return .success(found.sorted { $0.version > $1.version })
        }
        return try result.get()
    }

    static func key(_ text: String) throws(ClientError) -> EntityKey {
        do { return try EntityKey(text) } catch { throw ClientError(.invalidName, error.description) }
    }
}

/// What is known about an object besides its content.
public struct ObjectInfo: Sendable, Equatable {
    /// The server's version below the local edits; 0: the server never had it.
    public let version: Int64
    /// The server has not confirmed everything.
    public let hasUnconfirmedEdits: Bool
    /// The code with which the server refused the edits for good.
    public let refusal: Int?
    /// As in `ObjectChange.revision`: the count of the last event of the session.
    public let revision: Int64
}

/// One version of an object, as the server keeps it.
public struct ObjectVersion: Sendable, Equatable {
    public let version: Int64
    public let object: JSONObject
}

extension Duration {
    /// Whole milliseconds, rounded up; never negative.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds < Int64.max / 4_000 else { return Int64.max / 4 }
        return max(0, seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
