import ThicketProtocol
import ThicketTreeShape

/// One request of the data API, checked as far as that needs no access to the store.
public struct RESTCall: Sendable {
    /// The requested operation.
    public enum Operation: Sendable {
        /// The object at its newest or a given version, subject to the request's conditions.
        case object(EntityKey, Version?, ReadTerms)
        /// A page of the index.
        case index(IndexRequest)
        /// A change of one object; answered when it is on disk.
        case write(ChangeRequest, ChangeTerms, wantsObject: Bool)
        /// Changes in the form that sockets send; answered when all of them are decided and on disk.
        case submit([ChangeRequest])
        /// Changes since a cv, or from now on; waits until changes exist.
        case changes(since: String?)
        /// The changes of all users, for administrators; waits until changes exist.
        case all(AllQuery)
        /// The names of the user's buckets.
        case buckets
        /// The user to whom the token belongs.
        case user
        /// Changes of a tree, made together or not at all; answered when they are on disk.
        case batch(TreeBatchRequest)
        /// The policy of the user's inbox.
        case inboxPolicy
        /// Replaces the policy of the user's inbox; answered when it is on disk.
        case setInboxPolicy(InboxPolicy)
        /// Children of nodes of a tree.
        case children(ChildrenQuery)
        /// What the user's tree takes in the store.
        case usage
        /// Something about a blob or an upload; done by the blob workers.
        case blob(BlobCall)
        /// A `write`, a `submit`, a `batch` or a policy whose body is so large that a reader's thread must parse it.
        case unread(RESTBody)
    }

    /// The app in the request's path.
    public let app: AppID
    /// nil for requests about a user.
    public let bucket: BucketName?
    /// As sent; not verified yet.
    public let token: String
    /// The user for whom an administrator's key acts; ignored with a user's own token.
    public let user: UserID?
    /// The id of the device that presents a partner's token.
    public let deviceID: String?
    /// Echoed with the changes that this request makes (wire contract, 8.2).
    public let clientID: ClientID
    /// What to do; a parsed body replaces `unread`.
    public internal(set) var operation: Operation
    /// Bytes of the request's body.
    public let bytes: Int
    /// Fields that every answer to the request carries, such as those of CORS.
    public var answerFields: [HTTPField] = []
    /// The owner in the path of a tree's call; nil for other calls.
    public var owner: UserID?
    /// The shared branch in the path; nil for other calls.
    public var branch: BranchName?
}

/// The versions of an object that a client wants to receive (RFC 9110, 13.1).
public struct ReadTerms: Sendable, Equatable {
    /// Only these: `If-Match`; nil: any version.
    public var wanted: VersionList?
    /// Versions that the client has, which are not sent again: `If-None-Match`.
    public var known: VersionList = .these([])

    /// Any version, none of them known.
    public init() {}
}

/// Versions as listed in a condition.
public enum VersionList: Sendable, Equatable {
    /// Any version: `*`.
    case any
    /// Only the listed versions.
    case these([Version])

    func contains(_ version: Version) -> Bool {
        switch self {
        case .any: true
        case .these(let versions): versions.contains(version)
        }
    }
}

/// What the author of a change requests beyond the change itself; only HTTP can express it.
public struct ChangeTerms: Sendable, Equatable {
    /// What must be true of the object for the change to be made.
    public enum Condition: Sendable, Equatable {
        /// The object exists, at any version: `If-Match: *`.
        case exists
        /// The object does not exist: `If-None-Match: *`.
        case absent
        /// The object exists at exactly this version: `If-Match: "7"`.
        case version(Version)
    }

    /// `d` holds members to set; other members are kept.
    public var mergesObject = false
    /// A source version that is no longer kept is an error, even if the whole object was sent.
    public var needsSource = false
    /// The condition of the change; nil: none.
    public var condition: Condition?

    /// Without arguments: no request beyond the change.
    public init(mergesObject: Bool = false, needsSource: Bool = false, condition: Condition? = nil) {
        (self.mergesObject, self.needsSource, self.condition) = (mergesObject, needsSource, condition)
    }
}

extension ChangeTerms.Condition {
    /// - Parameter state: nil for an object that never existed.
    /// - Throws: 405 when the condition is false.
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

/// A request in progress in the hub; owned by its session. Its lifetime is from the request to its answer.
final class RESTExchange {
    var call: RESTCall
    /// The generation of the session's one channel.
    let generation: UInt64
    /// Results of `submit` so far, in order of arrival.
    var results = [[UInt8]]()
    /// Counted among the requests that wait for changes.
    var isWaiting = false
    /// Progress of a request for the changes of all users.
    var all: AllProgress?
    /// When its wait ends, in nanoseconds.
    var deadline = Int64.max

    init(_ call: RESTCall, generation: UInt64) { (self.call, self.generation) = (call, generation) }
}

extension RESTCall {
    /// Whether the call makes the tree if the user has none, as an `init` with `"mode":"tree"` does.
    var makesTree: Bool {
        guard branch == nil else { return false }
        switch operation {
        case .batch, .setInboxPolicy: return true
        case .unread(let body):
            switch body.content {
            case .batch, .policy, .copies: return true
            case .object, .changes: return false
            }
        case .object, .index, .write, .submit, .changes, .all, .buckets, .user, .children, .usage, .blob, .inboxPolicy:
            return false
        }
    }

    /// The terms of its change.
    var terms: ChangeTerms? {
        if case .write(_, let terms, _) = operation { return terms }
        return nil
    }
}
