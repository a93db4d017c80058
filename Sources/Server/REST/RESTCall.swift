import ThicketProtocol

/// One request of the data API, checked as far as that needs no look at the store.
public struct RESTCall: Sendable {
    /// What is wanted.
    public enum Operation: Sendable {
        /// The object as it is now, or as it was at a version, by the terms of the request.
        case object(EntityKey, Version?, ReadTerms)
        /// A page of the index.
        case index(IndexRequest)
        /// A change of one object; answered when it is on disk.
        case write(ChangeRequest, ChangeTerms, wantsObject: Bool)
        /// Changes as sockets send them; answered when all of them are decided and on disk.
        case submit([ChangeRequest])
        /// Changes since a cv, or from now on; waits while there are none.
        case changes(since: String?)
        /// The changes of all users, for administrators; waits while there are none.
        case all(AllQuery)
        /// The names of the user's buckets.
        case buckets
        /// Whose token that is.
        case user
        /// A `write` or a `submit` whose body is so large that a reader's thread is to read it.
        case unread(RESTBody)
    }

    public let app: AppID
    /// nil for what is asked of a user.
    public let bucket: BucketName?
    /// As it was sent; not looked up yet.
    public let token: String
    /// Whom an administrator's key acts for; users' own tokens are theirs whatever stands here.
    public let user: UserID?
    /// Of the device that shows a partner's token.
    public let deviceID: String?
    /// Echoed with the changes that this request makes (wire contract, 8.2).
    public let clientID: ClientID
    public internal(set) var operation: Operation
    /// Bytes of the request's body.
    public let bytes: Int
    /// Fields that the answer carries whatever it is, such as those of CORS.
    public var answerFields: [HTTPField] = []
}

/// Which versions of an object a client wants to be sent (RFC 9110, 13.1).
public struct ReadTerms: Sendable, Equatable {
    /// Only these: `If-Match`; nil: whichever there is.
    public var wanted: VersionList?
    /// Not these, which it has: `If-None-Match`.
    public var known: VersionList = .these([])

    public init() {}
}

/// Versions, as a condition lists them.
public enum VersionList: Sendable, Equatable {
    /// Whichever it is: `*`.
    case any
    case these([Version])

    func contains(_ version: Version) -> Bool {
        switch self {
        case .any: true
        case .these(let versions): versions.contains(version)
        }
    }
}

/// What the author of a change asks beyond what the change says; only HTTP has words for it.
public struct ChangeTerms: Sendable, Equatable {
    /// What must hold of the object for the change to be made.
    public enum Condition: Sendable, Equatable {
        /// It is there, at any version: `If-Match: *`.
        case exists
        /// It is not there: `If-None-Match: *`.
        case absent
        /// It is there at this very version: `If-Match: "7"`.
        case version(Version)
    }

    /// `d` holds members to set, and the others stay.
    public var mergesObject: Bool = false
    /// A source version that is not kept is an error, even if the whole object was sent.
    public var needsSource: Bool = false
    public var condition: Condition?

    public init(mergesObject: Bool = false, needsSource: Bool = false, condition: Condition? = nil) {
        (self.mergesObject, self.needsSource, self.condition) = (mergesObject, needsSource, condition)
    }
}

extension ChangeTerms.Condition {
    /// - Parameter state: nil for an object that never was.
    /// - Throws: 405 when it does not hold.
    func check(_ state: ObjectState?) throws(ChangeRejection) {
        let version = state.flatMap { $0.isDeleted ? nil : $0.version }
        switch self {
        case .exists where version != nil: return
        case .absent where version == nil: return
        case .version(let wanted) where version == wanted: return
        default: throw ChangeRejection(.badVersion, "the condition does not hold of version \(version ?? 0)")
        }
    }
}

/// A request under way in the hub; belongs to its session. Lives from the request to its answer.
final class RESTExchange {
    var call: RESTCall
    /// Of the session's one channel.
    let life: UInt64
    /// Results of `submit` so far, in the order in which they came.
    var results = [[UInt8]]()
    /// Counted among the requests that wait for changes.
    var isWaiting = false
    /// How far a request for all users' changes has come.
    var all: AllProgress?
    /// When it has waited long enough, nanoseconds.
    var deadline = Int64.max

    init(_ call: RESTCall, life: UInt64) { (self.call, self.life) = (call, life) }
}

extension RESTCall {
    /// What goes with its change.
    var terms: ChangeTerms? {
        if case .write(_, let terms, _) = operation { return terms }
        return nil
    }
}
