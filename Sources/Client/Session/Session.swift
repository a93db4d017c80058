internal import Synchronization

package import ThicketCrypto
import ThicketProtocol
public import ThicketSealed

/// One account on one server: a connection, a local store, and any number of buckets.
///
/// Ends with `close()`, or when the last reference to it and its buckets is released.
public final class Session: Sendable {
    package let engine: SyncEngine
    /// nil until `useKeys` sets them.
    private let keys: Mutex<SessionKeys?> = Mutex(nil)

    package init(engine: SyncEngine) { self.engine = engine }

    // MARK: - Buckets

    /// Opens a bucket and keeps it in sync from now on, also after a restart.
    ///
    /// - Parameter name: 1–64 characters of `[A-Za-z0-9._%-]`.
    /// - Throws: `invalidName`, `limit` (1,000 buckets), `store`, `closed`, and `sealed` for a bucket that this store
    ///   or the account's bundle knows as a sealed one, so that nothing is sent into it unencrypted.
    public func bucket(_ name: String) async throws(ClientError) -> Bucket {
        let bucket: BucketName
        do { bucket = try BucketName(name) } catch { throw ClientError(.invalidName, error.description) }
        if keys.withLock({ $0?.mode(of: name)?.isSealed }) == true {
            throw ClientError(.sealed, "the account lists the bucket as sealed: open it with 'sealed: true'")
        }
        try await engine.act { (machine, now) throws(ClientError) in ((), try machine.open(bucket, now: now)) }
        return Bucket(engine: engine, name: bucket)
    }

    /// Gives the session the keys of its account, so that sealed buckets open by name. The keys stay in memory until
    /// `close()` and are not stored. Call it again when the account's bundle has changed.
    ///
    /// - Parameter account: the account as opened by a sign-in, by pairing, by the recovery words, or from
    ///   `DeviceKeys`.
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

    /// The owner and the secret of the account's tree; nil while the session has no keys.
    package var treeSecret: (owner: String, secret: SecureBytes)? { keys.withLock { $0.map { ($0.owner, $0.tree) } } }

    /// The account whose keys the session has; nil while it has none.
    var openAccount: OpenAccount? { keys.withLock { $0?.account } }

    /// The account's keys for messages, and those that they have replaced; nil while the session has no keys.
    package var messageKeys: (user: String, current: AccountKeyPair, earlier: [AccountKeyPair])? {
        openAccount.map { ($0.user, $0.bundle.keyPair, $0.bundle.earlierKeys) }
    }

    /// Uses a newer bundle of the same account from now on.
    ///
    /// - Returns: whether it is newer than the one in use.
    func adopt(_ account: OpenAccount) -> Bool {
        keys.withLock { keys in
            guard let known = keys?.account, known.version < account.version,
                known.user.utf8.elementsEqual(account.user.utf8)
            else { return false }
            keys = SessionKeys(account)
            return true
        }
    }

    /// Whether the session has the keys of its account.
    public var hasKeys: Bool { keys.withLock { $0 != nil } }

    /// Opens a bucket in the given mode: a sealed bucket uses keys derived from the account's vault secret. All else is
    /// as in an open bucket.
    ///
    /// ```swift
    /// let diary = try await session.bucket("diary", sealed: true)
    /// try await diary.set("today", to: ["text": "Only I can read this."])
    /// ```
    ///
    /// - Parameters:
    ///   - name: 1–64 characters of `[A-Za-z0-9._%-]`.
    ///   - sealed: false is the same as `bucket(_:)`.
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

    /// Whether the local store knows the bucket as a sealed one; nil when the store does not know the bucket.
    package func isSealed(_ name: String) async throws(ClientError) -> Bool? {
        try await engine.act { (machine, _) throws(ClientError) in
            ((try? BucketName(name)).flatMap { machine.isSealed($0) }, [])
        }
    }

    /// Whether the server has reported, on this connection or an earlier one, that the bucket is a sealed one.
    package func isServedSealed(_ name: String) async -> Bool {
        let isServed = try? await engine.act { (machine, _) throws(ClientError) in
            ((try? BucketName(name)).map { machine.isServedSealed($0) } ?? false, [])
        }
        return isServed ?? false
    }

    /// Turns a local copy that was opened as sealed into an open one. Possible when the server has only unsealed
    /// objects and the copy has never held a sealed one. Inform the user, who asked for a sealed bucket.
    package func unseal(_ name: String) async throws(ClientError) -> Bool {
        try await engine.act { (machine, now) throws(ClientError) in
            guard let bucket = try? BucketName(name) else { return (false, []) }
            return try machine.unseal(bucket, now: now)
        }
    }

    /// A bucket of the local store in its current state, without opening it: for counting unsent edits.
    package func kept(_ name: String) throws(ClientError) -> Bucket {
        do { return Bucket(engine: engine, name: try BucketName(name)) } catch {
            throw ClientError(.invalidName, error.description)
        }
    }

    /// Opens a sealed bucket with the app's own keys, such as those of a bucket that several accounts share.
    ///
    /// The keys are not stored: give them again after each start; until then the bucket is not synced. Object keys
    /// follow the same rules as in open buckets; the server sees derived keys.
    ///
    /// - Parameters:
    ///   - name: 1–64 characters of `[A-Za-z0-9._%-]`.
    ///   - keys: derived from the bucket's secret.
    /// - Throws: as `bucket(_:)`, and `sealed` when this store knows the bucket as an open one, or when the keys belong
    ///   to another app or bucket.
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

    /// The names of the buckets in this store, in byte order.
    public var buckets: [String] {
        get async throws(ClientError) {
            try await engine.act { (machine, _) throws(ClientError) in (machine.bucketNames.map(\.text), []) }
        }
    }

    /// The current status and its changes. Each reader has its own stream; a slow reader gets only the newest statuses.
    public var status: AsyncStream<SyncStatus> {
        get async {
            let (stream, continuation) = AsyncStream.makeStream(
                of: SyncStatus.self, bufferingPolicy: .bufferingNewest(StreamLimits.statusesMax))
            await engine.listenStatus(continuation)
            return stream
        }
    }

    /// The current status.
    public var currentStatus: SyncStatus {
        get async { await engine.status }
    }

    /// Messages and bytes exchanged since the session was opened.
    public var traffic: Traffic {
        get async { await engine.traffic }
    }

    /// The server's name for the user of this token; nil until this store has been connected once.
    public var user: String? {
        get async throws(ClientError) {
            try await engine.act { (machine, _) throws(ClientError) in (try machine.user(), []) }
        }
    }

    /// Connects now, also after the server refused the token.
    public func goOnline() async {
        try? await engine.act { (machine, now) throws(ClientError) in ((), machine.goOnline(now: now)) }
    }

    /// Ends the connection; the session does not reconnect until `goOnline()`. Reads and edits still work.
    public func goOffline() async {
        try? await engine.act { (machine, now) throws(ClientError) in ((), machine.goOffline(now: now)) }
    }

    /// Replaces the token, and connects with the new one.
    public func setToken(_ token: String) async throws(ClientError) {
        try await engine.act { (machine, now) throws(ClientError) in ((), machine.setToken(token, now: now)) }
    }

    /// Ends the session and releases the local store. Unsent edits stay in the store and are sent by the next session.
    public func close() async {
        keys.withLock { $0 = nil }
        await engine.close()
    }
}

/// What a session has exchanged with its server: messages, and the bytes of their texts (frames and TLS not counted).
public struct Traffic: Sendable, Equatable {
    /// Messages sent.
    public internal(set) var messagesSent: Int64 = 0
    /// Bytes of the messages sent.
    public internal(set) var bytesSent: Int64 = 0
    /// Messages received.
    public internal(set) var messagesReceived: Int64 = 0
    /// Bytes of the messages received.
    public internal(set) var bytesReceived: Int64 = 0
}

/// Limits of streams and requests.
public enum StreamLimits {
    /// Most events of one bucket that a reader's buffer holds; `BucketEvent.overrun` reports the missed ones.
    public static let eventsMax = 4_096
    /// Most conflicts and integrity reports of one bucket that wait for a reader; `BucketEvent.overrun` reports how
    /// many more occurred.
    public static let undeliveredMax = 256
    /// Most bytes of JSON in those conflicts and reports.
    public static let undeliveredBytesMax = 16 << 20
    /// Most statuses that a reader's buffer holds; older ones are dropped.
    public static let statusesMax = 64
    /// Most versions of an object that are requested at the same time.
    public static let versionsInFlightMax = 16
    /// Most objects that `Bucket.removed` lists.
    public static let removedMax = 100_000
    /// Most versions that `Bucket.history` reads.
    public static let versionsMax = 1_000
}
