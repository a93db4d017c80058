package import ThicketProtocol

/// What the machine wants done, in this order. Everything it rests on is already kept in the store.
package enum SyncAction: Sendable, Equatable {
    /// Make a connection; answer with `opened` or `closed`.
    case connect
    /// End the connection. No `closed` is needed after it.
    case disconnect
    /// Send one text message.
    case send([UInt8])
    /// Tell whoever listens to the bucket.
    case event(BucketName, BucketEvent)
    /// The session's status is another one.
    case status(SyncStatus)
    /// The answer to `fetch`: an old version of an object.
    case fetched(EntityAddress, Version, FetchedVersion)
    /// The answer to `askRemovals`; nil: the server does not know the question.
    case removals(BucketName, RemovalList?)
    /// The server no longer takes the token of this number; only where somebody renews it. Told once for each number.
    case tokenEnded(Int)
    /// The server has taken the token of this number; told once for each.
    case tokenGood(Int)
}

/// An old version of an object, as the server answered.
package struct FetchedVersion: Sendable, Equatable {
    /// As the app knows objects; nil when the server does not have it, or it does not open.
    package let object: JSONObject?
    /// As the server has it; nil when it does not. In an open bucket the same.
    package let stored: JSONObject?
    /// The app's key, which a sealed object holds; nil: not known from this version.
    package var name: String?
}

/// Who the client is and what it connects to.
package struct SyncOptions: Sendable {
    package var app: AppID
    package var token: String
    /// Counts the tokens that this session was given, so that what is said of one is not taken for another.
    package var tokenNumber: Int = 0
    /// The device that the token was made for, sent beside it.
    package var deviceID: String?
    /// Somebody renews the token: its end is told (`tokenEnded`) and another one waited for.
    package var renewsToken: Bool = false
    /// Sent as `library`: the server rebases changes of this library by exact positions.
    package var library: String = "thicket"
    package var version: String = "0.1.0"
    package var indexPageObjects: Int = SyncLimits.indexPageObjects
    package var changesInFlightMax: Int = SyncLimits.changesInFlightMax
    /// Milliseconds a connection attempt may take, TLS and upgrade included.
    package var connectMilliseconds: Int64 = SyncLimits.connectMilliseconds
    /// Connect as soon as the session is made.
    package var startsOnline: Bool = true

    package init(app: AppID, token: String) {
        self.app = app
        self.token = token
    }
}

/// Why a connection ended.
package struct LinkClosure: Sendable, Equatable {
    /// WebSocket close code; nil when there was none.
    package var code: UInt16?
    package var detail: String
    /// The upgrade or a proxy answered with this HTTP status.
    package var httpStatus: Int?
    /// The server could not prove who it is.
    package var isUntrusted: Bool
    /// Milliseconds for which the other side wants no attempt.
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
