/// A device's verdict on the answer to a look-up.
public enum KeyLogVerdict: Sendable, Equatable {
    /// These are the user's keys, as far as log and device know. The chain of the answer was verified too, so keys of
    /// an earlier time can be taken from it.
    case verified(PublicKeys, KeyLogChange)
    /// The user has no keys in the log.
    case absent
    /// The user's old key was replaced without its signature. No keys are returned until the user of this device has
    /// contacted the other user, compared the safety number, and confirmed (`KeyLogReader.confirm`).
    case needsConfirmation(old: PublicKeys, new: PublicKeys)
    /// The answer proves nothing and changed nothing; ask again.
    case refused(KeyLogError)
    /// The log has committed to something that breaks its rules. No keys are returned.
    case alarm(KeyLogAlarm)
}

/// The change between the verified keys and the known ones.
public enum KeyLogChange: Sendable, Equatable {
    /// Seen for the first time: only the log vouches for them; users may additionally compare the safety number.
    case first
    /// The same keys as before.
    case same
    /// New keys; each was signed by its predecessor, back to these old ones.
    case rotated(from: PublicKeys)
}

/// Behaviour that proves a dishonest or broken server.
public enum KeyLogAlarm: Sendable, Equatable {
    /// Two inconsistent heads exist; both are in the fork.
    case fork(KeyLogFork)
    /// The user's entry that this device has seen is not among the user's entries any more.
    case replaced(user: String)
    /// The log has no entry of a user of which this device has seen one.
    case removed(user: String)
    /// The user's chain in the log contains an entry that the rules forbid.
    case badEntry(user: String, KeyLogError)
    /// An entry of the own account that no device of the account has created.
    case foreignKey(KeyLogEntry)
}

/// The result of a check of the own entries.
public enum KeyLogOwnVerdict: Sendable, Equatable {
    /// All entries are of keys that this account has created, and the newest one has the keys in use.
    case asCreated
    /// The log has no entry for the keys in use, so it must be appended. All existing entries are the account's own.
    case missing
    /// All entries are of an earlier holder of the name: a reset must be appended.
    case held
    /// The answer proves nothing; ask again.
    case refused(KeyLogError)
    /// The log has committed to something that breaks its rules.
    case alarm(KeyLogAlarm)
}

/// The result for a head received from another client.
public enum KeyLogGossip: Sendable, Equatable {
    /// It is consistent with the newest head here.
    case consistent
    /// A consistency proof between these sizes must be requested from the server.
    case ask(older: UInt64, newer: UInt64)
    /// It has no meaning: signed with another key, from the future, or a proof between other sizes.
    case refused(KeyLogError)
    /// It is inconsistent with the newest head here.
    case alarm(KeyLogFork)
}

/// The state of the request for a consistency proof.
public enum KeyLogWay: Sendable, Equatable {
    /// Not requested yet.
    case notAsked
    /// The server gave this proof.
    case given(KeyLogConsistency)
    /// The server answered without a proof. A server that does not answer at all has not withheld anything yet.
    case withheld
}
