import ThicketProtocol

/// The reason for refusing input of the key log. A refused input changes no state. If the log has *committed* to
/// something that breaks its rules, that is a `KeyLogAlarm` instead.
public struct KeyLogError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of error; the raw value is its code.
    public enum Kind: String, Sendable, CaseIterable {
        /// Invalid encoding: cut short, too long, another label, a number beyond 2^53.
        case malformed
        /// More entries, users or bytes than accepted.
        case tooMany
        /// The entry belongs to another app's log.
        case otherApp
        /// The entry belongs to another user.
        case otherUser
        /// The number is not the next one: a second first entry, a gap, a repetition.
        case sequence
        /// The entry does not refer to the previous one.
        case previous
        /// The entry, or a part of it, is not signed with the required key.
        case signature
        /// It is valid from a time before the previous entry, or too far in the future.
        case time
        /// It changes neither key.
        case sameKeys
        /// It declares the old key lost without authorisation.
        case resetNotAuthorised
        /// The head is not signed with the log's key.
        case notSigned
        /// The head is more than an hour old.
        case staleHead
        /// The head is from the future.
        case futureHead
        /// The head belongs to a shorter log than the device has seen.
        case olderHead
        /// The proof is for other sizes than requested; request it again.
        case otherSize
        /// A proof is invalid, so the answer proves nothing.
        case notProven
        /// The log has no entry yet.
        case empty
        /// The head does not match the log's current state.
        case otherLog
        /// The two heads do not contradict each other.
        case noFork
        /// No keys wait for confirmation, or other keys do.
        case notAwaited
        /// A required witness has confirmed no head of the last hour that is consistent with the newest one.
        case notWitnessed
    }

    /// The kind of error.
    public let kind: Kind
    /// A message for users and logs.
    public let description: String

    /// Creates an error.
    public init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }

    static func malformed(_ what: String) -> KeyLogError { KeyLogError(.malformed, "key log: \(what)") }
}

/// All bounds of the key log, with their units.
public enum KeyLogLimits {
    /// Maximum entries of one user: one per week for nineteen years.
    public static let entriesMax = 1_000
    /// Maximum bytes of an entry: label and zero byte, ten lengths, the longest app and user, three numbers, two keys,
    /// a hash, two signatures.
    public static let entryBytesMax: Int =
        20 + 10 * 2 + Limits.appIDBytesMax + Limits.userIDBytesMax + (8 + 8 + 1) + 2 * 32 + 32 + 2 * 64
    /// Maximum bytes of the answer to a look-up.
    public static let lookupBytesMax: Int = entriesMax * (2 + entryBytesMax) + (16 << 10)
    /// Maximum users that one device has pinned. A pin is never evicted, because an attacker that could evict one could
    /// substitute another key.
    public static let pinsMax = 10_000
    /// Maximum bytes of a device's state.
    public static let stateBytesMax: Int = pinsMax * 512 + (8 << 10)
    /// Exclusive upper bound of sizes, numbers and times.
    public static let numberBound: UInt64 = 1 << 53
    /// Maximum age of a head in milliseconds while the device is online (spec 4.12: an hour).
    public static let headAgeMilliseconds: UInt64 = 3_600_000
    /// Milliseconds that the time of a head, or of an entry, may be ahead of the reader's clock.
    public static let skewMilliseconds: UInt64 = 300_000
    /// Milliseconds after which a head of the same size is signed again.
    public static let headRefreshMilliseconds: UInt64 = 600_000
    /// Milliseconds between two checks of the account's own entries (spec 4.12: daily).
    public static let selfCheckMilliseconds: UInt64 = 86_400_000
}
