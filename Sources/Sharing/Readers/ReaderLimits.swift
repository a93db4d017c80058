/// Every bound of buckets that several accounts share.
public enum ReaderLimits {
    /// Readers in one list, the owner among them.
    public static let readersMax = 1_024
    /// Lists of one bucket, one after the other: a bucket with more changes needs a successor.
    public static let listsMax: UInt64 = 4_096
    /// Epochs of a bucket's secret: the same as in a bucket of one account (decision 0050).
    public static let epochsMax = 1_024
    /// Bytes of a signed list: 1,024 readers with the longest names and 1,024 epochs take fewer.
    public static let listBytesMax = 1 << 19
    /// Bytes of all lists of a bucket that a device keeps.
    public static let keptBytesMax = 64 << 20
    /// Wraps of one epoch for one reader that are tried; who offers more offers rubbish.
    public static let wrapTriesMax = 4
}
