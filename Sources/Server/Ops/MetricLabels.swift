extension Metrics {
    /// How a TLS handshake went.
    public enum Handshake: String, MetricLabel {
        /// With a signature of our key.
        case full
        /// The client showed a ticket of an earlier session.
        case resumed
        /// It ended before it was done: no version or cipher in common, or the client did not like the certificate.
        case failed
        /// It was not done within the request timeout.
        case timeout
        /// The client did not speak TLS.
        case plain
    }

    /// What a trusted proxy's connection began with.
    public enum Preface: String, MetricLabel {
        case taken
        /// Nothing of the kind, or broken.
        case refused
    }

    /// How it went to read certificate and key again.
    public enum Reload: String, MetricLabel {
        case done
        /// They cannot be used; the old ones are in force.
        case failed
    }

    /// Why a connection ended.
    public enum CloseReason: String, MetricLabel {
        /// The other side closed it.
        case client
        /// Silent for longer than the idle timeout.
        case idle
        /// Its queue was full.
        case slowReader = "slow_reader"
        /// It broke the WebSocket or HTTP rules.
        case protocolError = "protocol_error"
        /// It met a limit.
        case limit
        /// The server is going down.
        case shutdown
        /// The answer to a plain HTTP request was complete.
        case done
        /// The socket failed.
        case failed
    }

    /// What an HTTP request asked for.
    public enum Route: String, MetricLabel {
        case websocket
        case live
        case ready
        case metrics
        /// What apps of partners ask: registration, keys.
        case partner
        /// The data API.
        case rest
        /// Its description.
        case openAPI = "openapi"
        /// The newest versions of client programs.
        case version
        /// Below `/sock/1/APP`, raw WebSockets left out.
        case sockjs
        /// Built-in accounts: making, logging in, changing, ending.
        case account
        /// The page at `/` and its parts.
        case page
        case other
    }

    /// The status of an answer of the data API.
    public enum RESTStatus: String, MetricLabel {
        case ok = "200"
        case noContent = "204"
        case notModified = "304"
        case badRequest = "400"
        case unauthorized = "401"
        case forbidden = "403"
        case notFound = "404"
        case methodNotAllowed = "405"
        case conflict = "409"
        case preconditionFailed = "412"
        case tooLarge = "413"
        case serverError = "500"
        case unavailable = "503"

        init(status: Int) { self = Self(rawValue: String(status)) ?? .serverError }
    }

    /// How a SockJS session began.
    public enum SockJSTransportLabel: String, MetricLabel {
        case websocket
        case xhr
        case xhrStreaming = "xhr_streaming"
        case eventsource
        case htmlfile
        case jsonp
    }

    /// How a partner's token was judged.
    public enum TokenVerdict: String, MetricLabel {
        case good
        /// Something is wrong with it or with who showed it: 403.
        case denied
        /// Nothing but its time: 401.
        case expired
    }

    /// How the proof of an account was judged.
    public enum LoginVerdict: String, MetricLabel {
        case good
        /// Another password or key, or no such user.
        case wrong
    }

    /// What became of a message to a user.
    public enum MailOutcome: String, MetricLabel {
        /// Handed to whoever sends it on.
        case sent
        case failed
    }

    /// How a try ended to hand a message over to the mail server.
    public enum MailDelivery: String, MetricLabel {
        case taken
        /// The server will not take it: it was set aside.
        case refused
        /// The server does not want it now.
        case deferred
        /// The server was not reached, or would take no message.
        case unreachable
        /// The file is no message of ours: it was set aside.
        case unreadable
    }

    /// The status of an HTTP request that was refused.
    public enum HTTPFault: String, MetricLabel {
        case badRequest = "400"
        case notFound = "404"
        case methodNotAllowed = "405"
        case timeout = "408"
        case tooLarge = "413"
        case targetTooLong = "414"
        case expectationFailed = "417"
        case upgradeRequired = "426"
        case headTooLarge = "431"
        case notImplemented = "501"
        case unavailable = "503"
        case versionNotSupported = "505"
    }

    /// The close code of a WebSocket connection that we ended (RFC 6455, 7.4.1).
    public enum CloseCode: String, MetricLabel {
        case goingAway = "1001"
        case protocolError = "1002"
        case unsupportedData = "1003"
        case invalidPayload = "1007"
        case policy = "1008"
        case tooBig = "1009"
        case internalError = "1011"
        case tryAgainLater = "1013"
    }

    /// The command of a client's message.
    public enum Command: String, MetricLabel {
        case heartbeat = "h"
        case initialize = "init"
        case index = "i"
        case entity = "e"
        case changesSince = "cv"
        case change = "c"
        case remoteIndex = "index"
        case remoteLog = "log"
        case removed
        case unknown
    }

    /// How an `init` was answered.
    public enum Authorization: String, MetricLabel {
        case authorized
        /// The token is not good: 401.
        case refused
        /// Anything else: 500.
        case failed
        /// Authorized before; its token has ended, or was signed out or disabled.
        case ended
    }

    /// Where the answer to `cv` came from.
    public enum CatchUp: String, MetricLabel {
        /// Nothing had happened since.
        case current
        /// From the tail kept in memory.
        case memory
        /// From the log on disk.
        case disk
        /// `cv:?`: unknown, forgotten, or of another life of the data.
        case unknown
    }

    /// Something that is kept in memory up to a bound, to be made or read anew when it is wanted again.
    public enum CacheName: String, MetricLabel {
        case objects
        case buckets
        /// The newest changes of all buckets.
        case tails
        case indexPages = "index_pages"
        case segments
        case walks
        /// What is left of catch-ups from disk.
        case catchUps = "catch_ups"
        case changeIDs = "change_ids"
    }

    /// A limit that was met. The settings carry the same names.
    public enum LimitName: String, MetricLabel {
        case objectBytes = "object_bytes"
        case frameBytes = "frame_bytes"
        case channels
        case subscribers
        case buckets
        case pendingBytes = "pending_bytes"
        case changeRate = "change_rate"
        case messageRate = "message_rate"
        case connections
        case headBytes = "head_bytes"
        case queue
        /// So many changes of all clients await their commit that a sender is read no further for a while.
        case queueHighWater = "queue_high_water"
        /// So many reads of a connection await their answer that it is read no further for a while.
        case connectionReads = "connection_reads"
        /// The same of all connections: who asks next is read no further for a while.
        case queuedReads = "queued_reads"
        /// Too many channels of one user.
        case userChannels = "user_channels"
        /// Too many changes of one user, or bytes of them, await their outcome.
        case userChanges = "user_changes"
        /// Too many reads of one user await their answer.
        case userReads = "user_reads"
        /// Too much waits to be read by one user.
        case userPendingBytes = "user_pending_bytes"
        /// Too many bytes of unfinished messages of one user, of strangers, or in all.
        case gatheredBytes = "gathered_bytes"
        /// A user, or the strangers, had their share of a turn of the loop.
        case turn
        /// A user, or the strangers, took more than their part of the loop's time and rest.
        case loopShare = "loop_share"
        /// A user took more than its part of the time of the thread that decides changes, and rests.
        case shardShare = "shard_share"
        /// An object of a user was forgotten because the user had more of them in memory than one may.
        case userObjects = "user_objects"
        /// A message cost the loop much.
        case costlyMessages = "costly_messages"
        /// A change cost the shard much.
        case costlyChanges = "costly_changes"
        /// Too many requests of partners' apps wait.
        case accessQueue = "access_queue"
        /// Too many SockJS sessions without a socket.
        case sockJSSessions = "sockjs_sessions"
        /// A SockJS client sent more before its last messages were taken.
        case sockJSSends = "sockjs_sends"
        /// Too many failed tokens or registrations in a minute.
        case attempts
        /// Too many HTTP requests wait for changes.
        case waiters
        /// The head of a request was not there in time.
        case headTime = "head_time"
        /// A body came too slowly.
        case bodyPace = "body_pace"
        /// A WebSocket message came too slowly.
        case messagePace = "message_pace"
        /// A response was read too slowly.
        case readPace = "read_pace"
        /// A TLS handshake was not done in time.
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
        /// Too many questions from one address how to stretch a password.
        case prelogins
        /// Too many new accounts of one app.
        case registrations
        /// Too many requests about pairings from one address, or pairings at one time.
        case pairings
        /// A user has too many tokens: the oldest went.
        case userTokens = "user_tokens"
    }
}
