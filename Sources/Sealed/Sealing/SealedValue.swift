import ThicketCrypto

extension SealedHeader {
    /// H.
    var bytes: [UInt8] { [SealedValue.suite.rawValue, kind.rawValue] + epoch.bigEndianBytes + id }
}
