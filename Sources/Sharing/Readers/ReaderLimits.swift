/// All bounds of buckets that several accounts share.
public enum ReaderLimits {
    /// Maximum readers in one list, including the owner.
    public static let readersMax = 1_024
    /// Maximum number of successive lists of one bucket; a bucket with more changes needs a successor.
    public static let listsMax: UInt64 = 4_096
    /// Maximum epochs of a bucket's secret: the same as in a bucket of one account (decision 0050).
    public static let epochsMax = 1_024
    /// Maximum bytes of a signed list: 1,024 readers with the longest names and 1,024 epochs take fewer.
    public static let listBytesMax = 1 << 19
    /// Maximum bytes of all lists of a bucket that a device stores.
    public static let keptBytesMax = 64 << 20
    /// Maximum wraps of one epoch for one reader that are tried; further ones cannot be legitimate.
    public static let wrapTriesMax = 4
}
