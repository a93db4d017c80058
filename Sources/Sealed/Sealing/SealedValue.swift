import ThicketCrypto

/// Layout of a sealed value: H ‖ nonce(12) ‖ ciphertext ‖ tag, where H = suite(1) ‖ kind(1) ‖ epoch(4) ‖ id(16).
public enum SealedValue {
    /// The suite that we seal with.
    static let suite: AEADSuite = .aes256GCM
    public static let idBytes: Int = 16
    public static let headerBytes: Int = 22
    /// Bytes beside the padded clear text.
    static let frameBytes: Int = headerBytes + AEADSuite.nonceBytes + AEADSuite.tagBytes

    /// To what a clear text is filled up, its length of four bytes counted.
    static func padding(_ kind: SealedHeader.Kind) -> SealedPadding {
        switch kind {
        case .snapshot: .padme
        case .operation: .multiple
        }
    }

    /// Whether a sealed value of this kind can have so many bytes.
    static func canHave(_ count: Int, _ kind: SealedHeader.Kind) -> Bool {
        let clear: Int = count - frameBytes
        return clear >= 4 && padding(kind).size(of: clear) == clear
    }
}

extension SealedHeader {
    /// H.
    var bytes: [UInt8] { [SealedValue.suite.rawValue, kind.rawValue] + epoch.bigEndianBytes + id }

    /// Reads what stands in front of a sealed value.
    /// - Returns: nil for fewer bytes than a header has, an unknown suite or an unknown kind.
    public init?(of sealed: [UInt8]) {
        guard sealed.count >= SealedValue.headerBytes, sealed[0] == SealedValue.suite.rawValue,
            let kind: Kind = .init(rawValue: sealed[1])
        else { return nil }
        self.init(
            kind: kind, epoch: sealed[2..<6].reduce(0) { $0 << 8 | UInt32($1) },
            id: Array(sealed[6..<SealedValue.headerBytes]))
    }
}

/// To what a clear text is filled up: length(4, big-endian) ‖ bytes ‖ zeros. Only what `pad` writes is read.
enum SealedPadding {
    /// To the next multiple of 64.
    case multiple
    /// Padmé (Nikitin et al., PoPETs 2019, algorithm 1): at most 12 % more.
    case padme

    func size(of count: Int) -> Int {
        switch self {
        case .multiple: return (count + 63) / 64 * 64
        case .padme:
            guard count >= 2 else { return count }
            let exponent: Int = Int.bitWidth - 1 - count.leadingZeroBitCount
            let mask: Int = 1 << max(0, exponent - (Int.bitWidth - exponent.leadingZeroBitCount)) - 1
            return (count + mask) & ~mask
        }
    }

    /// - Returns: nil for 2^31 bytes and more.
    func pad(_ clear: [UInt8]) -> [UInt8]? {
        guard let length: Int32 = .init(exactly: clear.count) else { return nil }
        var padded: [UInt8] = []
        padded.reserveCapacity(size(of: clear.count + 4))
        padded += UInt32(length).bigEndianBytes + clear
        padded += repeatElement(0, count: size(of: padded.count) - padded.count)
        return padded
    }

    func unpad(_ padded: [UInt8]) -> [UInt8]? {
        guard padded.count >= 4 else { return nil }
        let end: Int = 4 + padded[..<4].reduce(0) { $0 << 8 | Int($1) }
        guard end <= padded.count, size(of: end) == padded.count, padded[end...].allSatisfy({ $0 == 0 }) else {
            return nil
        }
        return Array(padded[4..<end])
    }
}
