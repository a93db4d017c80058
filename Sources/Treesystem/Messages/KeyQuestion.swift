package import ThicketKeyLog
package import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Keys of another account that are looked up, and verified, outside of the machine.
package struct KeyQuestion: Sendable, Hashable {
    /// The account.
    package let user: UserID
    /// The id of earlier keys, which have signed a message; nil: the newest ones, to which a message is sealed.
    package let keyID: String?

    package init(_ user: UserID, keyID: String? = nil) { (self.user, self.keyID) = (user, keyID) }
}

/// The answer to a question for keys.
package enum KeyAnswer: Sendable {
    /// Verified keys, and the newest head of the key log that is known.
    case found(PublicKeys, KeyLogHead?)
    /// No keys that can be used.
    case failed(KeyTrouble)
}

/// Why keys of another account cannot be used now.
package enum KeyTrouble: String, Sendable, Hashable {
    /// The server cannot be asked: asked again by itself.
    case offline
    /// The account has new keys that its old ones have not signed: the user must confirm them.
    case needsConfirmation = "needs-confirmation"
    /// The key log contradicts itself.
    case alarm
    /// A required witness has not confirmed the key log: asked again by itself.
    case notWitnessed = "not-witnessed"
    /// The account has no such keys.
    case absent

    /// Whether it may end without the user.
    var isPassing: Bool { self == .offline || self == .notWitnessed }

    /// A sentence for people.
    var detail: String {
        switch self {
        case .offline: "the keys of the other account cannot be looked up now"
        case .needsConfirmation: "the other account has new keys, which must be confirmed"
        case .notWitnessed: "a required witness has not confirmed the key log within the last hour"
        case .alarm: "the log of keys contradicts itself: nothing is sealed to this account"
        case .absent: "the other account has no keys"
        }
    }
}

/// What the machine knows for messages, in memory: keys of other accounts and what waits for them.
struct MessageState {
    /// The account's own keys; nil: neither sends nor opens messages.
    var identity: MessageIdentity?
    /// Whether the account's own keys are being read again, and the operations that wait for it (`KeyRenewal`).
    var isRenewing = false
    var renewals = Set<OperationID>()
    /// The account's login name, for the receivers of its messages; nil: none that statements can have.
    let name: String?
    /// The newest verified keys of accounts; nil keys ids. Until the connection ends.
    private(set) var keys = [KeyQuestion: PublicKeys]()
    /// Keys that accounts do not have. Until the connection ends.
    private(set) var absent = Set<KeyQuestion>()
    /// Questions that are being answered.
    private(set) var asked = Set<KeyQuestion>()
    /// Questions that were not answered, and when each is asked again.
    var pauses = [KeyQuestion: Int64]()
    /// Nodes that wait for keys of their author. Also in the store.
    var awaiting = [KeyQuestion: Set<NodeID>]()
    /// Messages before which others are missing, and which are not reported yet.
    var gaps = Set<NodeID>()
    /// The newest head of the key log.
    var head: KeyLogHead?

    /// Keys that are kept, and those that do not exist; with more, they are looked up again.
    static let keysMax = 1_024
    /// Questions at a time.
    static let askedMax = 16
    /// Milliseconds after which a question is asked again.
    static let pause: Int64 = 30_000

    init(_ identity: MessageIdentity?, name: String?) {
        self.identity = identity
        self.name = name.flatMap { (1...OriginStatement.nameBytesMax).contains($0.utf8.count) ? $0 : nil }
    }

    /// Whether a question may be asked now.
    func mayAsk(_ question: KeyQuestion) -> Bool {
        keys[question] == nil && !absent.contains(question) && asked.count < Self.askedMax && !asked.contains(question)
            && pauses[question] == nil
    }

    mutating func ask(_ question: KeyQuestion) { asked.insert(question) }

    mutating func answer(_ question: KeyQuestion, _ found: PublicKeys?) {
        asked.remove(question)
        guard let found else { return }
        if keys.count >= Self.keysMax { keys = [:] }
        keys[question] = found
    }

    mutating func setAbsent(_ question: KeyQuestion) {
        if absent.count >= Self.keysMax { absent = [] }
        absent.insert(question)
    }

    /// The connection is new: what could not be looked up may be found now, and keys may have changed.
    mutating func connected() {
        (keys, absent, pauses, asked) = ([:], [], [:], [])
        (isRenewing, renewals) = (false, [])
    }

    mutating func endPauses(at now: Int64) { pauses = pauses.filter { $0.value > now } }
}
