public import ThicketKeyLog

/// Why there are no keys of a user. Holds no secret, and is safe to log.
public enum PeopleError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The user's old key was replaced without its signature: nothing is sealed to the new one until the user of this
    /// device has confirmed it (`KeyBook.confirm`).
    case needsConfirmation(old: PublicKeys, new: PublicKeys)
    /// The log has committed to something that breaks its rules. Evidence is kept (`KeyBook.alarms`).
    case alarm(KeyLogAlarm)
    /// The log has no keys of the user, or no account has the name.
    case absent
    /// The answer proves nothing; it changed nothing and may be asked for again.
    case refused(KeyLogError)
    /// The server does not answer, and this device has no keys of the user from before.
    case offline(ClientError)
    /// The server refused the request, or the account's own keys could not be read.
    case server(ClientError)
    /// The state on this device cannot be read or written.
    case store(ClientError)
    /// The session has no keys of its account.
    case noKeys

    /// A stable code.
    public var code: String {
        switch self {
        case .needsConfirmation: "needs-confirmation"
        case .alarm: "alarm"
        case .absent: "absent"
        case .refused(let error) where error.kind == .notWitnessed: "not-witnessed"
        case .refused, .server: "refused"
        case .offline: "offline"
        case .store: "store"
        case .noKeys: "no-keys"
        }
    }

    /// A text for the user.
    public var description: String {
        switch self {
        case .needsConfirmation(_, let new):
            "the keys of \(Self.shown(new.user)) were replaced without a signature of the key before: compare the safety number "
                + "with that person, and confirm the new keys"
        case .alarm(let alarm): alarm.text
        case .absent: "the key log has no keys of this user"
        case .refused(let error): error.description
        case .offline(let error), .server(let error), .store(let error): error.detail
        case .noKeys: "the session has no keys of its account"
        }
    }

    /// A handle of the log is a hash, which says nothing to a person.
    static func shown(_ user: String) -> String {
        user.utf8.starts(with: KeyLogHandle.prefix.utf8) ? "this name" : user
    }
}

extension KeyLogAlarm {
    /// A stable code.
    public var code: String {
        switch self {
        case .fork: "fork"
        case .replaced: "replaced"
        case .removed: "removed"
        case .badEntry: "bad-entry"
        case .foreignKey: "foreign-key"
        }
    }

    /// A text for the user.
    public var text: String {
        switch self {
        case .fork(let fork):
            "the server shows two key logs: heads of \(fork.older.size) and \(fork.newer.size) leaves are not of one log"
        case .replaced(let user): "the key log has other entries of \(PeopleError.shown(user)) than before"
        case .removed(let user): "the key log had keys of \(PeopleError.shown(user)), and has none any more"
        case .badEntry(let user, let error):
            "the key log has an entry of \(PeopleError.shown(user)) that its rules forbid: \(error.description)"
        case .foreignKey(let entry):
            "the key log has a key of \(PeopleError.shown(entry.user)) that no device of this account has made (entry \(entry.sequence))"
        }
    }
}

/// What a key book reports while it works.
public enum PeopleEvent: Sendable, Equatable {
    /// The server or its log is dishonest or broken. Evidence is kept.
    case alarm(KeyLogAlarm)
    /// A user has changed its keys, signed by the old key. Nothing is to be done; apps show it in the conversation.
    case rotated(from: PublicKeys, to: PublicKeys)
    /// The account's own entries were missing in the log and were appended.
    case appended(Int)
    /// The account's name had another key in the log until now, of an earlier account with this name; if there was
    /// none, the server has shown that key to those that looked the name up.
    case nameHeld
    /// The log's key was seen for the first time, or the old one has signed a new one. 32 bytes.
    case logKey([UInt8])
}

/// Bounds of a key book.
public enum PeopleLimits {
    /// Most contacts.
    public static let contactsMax = 10_000
    /// Most alarms that are kept; later ones are reported and not kept.
    public static let alarmsMax = 64
    /// Most heads of other clients that wait for the server's proof; the oldest is dropped for a new one.
    public static let headsMax = 64
    /// Most users whose latest answer is kept, as evidence against a later one.
    public static let answersMax = 256
    /// Longest answer that is kept, in bytes.
    public static let answerBytesMax = 16 << 10
    /// Most witnesses that can be required.
    public static let witnessesMax = 8
    /// Most rotations of the log's key that are followed at once.
    public static let rotationsMax = 1_000
    /// Look-ups for one question, when another program has moved the newest head meanwhile.
    static let attemptsMax = 4
    /// Longest state in bytes.
    static let stateBytesMax = 32 << 20
    /// Most events that wait for one reader.
    static let eventsMax = 256
}
