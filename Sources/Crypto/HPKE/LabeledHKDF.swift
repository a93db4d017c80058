/// HKDF with the labels of HPKE (RFC 9180, 4).
struct LabeledHKDF {
    private static let version: [UInt8] = Array("HPKE-v1".utf8)
    /// Identifies the part of HPKE and its algorithms.
    let suiteID: [UInt8]

    /// LabeledExtract.
    func extract(
        salt: SecureBytes, _ label: StaticString, _ secret: SecureBytes
    ) throws(CryptoError) -> SecureBytes {
        let before: [UInt8] = Self.version + suiteID + label.withUTF8Buffer { Array($0) }
        return try HKDF.extract(
            .sha256, secret: SecureBytes.joined([SecureBytes(copying: before), secret]), salt: salt)
    }

    /// LabeledExtract of public bytes.
    func extract(salt: SecureBytes, _ label: StaticString, _ bytes: [UInt8]) throws(CryptoError) -> SecureBytes {
        try extract(salt: salt, label, SecureBytes(copying: bytes))
    }

    /// LabeledExpand.
    func expand(
        _ key: SecureBytes, _ label: StaticString, _ info: [UInt8], count: Int
    ) throws(CryptoError) -> SecureBytes {
        // The count is encoded in 16 bits; HKDF's own bound is lower.
        guard count >= 1, count <= HKDF.outputDigestsMax * 32 else { throw .outOfBounds(.count) }
        let labelled =
            UInt16(count).octets + Self.version + suiteID + label.withUTF8Buffer { Array($0) } + info
        return try HKDF.expand(.sha256, key: key, info: labelled, count: count)
    }
}
