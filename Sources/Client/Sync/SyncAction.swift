package import ThicketProtocol

/// What the machine wants done, in this order. Everything on which an action depends is already in the store.
package enum SyncAction: Sendable, Equatable {
    /// Make a connection; report `opened` or `closed`.
    case connect
    /// End the connection; `closed` need not be reported.
    case disconnect
    /// Send one text message.
    case send([UInt8])
    /// Deliver an event to the bucket's readers.
    case event(BucketName, BucketEvent)
    /// The session's status has changed.
    case status(SyncStatus)
    /// The answer to `fetch`: an old version of an object.
    case fetched(EntityAddress, Version, FetchedVersion)
    /// The answer to `askRemovals`; nil: the server does not know the request.
    case removals(BucketName, RemovalList?)
    /// The server no longer accepts the token of this number; only for a session that renews its token. Reported once
    /// per number.
    case tokenEnded(Int)
    /// The server has accepted the token of this number; reported once per number.
    case tokenGood(Int)
}

/// An old version of an object from the server.
package struct FetchedVersion: Sendable, Equatable {
    /// The object as the app sees it; nil when the server does not have it, or it cannot be opened.
    package let object: JSONObject?
    /// The object as stored by the server; nil when the server does not have it. In an open bucket the same as
    /// `object`.
    package let stored: JSONObject?
    /// The app's key, which a sealed object contains; nil when this version does not reveal it.
    package var name: String?
}

/// The client's identity and what it connects to.
package struct SyncOptions: Sendable {
    package var app: AppID
    package var token: String
    /// Counts the tokens given to this session, so that a late report about one token is not applied to another.
    package var tokenNumber = 0
    /// The device for which the token was made, sent with it.
    package var deviceID: String?
    /// The token is renewed: its expiry is reported (`tokenEnded`), and the channel waits for a new one.
    package var renewsToken = false
    /// Sent as `library`: the server rebases changes of this library by exact positions.
    package var library = "thicket"
    package var version = "0.1.0"
    package var indexPageObjects: Int = SyncLimits.indexPageObjects
    package var changesInFlightMax: Int = SyncLimits.changesInFlightMax
    /// Timeout of a connection attempt in milliseconds, including TLS and upgrade.
    package var connectMilliseconds: Int64 = SyncLimits.connectMilliseconds
    /// Whether to connect as soon as the session is created.
    package var startsOnline = true

    package init(app: AppID, token: String) {
        self.app = app
        self.token = token
    }
}

/// Why a connection ended.
package struct LinkClosure: Sendable, Equatable {
    /// The WebSocket close code; nil when none was received.
    package var code: UInt16?
    package var detail: String
    /// The HTTP status with which the server or a proxy answered the upgrade; nil when it gave none.
    package var httpStatus: Int?
    /// The server could not prove its identity.
    package var isUntrusted: Bool
    /// Milliseconds for which the other side asked the client not to try again.
    package var retryAfter: Int64?
    package init(
        code: UInt16? = nil, detail: String, httpStatus: Int? = nil, isUntrusted: Bool = false, retryAfter: Int64? = nil
    ) {
        self.retryAfter = retryAfter
        self.isUntrusted = isUntrusted
        self.code = code
        self.detail = detail
        self.httpStatus = httpStatus
    }
}
