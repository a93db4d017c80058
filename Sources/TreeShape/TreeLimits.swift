import ThicketCrypto

/// All bounds of records of the tree, with their units. The server refuses what is outside; devices never write it.
public enum TreeLimits {
    /// Bytes of a record as compact JSON, without the server's stamps (treesystem 4.3).
    public static let recordBytesMax = 65_536
    /// Bytes that the server's stamps add to it at most: two numbers and a user name.
    public static let stampBytesMax = 1_024
    /// Levels of JSON in a record: the record, the list of wraps, a wrap.
    static let jsonDepthMax = 3
    /// Levels of nodes below a trunk (treesystem 4.8, rule 3): a child of a trunk is at depth 1.
    public static let depthMax = 64
    /// Wrapped node keys of one record. A record of 64 KiB has room for about as many wraps of users.
    public static let wrapsMax = 256
    /// Bytes of a key that is wrapped under the parent's key: suite, nonce, 32 bytes, tag.
    public static let parentWrapBytes: Int = SealedMessage.extraBytes + NodeKey.bytesCount
    /// Bytes of a key that is wrapped with a password, whose parameters are in the wrap.
    public static let passwordWrapBytesMax = 256
    /// Letters of the id of a key: `PublicKeys.id` has 32.
    public static let keyIDBytesMax = 64
    /// Bytes to which metadata is padded before it is sealed, so that its length does not reveal the name's.
    public static let metadataStep = 64
    /// Bytes of metadata before it is sealed, padded.
    public static let metadataBytesMax = 16_384
    /// Bytes of the plain header of content (treesystem 4.5).
    public static let contentHeaderBytes = 64
    /// Bytes of the shortest sealed content: a header and a tag.
    public static let contentBytesMin: Int = contentHeaderBytes + AEADSuite.tagBytes
    /// Sealed bytes of content inside a record; larger content is a blob (treesystem 4.1).
    public static let inlineBytesMax = 8_192
    /// Milliseconds since 1970 of the latest time in a record: the end of the year 9999.
    public static let timeMax: Int64 = 253_402_300_799_999
    /// The largest version of a node: JavaScript reads it without loss.
    public static let versionMax: Int64 = 1 << 53 - 1
}
