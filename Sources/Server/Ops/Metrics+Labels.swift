import ThicketNet
import ThicketPlatform

extension Metrics {
    /// Route of an HTTP request.
    public enum Route: String, MetricLabel {
        /// A WebSocket upgrade.
        case websocket
        /// `/health/live`.
        case live
        /// `/health/ready`.
        case ready
        /// `/metrics`.
        case metrics
        /// Requests of partners' apps: registration, keys.
        case partner
        /// The data API.
        case rest
        /// The description of the data API.
        case openAPI = "openapi"
        /// The newest versions of client programs.
        case version
        /// Below `/sock/1/APP`, raw WebSockets left out.
        case sockjs
        /// Built-in accounts: creation, login, change, end.
        case account
        /// Keys of users and the key log.
        case keyLog = "keylog"
        /// The page at `/` and its parts.
        case page
        /// Any other path.
        case other
    }

    /// Status of an answer of the data API.
    public enum RESTStatus: String, MetricLabel {
        /// 200 OK.
        case ok = "200"
        /// 204 No Content.
        case noContent = "204"
        /// 206 Partial Content.
        case partialContent = "206"
        /// 304 Not Modified.
        case notModified = "304"
        /// 400 Bad Request.
        case badRequest = "400"
        /// 401 Unauthorized.
        case unauthorized = "401"
        /// 403 Forbidden.
        case forbidden = "403"
        /// 404 Not Found.
        case notFound = "404"
        /// 405 Method Not Allowed.
        case methodNotAllowed = "405"
        /// 409 Conflict.
        case conflict = "409"
        /// 411 Length Required.
        case lengthRequired = "411"
        /// 412 Precondition Failed.
        case preconditionFailed = "412"
        /// 413 Content Too Large.
        case tooLarge = "413"
        /// 416 Range Not Satisfiable.
        case rangeNotSatisfiable = "416"
        /// 507 Insufficient Storage.
        case insufficientStorage = "507"
        /// 500 Internal Server Error, and any status not listed.
        case serverError = "500"
        /// 503 Service Unavailable.
        case unavailable = "503"

        init(status: Int) { self = Self(rawValue: String(status)) ?? .serverError }
    }

    /// The first transport of a SockJS session.
    public enum SockJSTransportLabel: String, MetricLabel {
        /// WebSocket.
        case websocket
        /// XHR long polling.
        case xhr
        /// XHR streaming.
        case xhrStreaming = "xhr_streaming"
        /// Server-sent events.
        case eventsource
        /// Streaming into a hidden iframe.
        case htmlfile
        /// JSONP polling.
        case jsonp
    }

    /// Result of checking a partner's token.
    public enum TokenVerdict: String, MetricLabel {
        /// The token is good.
        case good
        /// The token, or its use by this client, is wrong: 403.
        case denied
        /// Only its time is over: 401.
        case expired
    }

    /// Result of checking the proof of an account.
    public enum LoginVerdict: String, MetricLabel {
        /// The proof is right.
        case good
        /// Wrong password or key, or unknown user.
        case wrong
    }

    /// Outcome of creating a message to a user.
    public enum MailOutcome: String, MetricLabel {
        /// Handed over for delivery.
        case sent
        /// The message could not be written.
        case failed
    }

    /// Outcome of one attempt to deliver a message to the mail server.
    public enum MailDelivery: String, MetricLabel {
        /// The server accepted it.
        case taken
        /// The server rejected it permanently: it was set aside.
        case refused
        /// The server rejected it temporarily.
        case deferred
        /// The server was not reached, or accepts no messages.
        case unreachable
        /// The file was not written by this server: it was set aside.
        case unreadable
    }

    /// Command of a client's message.
    public enum Command: String, MetricLabel {
        /// Heartbeat.
        case heartbeat = "h"
        /// Opens a channel.
        case initialize = "init"
        /// A page of the index.
        case index = "i"
        /// One version of an object.
        case entity = "e"
        /// Changes since a position.
        case changesSince = "cv"
        /// One or more changes.
        case change = "c"
        /// The client's state, as an administrator asked for it.
        case remoteIndex = "index"
        /// A log message of the client.
        case remoteLog = "log"
        /// Removals of objects.
        case removed
        /// A message with any other command, or none.
        case unknown
    }

    /// Outcome of an `init`.
    public enum Authorization: String, MetricLabel {
        /// The channel is open.
        case authorized
        /// The token is not good: 401.
        case refused
        /// Anything else: 500.
        case failed
        /// It was authorized before; its token has ended, or was signed out or disabled.
        case ended
    }

    /// Source of the answer to `cv`.
    public enum CatchUp: String, MetricLabel {
        /// The position is the newest one.
        case current
        /// From the tail kept in memory.
        case memory
        /// From the log on disk.
        case disk
        /// `cv:?`: the position is unknown, no longer kept, or of another generation of the store.
        case unknown
    }

    /// A bounded cache: its entries can be made or read again.
    public enum CacheName: String, MetricLabel {
        /// Objects.
        case objects
        /// Buckets.
        case buckets
        /// The newest changes of all buckets.
        case tails
        /// Pages of index scans.
        case indexPages = "index_pages"
        /// Segments of the log.
        case segments
        /// Index scans.
        case scans = "walks"
        /// Remainders of catch-ups from disk.
        case catchUps = "catch_ups"
        /// Identifiers of recent changes.
        case changeIDs = "change_ids"
    }

    /// A limit that was reached. The settings have the same names.
    public enum LimitName: String, MetricLabel {
        /// Size of an object.
        case objectBytes = "object_bytes"
        /// Size of a WebSocket frame or message.
        case frameBytes = "frame_bytes"
        /// Channels of one connection.
        case channels
        /// Channels on one bucket.
        case subscribers
        /// Buckets of one user.
        case buckets
        /// Bytes queued for a slow reader.
        case pendingBytes = "pending_bytes"
        /// Changes a second of one connection.
        case changeRate = "change_rate"
        /// Messages a second of one connection.
        case messageRate = "message_rate"
        /// Connections of the server.
        case connections
        /// Size of the head of an HTTP request.
        case headBytes = "head_bytes"
        /// Changes or reads waiting in all queues together.
        case queue
        /// So many changes of all clients await their commit that a sender is not read for a while.
        case queueHighWater = "queue_high_water"
        /// So many reads of a connection await their answer that it is not read for a while.
        case connectionReads = "connection_reads"
        /// So many reads of all connections await their answer that the next one to ask is not read for a while.
        case queuedReads = "queued_reads"
        /// Too many channels of one user.
        case userChannels = "user_channels"
        /// Too many changes of one user, or bytes of them, await their outcome.
        case userChanges = "user_changes"
        /// Too many reads of one user await their answer.
        case userReads = "user_reads"
        /// Too many bytes wait to be read by one user.
        case userPendingBytes = "user_pending_bytes"
        /// Too many bytes of unfinished messages of one user, of unauthenticated connections, or in all.
        case gatheredBytes = "gathered_bytes"
        /// A user, or the unauthenticated connections, used up their share of a turn of the loop.
        case turn
        /// A user, or the unauthenticated connections, took more than their share of the loop's time and are
        /// throttled.
        case loopShare = "loop_share"
        /// A user took more than its share of the time of the thread that decides changes, and is throttled.
        case shardShare = "shard_share"
        /// An object was evicted because its user had more in memory than allowed.
        case userObjects = "user_objects"
        /// A message was costly for the loop.
        case costlyMessages = "costly_messages"
        /// A change was costly for the shard.
        case costlyChanges = "costly_changes"
        /// Too many requests about keys wait, or of one user in a minute.
        case keyLog = "key_log"
        /// Too many requests of partners' apps wait.
        case accessQueue = "access_queue"
        /// Too many SockJS sessions without a socket.
        case sockJSSessions = "sockjs_sessions"
        /// A SockJS client sent more before its previous messages were taken.
        case sockJSSends = "sockjs_sends"
        /// Too many failed tokens or registrations in a minute.
        case attempts
        /// Too many HTTP requests wait for changes.
        case waiters
        /// The head of a request was not complete in time.
        case headTime = "head_time"
        /// A body arrived too slowly.
        case bodyPace = "body_pace"
        /// A WebSocket message arrived too slowly.
        case messagePace = "message_pace"
        /// A response was read too slowly.
        case readPace = "read_pace"
        /// A TLS handshake was not complete in time.
        case handshakeTime = "handshake_time"
        /// Too many requests about accounts wait.
        case accountQueue = "account_queue"
        /// Too many unknown API keys from one address.
        case accountKeys = "account_keys"
        /// Too many bad tokens from one address.
        case accountTokens = "account_tokens"
        /// Too many failed logins from one address.
        case accountAddress = "account_address"
        /// Too many failed logins of one name.
        case accountName = "account_name"
        /// Too many requests from one address for the parameters of a password's key derivation.
        case prelogins
        /// Too many new accounts of one app.
        case registrations
        /// Too many requests about pairings from one address, or pairings at one time.
        case pairings
        /// A user has too many tokens: the oldest ended.
        case userTokens = "user_tokens"
        /// An account has as many guests as it may have.
        case guests
        /// Too many requests about blobs are in progress.
        case blobTransfers = "blob_transfers"
        /// Too many requests about blobs of one user, or parts of one upload, are in progress.
        case userBlobTransfers = "user_blob_transfers"
        /// A user would have too many bytes in blobs, or has too many open uploads.
        case blobUserBytes = "blob_user_bytes"
        /// The users of an app would have too many bytes in blobs.
        case blobAppBytes = "blob_app_bytes"
    }
}

extension Metrics.LimitName {
    /// A limit of the network loop. The names are the same.
    init(_ limit: NetLimit) {
        self =
            switch limit {
            case .bodyPace: .bodyPace
            case .headTime: .headTime
            case .connections: .connections
            case .gatheredBytes: .gatheredBytes
            case .handshakeTime: .handshakeTime
            case .headBytes: .headBytes
            case .loopShare: .loopShare
            case .messagePace: .messagePace
            case .readPace: .readPace
            case .turn: .turn
            case .userPendingBytes: .userPendingBytes
            }
    }
}
