public import ThicketProtocol
public import ThicketTreeShape

/// What a token of a guest may do beside its user id (decision 0067).
public struct GuestGrant: Hashable, Sendable {
    /// The account that has made the guest.
    public let owner: UserID
    /// The root of the only branch that it uses.
    public let root: NodeID
    /// Bytes of blobs that it may have at one time.
    public let bytesMax: Int64

    /// The rights of a guest.
    public init(owner: UserID, root: NodeID, bytesMax: Int64) {
        (self.owner, self.root, self.bytesMax) = (owner, root, bytesMax)
    }
}

/// What a guest has left, as its row says.
public struct GuestBounds: Hashable, Sendable {
    /// The account that has made the guest.
    public let owner: UserID
    /// The root of the branch that it uses.
    public let root: NodeID
    /// When it ends, milliseconds since 1970.
    public let expires: Int64
    /// Deposits that it may still make.
    public let depositsLeft: Int64
    /// Bytes that it may still write, with attachments.
    public let bytesLeft: Int64

    /// The bounds of a guest.
    public init(owner: UserID, root: NodeID, expires: Int64, depositsLeft: Int64, bytesLeft: Int64) {
        (self.owner, self.root, self.expires) = (owner, root, expires)
        (self.depositsLeft, self.bytesLeft) = (depositsLeft, bytesLeft)
    }
}

/// What one batch of a guest writes; added to the guest's row in the transaction of the batch.
public struct GuestUse: Hashable, Sendable {
    /// The app.
    public let app: AppID
    /// The guest.
    public let user: UserID
    /// New nodes directly in the branch.
    public var deposits: Int64 = 0
    /// Bytes of records and blobs, attachments included.
    public var bytes: Int64 = 0

    /// Nothing, by a guest.
    public init(app: AppID, user: UserID) { (self.app, self.user) = (app, user) }
}

/// A guest that has ended and whose account is still there.
public struct EndedGuest: Hashable, Sendable {
    /// The app.
    public let app: AppID
    /// The guest.
    public let user: UserID

    /// A guest that has ended.
    public init(app: AppID, user: UserID) { (self.app, self.user) = (app, user) }
}

extension StoreReader {
    /// The bounds of a guest; nil when there is none of this id. By default: a store without accounts has none.
    public func guest(_ user: UserID, in app: AppID) throws(StoreError) -> GuestBounds? { nil }

    /// Guests that have ended by `time` (milliseconds since 1970), at most `limit`. By default: a store without
    /// accounts has none.
    public func endedGuests(by time: Int64, limit: Int) throws(StoreError) -> [EndedGuest] { [] }
}
