/// What a device makes of the answer to a look-up.
public enum KeyLogVerdict: Sendable, Equatable {
    /// These keys are the user's, as far as log and device know. The answer's chain was checked too: who verifies
    /// something old finds the keys of that time there.
    case verified(PublicKeys, KeyLogChange)
    /// The user has no keys in the log.
    case absent
    /// The user's old key was given up without its signature. Nothing is handed out until somebody has asked the user,
    /// compared the safety number, and said so (`KeyLogReader.confirm`).
    case needsConfirmation(old: PublicKeys, new: PublicKeys)
    /// Nothing was shown, nothing has changed: ask again.
    case refused(KeyLogError)
    /// The log has committed to something that breaks its rules. No keys are handed out.
    case alarm(KeyLogAlarm)
}

/// What is new about keys that were verified.
public enum KeyLogChange: Sendable, Equatable {
    /// Seen for the first time: the log alone vouches for them, and who wants more compares the safety number.
    case first
    /// Those that were there before.
    case same
    /// New ones, and each was signed by the one before it, down to these old ones.
    case rotated(from: PublicKeys)
}

/// What no honest server does.
public enum KeyLogAlarm: Sendable, Equatable {
    /// There are two logs: both heads are in it.
    case fork(KeyLogFork)
    /// The user's entry that this device has seen is not, or not any more, among the user's entries.
    case replaced(user: String)
    /// The log says that it has no entry of a user of whom this device has seen one.
    case removed(user: String)
    /// The log holds, as the user's newest, an entry that no server may take, or one behind such an entry.
    case badEntry(user: String, KeyLogError)
    /// An entry of one's own that one's devices have not made.
    case foreignKey(KeyLogEntry)
}

/// What a look at one's own entries shows.
public enum KeyLogOwnVerdict: Sendable, Equatable {
    /// All entries are of keys that this account has made, and the newest is that of the keys it uses.
    case asCreated
    /// The log has no entry of the keys that the account uses: it is to be appended. All that is there is the account's
    /// own.
    case missing
    case refused(KeyLogError)
    case alarm(KeyLogAlarm)
}

/// What comes of a head that somebody else has sent along.
public enum KeyLogGossip: Sendable, Equatable {
    /// It is of the same log as the newest one here.
    case consistent
    /// Whether it is shows a way between these sizes: the server is to be asked for it.
    case ask(older: UInt64, newer: UInt64)
    /// It says nothing: of another key, from the future, or with the way between other sizes.
    case refused(KeyLogError)
    /// It is not.
    case alarm(KeyLogFork)
}

/// The way between two heads, as far as it was asked for.
public enum KeyLogWay: Sendable, Equatable {
    /// Nobody has asked yet.
    case notAsked
    /// The server gave this.
    case given(KeyLogConsistency)
    /// The server has answered and gave none. A server that does not answer at all has withheld nothing yet.
    case withheld
}
