public import ThicketProtocol

/// A named set of JSON objects that is kept in sync between a user's devices.
///
/// Reads and edits need no connection and never wait for one. When an edit's call returns, the edit is in the local
/// store. Keys are 1–256 characters of `[A-Za-z0-9._%@-]`; other keys throw `invalidName`. All calls throw `store` when
/// the local store fails and `closed` after `Session.close()`.
public struct Bucket: Sendable {
    let engine: SyncEngine
    let bucket: BucketName

    init(engine: SyncEngine, name: BucketName) {
        self.engine = engine
        bucket = name
    }

    /// The bucket's name.
    public var name: String { bucket.text }

    // MARK: - Reading

    /// The object as the app sees it, local edits included; nil when it does not exist.
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

    /// At most `limit` keys after `after`, in byte order.
    public func keys(after: String?, limit: Int) async throws(ClientError) -> [String] {
        var from: EntityKey?
        if let after { from = try Self.key(after) }
        let bucket: BucketName = bucket
        let bounds: (after: EntityKey?, limit: Int) = (from, max(0, limit))
        return try await engine.act { (machine, _) throws(ClientError) in
            (try machine.keys(bucket, after: bounds.after, limit: bounds.limit).map(\.text), [])
        }
    }

    /// The app's keys by the server's keys; in an open bucket both are the same.
    package func namesByStoredKey() async throws(ClientError) -> [String: String] {
        let bucket = bucket
        let names = try await keys()
        return try await engine.act { (machine, _) throws(ClientError) in
            var stored = [String: String]()
            for name in names { stored[try machine.wireKey(bucket, try Self.key(name)).text] = name }
            return (stored, [])
        }
    }

    /// The state of an object besides its content; version 0 when the object is unknown.
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

    /// Makes the object equal to `object`; the difference to its current state is sent.
    ///
    /// A value that another device has set to the same result meanwhile is not changed again: two devices that set a
    /// text to the same value end with that value. Edits by `edit` and `editText` are never merged away in this manner
    /// (docs/decisions/0086).
    public func set(_ key: String, to object: JSONObject) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            ((), try machine.set(bucket, key, to: object, now: now))
        }
    }

    /// Removes the object; does nothing when it does not exist.
    public func remove(_ key: String) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            ((), try machine.remove(bucket, key, now: now))
        }
    }

    /// Removes the object if `condition` holds; check and removal are atomic.
    ///
    /// - Parameters:
    ///   - condition: receives the current object. Runs on the session's thread and must not block.
    ///   - key: the object's key.
    /// - Returns: whether the object was removed; false also when it does not exist.
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

    /// Applies exactly this difference to the object (to an empty object when it does not exist).
    ///
    /// - Throws: `misfit` when the difference does not fit; the object is unchanged then.
    public func edit(_ key: String, by diff: ObjectDiff) async throws(ClientError) {
        let key = try Self.key(key)
        let bucket = bucket
        try await engine.act { (machine, now) throws(ClientError) in
            ((), try machine.edit(bucket, key, by: diff, now: now))
        }
    }

    /// Reads the object and applies the difference that `body` returns, atomically.
    ///
    /// - Parameters:
    ///   - body: receives the object (nil when it does not exist) and the revision of the last event that led
    ///     to it; returns the difference to apply, or nil for none. Runs on the session's thread and must not block.
    ///   - key: the object's key.
    /// - Returns: whether `body` returned a difference.
    /// - Throws: `misfit` when the difference does not fit.
    @discardableResult
    public func edit(
        _ key: String, _ body: @Sendable (_ object: JSONObject?, _ revision: Int64) -> ObjectDiff?
    ) async throws(ClientError) -> Bool {
        try await edit(key, isWhole: false, body)
    }

    /// As `edit`, but the edit counts as a replacement of the whole object, as by `set`.
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

    /// Reads the object and stores what `body` leaves in its argument (nil removes the object), atomically.
    ///
    /// - Parameters:
    ///   - body: runs on the session's thread and must not block.
    ///   - key: the object's key.
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

    /// Edits a text in the object at exactly the given position.
    ///
    /// - Parameters:
    ///   - path: the keys that lead to the text.
    ///   - position: offset from the text's start, in UTF-16 code units.
    ///   - deleted: UTF-16 code units to delete at the position.
    ///   - inserted: text to insert in their place.
    ///   - key: the object's key.
    /// - Throws: `misfit` when `path` does not lead to a text, or the range is not inside it; `invalidValue` for an
    ///   empty path.
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

    /// Discards the edits of an object that the server refused (`ObjectInfo.refusal`, or a token that does not permit
    /// changes): the object then equals the server's state.
    ///
    /// - Returns: false when no edit is refused. An edit that the server may have accepted is never discarded.
    @discardableResult
    public func discardRefused(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            guard try machine.isRefused(bucket, key) else { return (false, []) }
            return (true, try machine.discard(bucket, key, now: now))
        }
    }

    /// The edits that the server refused. They are kept until they are discarded (`discardRefused`), sent again
    /// (`retryRefused`), or the object is edited again. Edits that wait only because the token does not permit changes
    /// are included (`unauthorized`) once the server has reported that on this connection.
    public func refused() async throws(ClientError) -> [RefusedEdit] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.refusals(bucket), []) }
    }

    /// Sends a refused edit again, unchanged: the server's limits may have changed.
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

    /// Discards the edits of an object that the server certainly does not have: refused edits, as `discardRefused`, and
    /// edits that were never sent. Read the object first: the discarded edits exist nowhere else.
    ///
    /// - Returns: false when the object has no such edits. An edit that the server may have accepted is never
    ///   discarded.
    @discardableResult
    public func discardUnsent(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            guard try machine.isUnsent(bucket, key) else { return (false, []) }
            return (true, try machine.discard(bucket, key, now: now))
        }
    }

    /// Whether the server certainly does not have the object's edits, so that `discardUnsent` discards them.
    package func isUnsent(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.isUnsent(bucket, key), []) }
    }

    /// The keys of objects with edits that the server has not confirmed, in no particular order.
    package func unconfirmedKeys() async throws(ClientError) -> [String] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.unconfirmedKeys(bucket), []) }
    }

    /// The objects that have been queued again since the last call, because the server (possibly a different one than
    /// before) does not have them. Recording starts with the first call.
    package func takeBroughtBack() async throws(ClientError) -> [String] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.takeBroughtBack(bucket), []) }
    }

    // MARK: - Repair of sealed objects

    /// Why an object of a sealed bucket is read-only, as a text for the user; nil when it is not.
    public func problem(of key: String) async throws(ClientError) -> String? {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.problem(bucket, key), []) }
    }

    /// The keys of objects that are read-only until `keepMine` or `takeServers`, in byte order. Objects that the app
    /// has removed are included, although `keys` does not list them.
    public func problems() async throws(ClientError) -> [String] {
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in
            (try machine.problems(bucket).map(\.text), [])
        }
    }

    /// The server's state of a read-only object; nil when the server does not have it. `get` returns this device's
    /// state.
    ///
    /// - Throws: `integrity` when the server's state cannot be opened or contains two histories; `notFound` when the
    ///   object is not read-only.
    public func servers(_ key: String) async throws(ClientError) -> JSONObject? {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.servers(bucket, key), []) }
    }

    /// Resolves a read-only object (`BucketEvent.integrity`) with this device's state: the object starts a new history,
    /// and the server's state is removed. Other devices get the new state or have to make the same choice. When this
    /// device has removed the object, the server's state is removed as well.
    ///
    /// - Returns: false when the object is not read-only.
    /// - Throws: `integrity` when a newer program version wrote the server's state.
    @discardableResult
    public func keepMine(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            try machine.keepMine(bucket, key, now: now)
        }
    }

    /// Resolves a read-only object with the server's state. This device's state is reported as a conflict, so that the
    /// app can keep it elsewhere.
    ///
    /// - Returns: false when the object is not read-only.
    /// - Throws: `integrity` when the server's state cannot be opened.
    @discardableResult
    public func takeServers(_ key: String) async throws(ClientError) -> Bool {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, now) throws(ClientError) in
            try machine.takeServers(bucket, key, now: now)
        }
    }

    // MARK: - Events

    /// The events of the bucket from now on. Each reader has its own stream, which buffers at most
    /// `StreamLimits.eventsMax` events. A new stream begins with one `BucketEvent.refused` for each edit that is
    /// refused at the moment. Then follow the undelivered conflicts and integrity reports, at most
    /// `StreamLimits.undeliveredMax`; they include those of earlier runs of the program, which the store keeps until a
    /// reader takes them.
    ///
    /// To wait for `caughtUp`, use `changesTellingCaughtUp`: the event may have occurred before this stream began.
    public var changes: AsyncStream<BucketEvent> { get async { await follow(reportsCaughtUp: false) } }

    /// As `changes`, but the stream begins with `caughtUp` when the bucket had caught up before.
    public var changesTellingCaughtUp: AsyncStream<BucketEvent> { get async { await follow(reportsCaughtUp: true) } }

    private func follow(reportsCaughtUp: Bool) async -> AsyncStream<BucketEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: BucketEvent.self, bufferingPolicy: .bufferingOldest(StreamLimits.eventsMax))
        await engine.listen(bucket, reportsCaughtUp: reportsCaughtUp, continuation)
        return stream
    }

    /// For an app that does not read `changes`: the conflicts and integrity reports that no reader has taken, the
    /// oldest first, at most `StreamLimits.undeliveredMax`. Each is returned once; the store keeps them until then.
    public func undelivered() async -> [BucketEvent] { await engine.takeUndelivered(bucket) }

    /// The number of objects with edits that the server has not confirmed.
    public var pendingCount: Int {
        get async throws(ClientError) {
            let bucket = bucket
            return try await engine.act { (machine, _) throws(ClientError) in (machine.unconfirmed(bucket).edited, []) }
        }
    }

    /// Waits until the server has confirmed every edit and has sent everything it has.
    ///
    /// - Throws: `deadline` after `timeout` (or when the task is cancelled), `refused` when the server refuses an edit,
    ///   `unavailable` when it does not open the bucket, `unauthorized`, `closed`.
    public func waitUntilSynced(timeout: Duration) async throws(ClientError) {
        try await engine.waitUntilSynced(bucket, milliseconds: timeout.wholeMilliseconds)
    }

    // MARK: - History

    /// The versions of an object that the server keeps, the newest first.
    ///
    /// - Parameters:
    ///   - limit: how many versions to look back, 1...1,000. The server keeps the last 60, then every tenth.
    ///   - key: the object's key.
    /// - Throws: `offline` without a connection, `deadline`.
    public func history(of key: String, limit: Int = 60) async throws(ClientError) -> [ObjectVersion] {
        try await history(of: key, limit: limit, \.object)
    }

    /// As `history`, in the form that the server stores: sealed, in a sealed bucket.
    package func storedHistory(of key: String, limit: Int) async throws(ClientError) -> [ObjectVersion] {
        try await history(of: key, limit: limit, \.stored)
    }

    /// The server's key of an object.
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

    /// One version of an object; nil when the server does not have that version.
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

/// The state of an object besides its content.
public struct ObjectInfo: Sendable, Equatable {
    /// The server's version on which the local edits are based; 0 when the server never had the object.
    public let version: Int64
    /// Whether the object has edits that the server has not confirmed.
    public let hasUnconfirmedEdits: Bool
    /// The code with which the server refused the edits; nil when it did not.
    public let refusal: Int?
    /// The revision of the session's last event, as in `ObjectChange.revision`.
    public let revision: Int64
}

/// One version of an object, as the server keeps it.
public struct ObjectVersion: Sendable, Equatable {
    /// The version's number.
    public let version: Int64
    /// The object's content in this version.
    public let object: JSONObject
}

extension Duration {
    /// In milliseconds, rounded up; never negative.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        guard seconds < Int64.max / 4_000 else { return Int64.max / 4 }
        return max(0, seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
