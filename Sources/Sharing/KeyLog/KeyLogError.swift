import ThicketProtocol

/// Why something of the key log was refused: nothing was learned from it, and nothing has changed. What the log has
/// *committed* to and that breaks its rules is no refusal but a `KeyLogAlarm`.
public struct KeyLogError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of thing is wrong; the raw value is its code.
    public enum Kind: String, Sendable, CaseIterable {
        /// Bytes that are not of the form they should have: cut, longer, another label, a number beyond 2^53.
        case malformed
        /// More entries, users or bytes than are taken.
        case tooMany
        /// The entry is for another app's log.
        case otherApp
        /// The entry is of another user.
        case otherUser
        /// The number is not the next one: a first entry where there is one, a gap, a repetition.
        case sequence
        /// The entry does not name the one before it.
        case previous
        /// The entry, or a part of it, is not signed by the key that had to.
        case signature
        /// It is valid from before the entry that it follows, or from too far in the future.
        case time
        /// It changes neither key.
        case sameKeys
        /// It says that the old key is lost, and nobody has allowed that.
        case resetNotAuthorised
        /// The head is not signed by the log's key.
        case notSigned
        /// The head is older than an hour.
        case staleHead
        /// The head is from the future.
        case futureHead
        /// The head is of a log that is shorter than the one seen before.
        case olderHead
        /// The proof is for other sizes than those asked for: ask again.
        case otherSize
        /// A proof does not hold: nothing is shown.
        case notProven
        /// The log has no entry yet.
        case empty
        /// The head is not one of this log as it is now.
        case otherLog
        /// The two heads contradict each other in nothing.
        case noFork
        /// Nothing waits to be confirmed, or other keys do.
        case notAwaited
    }

    public let kind: Kind
    public let description: String

    public init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }

    static func malformed(_ what: String) -> KeyLogError { KeyLogError(.malformed, "key log: \(what)") }
}

/// Every bound of the key log, with its unit.
public enum KeyLogLimits {
    /// Entries of one user at most: one a week for nineteen years.
    public static let entriesMax = 1_000
    /// Bytes of an entry at most: label and zero byte, ten lengths, the longest app and user, three numbers, two keys,
    /// a hash, two signatures.
    public static let entryBytesMax: Int =
        20 + 10 * 2 + Limits.appIDBytesMax + Limits.userIDBytesMax + (8 + 8 + 1) + 2 * 32 + 32 + 2 * 64
    /// Bytes of the answer to a look-up at most.
    public static let lookupBytesMax: Int = entriesMax * (2 + entryBytesMax) + (16 << 10)
    /// Users that one device has pinned at most. None is ever dropped to make room: who could push one out could put
    /// another key in its place.
    public static let pinsMax = 10_000
    /// Bytes of what a device keeps, at most.
    public static let stateBytesMax: Int = pinsMax * 512 + (8 << 10)
    /// Sizes, numbers and times are below it.
    public static let numberBound: UInt64 = 1 << 53
    /// Milliseconds that a head may be old while the device is online (spec 4.12: an hour).
    public static let headAgeMilliseconds: UInt64 = 3_600_000
    /// Milliseconds that a head, or an entry's beginning, may be ahead of the clock of who reads it.
    public static let skewMilliseconds: UInt64 = 300_000
    /// Milliseconds after which a head of the same size is signed anew.
    public static let headRefreshMilliseconds: UInt64 = 600_000
    /// Milliseconds between two looks at one's own entries (spec 4.12: daily).
    public static let selfCheckMilliseconds: UInt64 = 86_400_000
}
