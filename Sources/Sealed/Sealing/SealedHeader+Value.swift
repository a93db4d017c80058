import ThicketCrypto

extension SealedHeader {
    /// H, as `SealedValue` describes it.
    var bytes: [UInt8] { [SealedValue.suite.rawValue, kind.rawValue] + epoch.bigEndianBytes + id }
}
