import ThicketCrypto

/// Layout of a sealed value: H ‖ nonce(12) ‖ ciphertext ‖ tag, where H = suite(1) ‖ kind(1) ‖ epoch(4) ‖ id(16).
public enum SealedValue {
    /// The suite used for sealing.
    package static let suite: AEADSuite = .aes256GCM
    /// Bytes of an id.
    public static let idBytes = 16
    /// Bytes of H.
    public static let headerBytes = 22
    /// Bytes of a sealed value beside the padded clear text.
    package static let frameBytes: Int = headerBytes + AEADSuite.nonceBytes + AEADSuite.tagBytes

    /// How a clear text is padded, its length field of four bytes included.
    package static func padding(_ kind: SealedHeader.Kind) -> Padding {
        switch kind {
        case .snapshot: .padme
        case .operation: .multiple(of: 64)
        }
    }

    /// Whether a sealed value of this kind can have this number of bytes.
    package static func canHave(_ count: Int, _ kind: SealedHeader.Kind) -> Bool {
        let clear = count - frameBytes
        return clear >= 4 && padding(kind).size(of: clear) == clear
    }
}

/// The readable header of a sealed value.
public struct SealedHeader: Sendable, Hashable {
    /// What is sealed.
    public enum Kind: UInt8, Sendable, Hashable {
        /// A snapshot of a log.
        case snapshot = 1
        /// One operation.
        case operation = 2
    }

    /// What is sealed.
    public var kind: Kind
    /// Epoch of the bucket's secret.
    public var epoch: UInt32
    /// An operation's ccid; 16 random bytes for a snapshot.
    public var id: [UInt8]

    /// A header; `id` has 16 bytes.
    public init(kind: Kind, epoch: UInt32, id: [UInt8]) {
        self.kind = kind
        self.epoch = epoch
        self.id = id
    }
}

extension SealedHeader {
    /// Reads the header of a sealed value.
    /// - Returns: nil for fewer bytes than a header has, an unknown suite or an unknown kind.
    public init?(of sealed: [UInt8]) {
        guard let (kind, epoch) = sealed.withUnsafeBytes(Self.beginning) else { return nil }
        self.init(kind: kind, epoch: epoch, id: Array(sealed[6..<SealedValue.headerBytes]))
    }

    /// The same without the id.
    package static func beginning(of sealed: UnsafeRawBufferPointer) -> (kind: Kind, epoch: UInt32)? {
        guard sealed.count >= SealedValue.headerBytes, sealed[0] == SealedValue.suite.rawValue,
            let kind = Kind(rawValue: sealed[1])
        else { return nil }
        return (kind, sealed[2..<6].reduce(0) { $0 << 8 | UInt32($1) })
    }
}
