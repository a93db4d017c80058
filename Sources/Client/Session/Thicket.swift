import ThicketProtocol

/// The entry point of the client library.
///
/// ```swift
/// let session = try await Thicket.connect(
///     server: "https://sync.example.com", app: "notes-app", token: token, store: .file("notes.db"))
/// let notes = try await session.bucket("notes")
/// try await notes.set("today", to: ["title": "Oak"])
/// ```
public enum Thicket {
    /// The version that the client reports to the server.
    public static let version = "0.1.0"

    /// Opens the local store and starts to sync in the background.
    ///
    /// Returns as soon as the store is open: everything works without a connection, and `Session.status` reports when
    /// there is one.
    ///
    /// - Parameters:
    ///   - server: `https://host[:port][/path]`, or `http://` in a trusted network.
    ///   - app: the app id (1–64 characters of `[A-Za-z0-9._-]`).
    ///   - token: the user's access token.
    ///   - store: the place of the local copy.
    ///   - options: settings of the session.
    /// - Throws: `invalidName`, `invalidOptions`, `storeInUse`, `storeMismatch`, `store`, `limit`.
    public static func connect(
        server: String, app: String, token: String, store: StoreLocation = .memory,
        options: SessionOptions = SessionOptions()
    ) async throws(ClientError) -> Session {
        let endpoint = try Endpoint(server)
        let sync = try options.syncOptions(app: app, token: token)
        let engine = SyncEngine(loop: try EngineLoop())
        try await start(engine, endpoint, sync, store: store, options: options)
        return Session(engine: engine)
    }

    /// Opens the store for an engine and starts it.
    static func start(
        _ engine: SyncEngine, _ endpoint: Endpoint, _ sync: SyncOptions, store: StoreLocation, options: SessionOptions,
        onToken: (@Sendable (TokenNotice) -> Void)? = nil
    ) async throws(ClientError) {
        let transport = options.transportOptions
        let target = "/sock/1/\(sync.app.text)/websocket"
        try await engine.start(
            options: sync, makeStore: { () throws(ClientError) in try store.open(options.durability) },
            // Linux only: the transport over libcurl. On Apple platforms another class implements the same protocol.
            makeTransport: { CurlWebSocketTransport(endpoint: endpoint, target: target, options: transport) },
            onToken: onToken)
    }
}

/// The place of a session's local copy: ghosts, unsent edits, positions.
public enum StoreLocation: Sendable, Hashable {
    /// In memory; lost when the session ends.
    case memory
    /// A SQLite file, created when missing (its folder must exist). Only one session, in one process, can open it at a
    /// time.
    ///
    /// The file is sealed under a key that is kept beside it, in `<file>.key`: a copy of the store without the key
    /// reveals nothing and cannot be opened.
    case file(String)
    /// As `file`, sealed under a key that is kept elsewhere (`StoreKeyFile`).
    case sealed(String, StoreKey)

    func open(_ durability: StoreDurability) throws(ClientError) -> any LocalStore {
        switch self {
        case .memory: MemoryLocalStore()
        case .file(let path):
            try SQLiteLocalStore(path: path, key: Self.key(beside: path), durability: durability)
        case .sealed(let path, let key): try SQLiteLocalStore(path: path, key: key, durability: durability)
        }
    }

    /// Opens the file of another part of the same store, sealed under the same key.
    ///
    /// - Parameter part: the end of its name, such as `tree`.
    /// - Returns: nil for a store in memory.
    /// - Throws: `storeInUse`, `store`.
    package func open(part: String, _ durability: StoreDurability) throws(ClientError) -> StoreFile? {
        switch self {
        case .memory: nil
        case .file(let path):
            try StoreFile(path: path + "." + part, key: Self.key(beside: path), durability: durability)
        case .sealed(let path, let key): try StoreFile(path: path + "." + part, key: key, durability: durability)
        }
    }

    /// The folder of another part of the same store, and the key for its files.
    ///
    /// - Parameter part: the end of its name, such as `files`.
    /// - Returns: nil for a store in memory.
    /// - Throws: `store`.
    package func folder(part: String) throws(ClientError) -> (path: String, key: StoreKey)? {
        switch self {
        case .memory: nil
        case .file(let path): (path + "." + part, try Self.key(beside: path))
        case .sealed(let path, let key): (path + "." + part, key)
        }
    }

    /// A lost key is not replaced by a new one, because what was sealed under the old key would look damaged.
    private static func key(beside path: String) throws(ClientError) -> StoreKey {
        let file = StoreKeyFile(path: path + ".key")
        return try file.key(makesNew: !StoreSealing.isSealed(path))
    }
}

/// What a file store survives. It is never left half-written, and a crash of the program loses nothing.
public enum StoreDurability: Sendable, Hashable {
    /// A power failure may undo the unsent edits of the last few seconds, consistently over the whole store. Edits are
    /// on disk before they are sent, so that none is ever sent twice as two edits. Fast.
    case program
    /// Every edit is on disk when its call returns. Costs one disk flush per edit.
    case power
}

/// Options of a session.
public struct SessionOptions: Sendable {
    /// A PEM file with the certificates to trust instead of the system's.
    public var certificateFile: String?
    /// Pins of public keys; besides a valid certificate, the server must have one of these keys. The format is that of
    /// `curl --pinnedpubkey`: `sha256//` and the base64 of the key's SHA-256; several are separated by semicolons.
    public var pinnedKeys: String?
    /// A proxy (`http://host:port`, `socks5://host:port`, …); nil uses `https_proxy`, `http_proxy` and `no_proxy`.
    public var proxy: String?
    /// Timeout of a connection attempt in seconds, 1...300.
    public var connectTimeoutSeconds: Int = 30
    /// Timeout in seconds, 1...86,400, of requests other than sync (logins, keys, devices).
    public var answerTimeoutSeconds: Int = 30
    /// Whether to connect at once; otherwise `Session.goOnline()` connects.
    public var startsOnline = true
    /// What a file store survives.
    public var durability: StoreDurability = .program
    /// Most bytes of one message from the server, 1 MiB...1 GiB: a larger object ends the connection.
    public var messageBytesMax: Int = 64 << 20
    /// Beside which store what is known of other people's keys is kept (`ClientSession.people`), in a file with
    /// `.people` appended; nil: the session's store. Several sessions and programs of one account may share it.
    public var people: StoreLocation?
    /// The connecting program's name and version, as sent to the server.
    public var userAgent: String = "thicket/" + Thicket.version

    /// The default options.
    public init() {}

    func syncOptions(app: String, token: String) throws(ClientError) -> SyncOptions {
        let appID: AppID
        do { appID = try AppID(app) } catch { throw ClientError(.invalidName, error.description) }
        guard !token.isEmpty, !token.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw ClientError(.invalidOptions, "the token is empty or holds control characters")
        }
        guard (1...300).contains(connectTimeoutSeconds), (1...86_400).contains(answerTimeoutSeconds),
            (1 << 20...1 << 30).contains(messageBytesMax),
            !userAgent.utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F })
        else { throw ClientError(.invalidOptions, "a timeout, a size or the user agent is out of range") }
        guard pinnedKeys.map(KeyPins.isGood) ?? true else {
            throw ClientError(.invalidOptions, "a key pin must be 'sha256//' followed by 44 characters of base64")
        }
        var sync = SyncOptions(app: appID, token: token)
        sync.version = Thicket.version
        sync.startsOnline = startsOnline
        sync.connectMilliseconds = Int64(connectTimeoutSeconds) * 1_000
        return sync
    }

    var transportOptions: TransportOptions {
        var transport = TransportOptions()
        transport.certificateFile = certificateFile
        transport.pinnedKeys = pinnedKeys
        transport.proxy = proxy
        transport.connectTimeoutMilliseconds = connectTimeoutSeconds * 1_000
        transport.messageBytesMax = messageBytesMax
        transport.userAgent = userAgent
        return transport
    }
}
