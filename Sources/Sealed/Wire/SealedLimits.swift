/// Every bound of sealed objects. Those that decide whether an operation counts belong to the rules: all devices must
/// have the same.
public enum SealedLimits {
    /// Positions that an operation may stand behind its base, and operations whose carried forms a snapshot holds.
    public static let windowPositions = 64
    /// Older heads, one every `windowPositions` positions, that are kept beside those of the window.
    public static let oldHeadsMax = 64
    /// Operations in the tail from which on any device compacts, not only the author whose turn it is.
    public static let tailCompactedBeyond = 128
    /// Operations in the tail that the server takes before it answers 413.
    public static let tailOperationsMax = 1_024
    /// Bytes of the tail, as base64url, that the server takes before it answers 413.
    public static let tailBytesMax = 1 << 20
    /// Entries of `s`: racing compactions leave one each, and the next one that sees them removes them.
    public static let snapshotsMax = 64
    /// Bytes of one operation before sealing; the server's limit on objects holds beside it.
    public static let operationBytesMax = 32 << 20
    /// JSON levels of an operation's or snapshot's clear form: two a level of the object, and its own.
    public static let clearDepthMax = 600
    /// Incarnations that a device remembers to have passed.
    public static let pastIncarnationsMax = 64
}
