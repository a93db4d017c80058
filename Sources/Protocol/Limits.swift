/// Every bound of the protocol, with its unit and its source. Bounds that an operator can change are in the server's
/// settings.
public enum Limits {
    /// Bytes of an app id.
    public static let appIDBytesMax = 64
    /// Bytes of a user name.
    public static let userIDBytesMax = 256
    /// Bytes of a bucket name (wire contract, section 2).
    public static let bucketNameBytesMax = 64
    /// Bytes of an object key (wire contract, section 2).
    public static let entityKeyBytesMax = 256
    /// Bytes of a ccid (wire contract, section 2).
    public static let changeIDBytesMax = 256
    /// Bytes of a clientid (wire contract, section 2).
    public static let clientIDBytesMax = 256
    /// Bytes of a cv.
    public static let changeVersionBytesMax = 256
    /// Changes in one `c:[…]` of a client; a message with more is refused as a whole.
    public static let changesPerMessageMax = 1_000
    /// Nesting of JSON arrays and objects.
    public static let jsonDepthMax = 256
    /// Bytes of one JSON text, because offsets into it are stored in 30 bits.
    public static let jsonBytesMax = (1 << 30) - 1
    /// Bytes that one byte of a text takes at most when it is escaped in JSON: `\u0041`.
    public static let jsonEscapeBytesMax = 6
    /// Digits of a number that an increment produces, from its first to its last; a change that needs more is refused.
    public static let numberDigitsMax = 1_024
    /// Objects on one index page when the client states no limit (HTTP reference).
    public static let indexPageDefault = 100
    /// Objects on one index page at most (HTTP reference).
    public static let indexPageMax = 1_000
    /// Bytes of object data after which an index page ends early, with a mark for the next page (wire contract, section
    /// 5).
    public static let indexPageBytesMax = 4 << 20
    /// Removals in one answer to `removed` when the client states no limit.
    public static let removalsDefault = 100
    /// Removals in one answer to `removed` at most, and log rows read for one answer.
    public static let removalsMax = 1_000
    /// Largest channel number a client may choose.
    public static let channelNumberMax: UInt32 = 999_999
}
