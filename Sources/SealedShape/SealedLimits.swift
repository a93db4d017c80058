/// All bounds of sealed objects. Bounds that decide whether an operation counts belong to the rules: all devices must
/// have the same.
public enum SealedLimits {
    /// Most positions from an operation's base to the operation, and operations whose transformed edits a snapshot
    /// holds.
    public static let windowPositions = 64
    /// Older heads, one every `windowPositions` positions, that are kept in addition to those of the window.
    public static let oldHeadsMax = 64
    /// Operations in the tail above which any device compacts, not only the author at a position divisible by 64.
    public static let tailCompactedBeyond = 128
    /// Operations in the tail that the server accepts before it answers 413.
    public static let tailOperationsMax = 1_024
    /// Bytes of the tail, as base64url, that the server accepts before it answers 413.
    public static let tailBytesMax = 1 << 20
    /// Entries of `s`: racing compactions leave one each, and the next compaction removes them.
    public static let snapshotsMax = 64
    /// Bytes of one operation before sealing; the server's limit on objects applies as well.
    public static let operationBytesMax = 32 << 20
    /// JSON levels of an operation's or snapshot's clear form: two per level of the object, and its own.
    public static let clearDepthMax = 600
    /// Earlier incarnations that a device remembers.
    public static let pastIncarnationsMax = 64
}
