/// What a sealed value says of itself before it is opened.
public struct SealedHeader: Sendable, Hashable {
    public enum Kind: UInt8, Sendable, Hashable {
        case snapshot = 1
        case operation = 2
    }

    public var kind: Kind
    /// Epoch of the bucket's secret.
    public var epoch: UInt32
    /// Of an operation its ccid, of a snapshot 16 random bytes.
    public var id: [UInt8]

    public init(kind: Kind, epoch: UInt32, id: [UInt8]) {
        self.kind = kind
        self.epoch = epoch
        self.id = id
    }
}

/// Seals and opens the values of one object. Tests put a transparent one in its place.
public protocol Sealer: Sendable {
    /// The sealed bytes (their base64url is what the server gets).
    /// - Parameter position: of a snapshot; 0 for operations.
    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8]
    /// - Returns: nil when anything at all is wrong.
    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])?
}
