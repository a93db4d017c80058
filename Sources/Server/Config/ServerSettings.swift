import ThicketCommandLine

/// The table of settings, from which the help, `thicketd config` and the check of `docs/OPERATIONS.md` are generated.
public enum ServerSettings {
    private static let largest: Int64 = 1_000_000
    private static let kib: Int64 = 1 << 10
    private static let mib: Int64 = 1 << 20
    private static let gib: Int64 = 1 << 30
    private static let second: Int64 = 1_000
    private static let minute: Int64 = 60_000

    /// Every setting, in the order of the help.
    public static let all: [Setting] =
        general + tls + proxies + access + connection + sockJS + user + bucket + queue + retention + blobs

    /// Settings that SIGHUP does not change, because their objects are created at the start.
    public static let fixed: Set<String> = [
        "data", "listen", "reader-threads", "index-cache-bytes", "page-cache-bytes", "change-id-cache-bytes",
        "segment-cache-bytes", "late-heads-max", "walk-objects-max", "catch-up-positions-max", "log-reserved-bytes",
        "check-interval",
        "key-file", "keylog-key-file", "keylog-witnesses", "mail-folder", "mail-from", "smtp-url", "smtp-login-file",
        "smtp-starttls",
        "smtp-ca", "tls-cert",
        "tls-key",
    ]

    private static let general: [Setting] = [
        .text("data", \.data, "Folder of the database, the lock and the control socket."),
        .address(
            "listen", \.listen,
            "Where clients connect. Port 0 lets the kernel choose; the first line of output shows the port."),
        .level("log-level", \.logLevel, "Log lines below this level are not written."),
        .flag("metrics", \.metrics, "Answer /metrics on the port of the clients."),
        .flag("page", \.page, "Answer / with a page that describes the server and tests every transport."),
        .duration(
            "idle-timeout", \.idleTimeout, 5 * second...60 * minute,
            "Silence after which a connection is closed. Clients send a heartbeat after 20 s, so keep it above 40 s."),
        .duration(
            "request-timeout", \.requestTimeout, second...5 * minute,
            "Longest wait for a complete HTTP request head, and for a TLS handshake."),
        .bytes(
            "pace-bytes-per-second", \.paceBytesPerSecond, 0...gib,
            "Lowest average bytes per second for sending a body or message and for reading a response; 0B accepts any "
                + "rate."
        ),
        .duration(
            "drain-timeout", \.drainTimeout, 0...10 * minute,
            "Longest wait for work in progress after SIGTERM before connections are closed."),
        .integer(
            "reader-threads", \.readerThreads, 0...64, "Threads that read from the store; 0 means one per core."),
    ]

    private static let tls: [Setting] = [
        .file(
            "tls-cert", \.tlsCertificate,
            "PEM file of the certificate and its intermediate certificates; none means plain HTTP."),
        .file("tls-key", \.tlsKey, "PEM file of the certificate's private key, without a passphrase."),
        .duration(
            "hsts", \.hsts, 0...3_650 * day,
            "How long browsers that connected over TLS must use TLS only (HSTS); 0s sends no such header."),
    ]

    private static let proxies: [Setting] = [
        .networks(
            "trust-proxy", \.trustProxy,
            "Addresses and networks of trusted proxies (X-Forwarded-For), separated by commas; none trusts no proxy."
        ),
        .flag(
            "proxy-protocol", \.proxyProtocol,
            "Connections of those proxies begin with the PROXY protocol (1 or 2) and are refused without it."),
    ]

    private static let access: [Setting] = [
        .text(
            "key-file", \.keyFile,
            "File of the key that encrypts secrets in the database. A name without a slash is in the data folder."),
        .text(
            "keylog-key-file", \.keyLogKeyFile,
            "File of the secret that signs the key logs of all apps. A name without a slash is in the data folder."),
        .text(
            "keylog-witnesses", \.keyLogWitnesses,
            "Keys of witnesses whose confirmations of the key logs are given to devices, at most 8, separated by commas; "
                + "or none."),
        .duration(
            "token-leeway", \.tokenLeeway, 0...2 * minute,
            "How long after its end a partner's token is still accepted, because clocks differ."),
        .integer(
            "registrations-per-minute", \.registrationsPerMinute, 1...largest,
            "Registrations per minute of one partner, and new accounts of one app. A further one: 429."),
        .integer(
            "failed-logins-per-minute", \.failedLoginsPerMinute, 1...largest,
            "Failed logins per minute from one address. For users behind a proxy see trust-proxy. A further one: 429."),
        .integer(
            "guests-per-account-max", \.guestsPerAccountMax, 0...10_000,
            "Guests of one account: its links for people without an account. A further one: 409. 0 admits none."),
        .duration(
            "token-lifetime", \.tokenLifetime, 0...3_650 * day,
            "How long the token of a login is valid; 0 means until it is revoked."),
        .origins(
            "cors-origins", \.corsOrigins,
            "Web origins whose pages may use the data API, accounts and partners' requests, separated by commas; * "
                + "admits every origin, none admits none."
        ),
        .versions(
            "app-versions", \.appVersions,
            "Newest versions of client programs for /version: PLATFORM=VERSION separated by commas, or none."
        ),
        .text(
            "mail-folder", \.mailFolder,
            "Folder where messages to users wait for smtp-url, or for a mail program. A name without a slash is in the "
                + "data folder."
        ),
        .text("mail-from", \.mailFrom, "Sender of messages to users; a plain address."),
        .text(
            "smtp-url", \.smtpURL,
            "Mail server for messages to users, smtp://host:port or smtps://host:port; none leaves them in mail-folder."
        ),
        .text(
            "smtp-login-file", \.smtpLoginFile,
            "File of two lines, user and password for the mail server; none where the server requires none."),
        .flag("smtp-starttls", \.smtpStartTLS, "Send no mail over smtp:// before the connection has switched to TLS."),
        .text(
            "smtp-ca", \.smtpCA,
            "File of the authorities that sign the mail server's certificate; none takes those of the system."),
    ]

    private static let connection: [Setting] = [
        .bytes(
            "document-bytes-max", \.limits.documentBytesMax, kib...64 * mib,
            "Largest object as compact JSON. Above it: error 413."),
        .bytes(
            "frame-bytes-max", \.limits.frameBytesMax, 64 * kib...256 * mib,
            "Largest message of a client, all fragments together. Above it: close code 1009."),
        .integer(
            "connections-max", \.limits.connectionsMax, 1...largest,
            "Connections of all kinds; the limit on open files applies too. A further one is closed at once."),
        .integer(
            "channels-per-connection-max", \.limits.channelsPerConnectionMax, 1...10_000,
            "Channels (buckets) of one connection. A further init: code 500."),
        .bytes(
            "pending-bytes-per-connection-max", \.limits.pendingBytesPerConnectionMax, 64 * kib...gib,
            "Bytes queued for one client. Above it: close code 1013; the client catches up when it reconnects."),
        .bytes(
            "pending-bytes-total-max", \.limits.pendingBytesTotalMax, 64 * mib...1_024 * gib,
            "Bytes queued for all connections. Above it: close code 1013 for those behind."),
        .bytes(
            "gathered-bytes-total-max", \.limits.gatheredBytesTotalMax, 16 * mib...1_024 * gib,
            "Bytes of unfinished messages of all connections. Above it: 503, or close code 1013."),
        .integer(
            "messages-per-second", \.limits.messagesPerSecond, 1...largest,
            "Messages per second of one connection on average. A faster one is read more slowly."),
        .integer(
            "messages-burst", \.limits.messagesBurst, 1...10 * largest,
            "Messages a connection may send at once after a quiet time."),
        .integer(
            "changes-per-second", \.limits.changesPerSecond, 1...largest,
            "Changes per second of one connection on average. A faster one is read more slowly."),
        .integer(
            "changes-burst", \.limits.changesBurst, 1...10 * largest,
            "Changes a connection may send at once after a quiet time; beyond twice that: error 503."),
        .integer(
            "reads-per-connection-max", \.limits.readsPerConnectionMax, 1...100_000,
            "Unanswered reads of one connection. Above it the connection is not read for a while."),
    ]

    private static let sockJS: [Setting] = [
        .flag("sockjs-websocket", \.sockJSWebSocket, "Offer WebSocket sessions to SockJS clients."),
        .duration(
            "sockjs-heartbeat", \.sockJSHeartbeat, second...10 * minute,
            "Silence after which a SockJS client gets a heartbeat. Keep it below idle-timeout."),
        .duration(
            "sockjs-patience", \.sockJSPatience, second...5 * minute,
            "How long a SockJS session waits for its client's next request."),
        .integer(
            "sockjs-sessions-max", \.limits.sockJSSessionsMax, 1...largest,
            "SockJS sessions without a socket of their own. A further one: 503."),
        .bytes(
            "sockjs-response-bytes", \.limits.sockJSResponseBytes, 4 * kib...64 * mib,
            "Bytes after which a streaming SockJS response ends and the client requests the next."),
        .flag(
            "sockjs-cookie", \.sockJSCookie,
            "Set the cookie JSESSIONID, by which some load balancers distinguish SockJS sessions."),
        .text(
            "sockjs-script", \.sockJSScript,
            "SockJS client for the iframe page of old browsers: auto serves Debian's node-sockjs-client if it is "
                + "installed; otherwise an address, or none."
        ),
    ]

    private static let user: [Setting] = [
        .integer(
            "channels-per-user-max", \.limits.channelsPerUserMax, 1...largest,
            "Channels of one user on all connections. A further init: code 500."),
        .integer(
            "changes-per-user-max", \.limits.changesPerUserMax, 1...10 * largest,
            "Changes of one user that await their commit. Above it the user's connections are not read for a while."
        ),
        .bytes(
            "change-bytes-per-user-max", \.limits.changeBytesPerUserMax, 64 * kib...16 * gib,
            "Memory of one user's changes that await their commit. From it on the user's connections are not read for a "
                + "while; at twice as much 503, or close code 1013."),
        .integer(
            "changes-per-user-turn", \.limits.changesPerUserTurn, 1...100_000,
            "Changes of one user decided before the next user's turn; more while the disk is slower."),
        .integer(
            "reads-per-user-max", \.limits.readsPerUserMax, 1...largest,
            "Unanswered reads of one user. Above it the user's connections are not read for a while."
        ),
        .bytes(
            "pending-bytes-per-user-max", \.limits.pendingBytesPerUserMax, mib...16 * gib,
            "Bytes queued for all connections of one user. Above it: close code 1013 for those behind."),
        .bytes(
            "gathered-bytes-per-user-max", \.limits.gatheredBytesPerUserMax, mib...16 * gib,
            "Bytes of unfinished messages of one user, and of all unauthenticated connections. Above it: 503, or close "
                + "code 1013."),
        .integer(
            "turn-microseconds-per-user", \.limits.turnMicrosecondsPerUser, 10...largest,
            "Time of a network loop turn for one user, a quarter for all unauthenticated connections; the rest waits."),
        .integer(
            "thread-percent-per-user", \.limits.threadPercentPerUser, 1...100,
            "Share of a thread's time for one user, or for all unauthenticated connections, while others want it; "
                + "above it: throttled."),
        .integer(
            "costly-microseconds", \.limits.costlyMicroseconds, 100...10 * largest,
            "Processor time from which work is costly; a user that sends more of it within a minute is throttled."),
        .integer(
            "costly-rest-factor", \.limits.costlyThrottleFactor, 0...10_000,
            "How long a user is throttled after costly work, as a multiple of its cost."),
    ]

    private static let bucket: [Setting] = [
        .integer(
            "buckets-per-user-max", \.limits.bucketsPerUserMax, 1...largest,
            "Buckets of one user. A further one: code 500."),
        .integer(
            "inbox-nodes-max", \.limits.inboxNodesMax, 1...largest / 10,
            "Nodes directly in the inbox of a tree that other accounts have sent. A further one: code 413."),
        .integer(
            "inbox-nodes-per-sender-max", \.limits.inboxNodesPerSenderMax, 1...largest / 10,
            "Of these, nodes that one account has sent. A further one: code 413."),
        .integer(
            "messages-per-minute-max", \.limits.messagesPerMinuteMax, 1...largest,
            "Nodes that one account sends into one inbox in a minute. A further one: code 413."),
        .integer(
            "subscribers-per-bucket-max", \.limits.subscribersPerBucketMax, 1...largest,
            "Channels on one bucket. A further init: code 500."),
        .bytes(
            "tail-bytes-max", \.limits.tailBytesMax, 0...gib,
            "Encoded changes of one bucket kept in memory. An older cv is answered from disk."),
        .integer(
            "tail-changes-max", \.limits.tailChangesMax, 0...largest,
            "Changes of one bucket kept in memory. An older cv is answered from disk."),
        .bytes(
            "tail-bytes-total-max", \.limits.tailBytesTotalMax, 0...1_024 * gib,
            "Encoded changes of all buckets kept in memory."),
        .bytes(
            "catch-up-page-bytes", \.limits.catchUpPageBytes, 64 * kib...64 * mib,
            "Largest c: message of a catch-up; a longer one is split into several messages."),
        .integer(
            "catch-up-page-changes", \.limits.catchUpPageChanges, 1...largest,
            "Most changes of one c: message of a catch-up."),
        .integer(
            "changes-waiters-max", \.limits.changesWaitersMax, 0...largest,
            "HTTP requests that wait for changes. A further one: 503."),
        .duration(
            "changes-wait", \.limits.changesWait, 0...10 * minute,
            "How long an HTTP request waits for changes before it is answered without changes; 0 does not wait."),
    ]

    private static let queue: [Setting] = [
        .integer(
            "changes-queued-max", \.limits.changesQueuedMax, 1...10 * largest,
            "Changes of all clients that await their commit. Above it: error 503."),
        .bytes(
            "change-bytes-queued-max", \.limits.changeBytesQueuedMax, mib...16 * gib,
            "Bytes of the changes that await their commit. Above it: error 503."),
        .integer(
            "queue-high-water-percent", \.limits.queueHighWaterPercent, 1...100,
            "Share of the two bounds above from which on senders are not read for a while."),
        .integer(
            "reads-queued-max", \.limits.readsQueuedMax, 1...10 * largest,
            "Unanswered reads of all connections. Above it connections that send reads are not read; at twice: close "
                + "1013."
        ),
        .integer(
            "commit-changes-max", \.limits.commitChangesMax, 1...100_000,
            "Changes of one commit; more wait for the next."),
        .integer(
            "inline-commit-microseconds", \.limits.inlineCommitMicroseconds, 0...largest,
            "Mean time of commits up to which the network loop commits lone changes itself; 0 disables this."),
        .bytes(
            "object-cache-bytes", \.limits.objectCacheBytes, mib...1_024 * gib,
            "Objects that are being edited, kept parsed in memory. Others are read for their next change."),
        .bytes(
            "object-cache-bytes-per-user", \.limits.objectCacheBytesPerUser, mib...1_024 * gib,
            "Parsed objects of one user kept in memory."),
        .bytes(
            "bucket-cache-bytes", \.limits.bucketCacheBytes, mib...1_024 * gib,
            "Buckets that are being written to, kept in memory: 40 bytes for each of their newest changes."),
        .bytes(
            "page-cache-bytes", \.limits.pageCacheBytes, mib...64 * gib,
            "Pages of the database cached by the writer; each reader, and maintenance twice, caches a quarter of it."),
        .bytes(
            "change-id-cache-bytes", \.limits.changeIDCacheBytes, mib...64 * gib,
            "Archived ccids kept in memory for buckets that sent one lately. Others are read when they are requested."),
        .bytes(
            "segment-cache-bytes", \.limits.segmentCacheBytes, mib...64 * gib,
            "Segments (bodies for index pages) kept in memory for all readers."),
        .integer(
            "late-heads-max", \.limits.writeBehindHeadsMax, 64...100_000,
            "Changes whose objects' heads (300 bytes each) stay in memory before they go into their table; half as "
                + "many more may wait. More make many writers cheaper, and a start soon after a change longer."
        ),
        .integer(
            "walk-objects-max", \.limits.scanObjectsMax, 1_000...1_000 * largest,
            "Objects in all index scans that are kept in memory, 60 bytes each. Other scans are made again for the next page."
        ),
        .integer(
            "catch-up-positions-max", \.limits.catchUpPositionsMax, 1_000...1_000 * largest,
            "Changes of all catch-ups from disk kept in memory, 8 bytes each. Others are looked up again."),
        .bytes(
            "index-cache-bytes", \.limits.indexCacheBytes, 0...1_024 * gib,
            "Index pages and lists of children cached in their sent form, for the next client of an unchanged bucket."),
        .bytes(
            "log-reserved-bytes", \.limits.logReservedBytes, 0...gib,
            "Initial size of the database's write-ahead log, so that commits need not extend it."),
    ]

    private static let day: Int64 = 86_400_000

    private static let retention: [Setting] = [
        .duration(
            "log-age-min", \.retention.logAge, second...3_650 * day,
            "Changes stay in a bucket's log at least this long. An older cv is answered cv:?, an older source version "
                + "405."
        ),
        .integer(
            "log-changes-min", \.retention.logChangesMin, 100...100 * largest,
            "Newest changes of a bucket that stay in its log whatever their age."),
        .integer(
            "versions-newest", \.retention.newestCount, 1...largest,
            "Newest versions of an object that stay readable."),
        .integer(
            "versions-sparse", \.retention.sparseCount, 0...largest,
            "Further versions that stay readable, one in ten."),
        .duration(
            "change-id-age-min", \.retention.changeIDAge, minute...3_650 * day,
            "A change sent again is recognised by its ccid at least this long after its row left the log."),
        .duration(
            "check-interval", \.checkInterval, 0...365 * day,
            "Time between two checks of the database file while it is served (SQLite's quick_check); 0 disables it."),
    ]

    private static let blobs: [Setting] = [
        .bytes(
            "blob-user-max", \.limits.blobUserMax, 0...kib * kib * gib,
            "Bytes of one user's blobs in one app, open uploads included. Above it: 413; 0B accepts no blobs."),
        .bytes(
            "blob-app-max", \.limits.blobAppMax, 0...kib * kib * kib * gib,
            "Bytes of the blobs of all users of one app, open uploads included. Above it: 413."),
        .integer(
            "blob-uploads-max", \.limits.blobUploadsMax, 1...100_000,
            "Open uploads of one user in one app. A further one: 413."),
        .integer(
            "blob-transfers-max", \.limits.blobTransfersMax, 1...10_000,
            "Requests about blobs in progress; each may hold an open file and 256 KiB. A further one: 503."),
        .integer(
            "blob-transfers-per-user-max", \.limits.blobTransfersPerUserMax, 1...10_000,
            "Requests about blobs of one user in progress. A further one: 503."),
    ]

    /// The settings as flags of a command.
    /// - Parameter names: only these; nil for all.
    public static func options(_ names: Set<String>? = nil) -> [Option] {
        all.filter { (setting: Setting) in names?.contains(setting.name) ?? true }.map { (setting: Setting) in
            let completion: Completion
            switch setting.kind {
            case .choice(let words): completion = .oneOf(words)
            case .flag: completion = .oneOf(["on", "off"])
            case .text: completion = .folder
            case .file: completion = .file
            default: completion = .nothing
            }
            return .value(
                setting.name, setting.name == "data" ? "DIR" : setting.valueName, setting.summary.withoutFullStop,
                defaultText: setting.defaultText, completion: completion)
        }
    }
}

extension String {
    fileprivate var withoutFullStop: String { hasSuffix(".") ? String(dropLast()) : self }
}
