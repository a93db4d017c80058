internal import Synchronization
import ThicketProtocol
public import ThicketSealed

/// One account on one server: a connection, a local store, any number of buckets.
///
/// Ends with `close()`, or when nobody holds it and its buckets any more.
public final class Session: Sendable {
    package let engine: SyncEngine
    /// nil: nobody has given them.
    private let keys: Mutex<SessionKeys?> = Mutex(nil)

    package init(engine: SyncEngine) { self.engine = engine }

    // MARK: - Buckets

    /// Opens a bucket: from now on it is kept in sync, also after a restart.
    ///
    /// - Parameter name: 1–64 of `[A-Za-z0-9._%-]`.
    /// - Throws: `invalidName`, `limit` (1,000 buckets), `store`, `closed`, and `sealed` for a bucket that this store
    ///   or the account's bundle knows as a sealed one: nothing is sent into it in clear.
    public func bucket(_ name: String) async throws(ClientError) -> Bucket {
        let bucket: BucketName
        do { bucket = try BucketName(name) } catch { throw ClientError(.invalidName, error.description) }
        if keys.withLock({ $0?.mode(of: name)?.isSealed }) == true {
            throw ClientError(.sealed, "the account has the bucket as a sealed one: open it with 'sealed: true'")
        }
        try await engine.act { (machine, now) throws(ClientError) in ((), try machine.open(bucket, now: now)) }
        return Bucket(engine: engine, name: bucket)
    }

    /// Gives the session the keys of its account: sealed buckets then open by name. They stay in memory until `close()`
    /// and are kept nowhere. Give them again when the account's bundle has changed.
    ///
    /// - Parameter account: as it was opened by signing in, by pairing, by the words, or from `DeviceKeys`.
    /// - Throws: `sealed` for keys of another app.
    public func useKeys(of account: OpenAccount) async throws(ClientError) {
        let app = account.app
        try await engine.act { (machine, _) throws(ClientError) in
            guard machine.options.app.text.utf8.elementsEqual(app.utf8) else {
                throw ClientError(.sealed, "these are keys of another app")
            }
            return ((), [])
        }
        let given = SessionKeys(account)
        keys.withLock { $0 = given }
    }

    /// Whether the session has the keys of its account.
    public var hasKeys: Bool { keys.withLock { $0 != nil } }

    /// Opens a bucket in the mode that is asked for: a sealed one with keys that are derived from the account's vault
    /// secret. Everything else is as in an open one.
    ///
    /// ```swift
    /// let diary = try await session.bucket("diary", sealed: true)
    /// try await diary.set("today", to: ["text": "Nobody but me reads this."])
    /// ```
    ///
    /// - Parameters:
    ///   - name: 1–64 of `[A-Za-z0-9._%-]`.
    ///   - sealed: false is `bucket(_:)`.
    /// - Throws: as `bucket(_:sealedBy:)`; `noKeys` when the session has no keys (`useKeys(of:)`).
    public func bucket(_ name: String, sealed: Bool) async throws(ClientError) -> Bucket {
        guard sealed else { return try await bucket(name) }
        do { _ = try BucketName(name) } catch { throw ClientError(.invalidName, error.description) }
        guard let held = keys.withLock({ $0 }) else {
            throw ClientError(
                .noKeys, "the session has no keys of its account: a sealed bucket opens after a sign-in with keys")
        }
        return try await bucket(name, sealedBy: try held.keys(of: name))
    }

    /// Whether the local store knows the bucket as a sealed one; nil: it does not know the bucket.
    package func isSealed(_ name: String) async throws(ClientError) -> Bool? {
        try await engine.act { (machine, _) throws(ClientError) in
            ((try? BucketName(name)).flatMap { machine.isSealed($0) }, [])
        }
    }

    /// Whether the server has said, on this connection or one before, that it holds the bucket as a sealed one.
    package func isServedSealed(_ name: String) async -> Bool {
        let isServed = try? await engine.act { (machine, _) throws(ClientError) in
            ((try? BucketName(name)).map { machine.isServedSealed($0) } ?? false, [])
        }
        return isServed ?? false
    }

    /// Makes a copy that was opened as a sealed one an open one again, where the server shows nothing but clear objects
    /// and nothing sealed was ever here. Tell the user: they wanted a sealed bucket.
    package func unseal(_ name: String) async throws(ClientError) -> Bool {
        try await engine.act { (machine, now) throws(ClientError) in
            guard let bucket = try? BucketName(name) else { return (false, []) }
            return try machine.unseal(bucket, now: now)
        }
    }

    /// A bucket of the local store as it stands, without opening it: for counting what is not sent.
    package func kept(_ name: String) throws(ClientError) -> Bucket {
        do { return Bucket(engine: engine, name: try BucketName(name)) } catch {
            throw ClientError(.invalidName, error.description)
        }
    }

    /// Opens a sealed bucket with keys of the app's own, such as those of a bucket that several accounts share.
    ///
    /// The keys are not kept: give them again after each start; until then the bucket is not synced. Keys of objects
    /// may be as in open buckets; the server sees other ones.
    ///
    /// - Parameters:
    ///   - name: 1–64 of `[A-Za-z0-9._%-]`.
    ///   - keys: made of the bucket's secret.
    /// - Throws: as `bucket(_:)`, and `sealed` when this store knows it as an open bucket, or when the keys are another
    ///   app's or bucket's.
    public func bucket(_ name: String, sealedBy keys: SealedBucketKeys) async throws(ClientError) -> Bucket {
        let bucket: BucketName
        do { bucket = try BucketName(name) } catch { throw ClientError(.invalidName, error.description) }
        guard keys.bucket.utf8.elementsEqual(name.utf8) else {
            throw ClientError(.sealed, "these are the keys of another bucket")
        }
        try await engine.act { (machine, now) throws(ClientError) in
            guard machine.options.app.text.utf8.elementsEqual(keys.app.utf8) else {
                throw ClientError(.sealed, "these are keys of another app")
            }
            return ((), try machine.open(bucket, keys: keys, now: now))
        }
        return Bucket(engine: engine, name: bucket)
    }

    /// Names of the buckets kept in this store, in byte order.
    public var buckets: [String] {
        get async throws(ClientError) {
            try await engine.act { (machine, _) throws(ClientError) in (machine.bucketNames.map(\.text), []) }
        }
    }

    /// The status now and whenever it changes. Each reader has its own stream; a slow one sees the newest.
    public var status: AsyncStream<SyncStatus> {
        get async {
            let (stream, continuation) = AsyncStream.makeStream(
                of: SyncStatus.self, bufferingPolicy: .bufferingNewest(StreamLimits.statusesMax))
            await engine.listenStatus(continuation)
            return stream
        }
    }

    /// The status at this moment.
    public var currentStatus: SyncStatus {
        get async { await engine.status }
    }

    /// Messages and bytes since the session was opened.
    public var traffic: Traffic {
        get async { await engine.traffic }
    }

    /// The name under which the server knows the user of this token; nil before this store was
    /// ever connected.
    public var user: String? {
        get async throws(ClientError) {
            try await engine.act { (machine, _) throws(ClientError) in (try machine.user(), []) }
        }
    }

    /// Connects now; also after the server refused the token.
    public func goOnline() async {
        try? await engine.act { (machine, now) throws(ClientError) in ((), machine.goOnline(now: now)) }
    }

    /// Ends the connection and makes no other until `goOnline()`. Reading and editing go on.
    public func goOffline() async {
        try? await engine.act { (machine, now) throws(ClientError) in ((), machine.goOffline(now: now)) }
    }

    /// Uses another token from now on, and connects with it.
    public func setToken(_ token: String) async throws(ClientError) {
        try await engine.act { (machine, now) throws(ClientError) in ((), machine.setToken(token, now: now)) }
    }

    /// Ends the session and frees the local store. What is not yet sent stays in the store and goes out next time.
    public func close() async {
        keys.withLock { $0 = nil }
        await engine.close()
    }
}

/// What a session has exchanged with its server: messages, and the bytes of their texts (frames and TLS not counted).
public struct Traffic: Sendable, Equatable {
    public internal(set) var messagesSent: Int64 = 0
    public internal(set) var bytesSent: Int64 = 0
    public internal(set) var messagesReceived: Int64 = 0
    public internal(set) var bytesReceived: Int64 = 0
}

/// Bounds of the streams that readers hold.
public enum StreamLimits {
    /// Events of one bucket that wait for one reader; what comes then is told by `BucketEvent.overrun`.
    public static let eventsMax = 4_096
    /// Conflicts and alarms of one bucket that wait for a reader, or for room in one's buffer; what comes then is told
    /// by `BucketEvent.overrun`.
    public static let unheardMax = 256
    /// Bytes of JSON in those conflicts.
    public static let unheardBytesMax = 16 << 20
    /// Statuses that wait for one reader; older ones are dropped.
    public static let statusesMax = 64
    /// Old versions of an object asked for at once.
    public static let versionsInFlightMax = 16
    /// Objects that `Bucket.removed` lists at most.
    public static let removedMax = 100_000
    /// Old versions that `Bucket.history` reads at most.
    public static let versionsMax = 1_000
}
