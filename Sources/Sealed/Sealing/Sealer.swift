/// Seals and opens the values of one object. Tests put a transparent one in its place.
public protocol Sealer: Sendable {
    /// Version of the signed list of readers that operations are sealed under; 0 in a bucket that one account has
    /// alone.
    var listVersion: Int { get }
    /// The sealed bytes (their base64url is what the server gets).
    /// - Parameter position: of a snapshot; 0 for operations.
    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8]
    /// - Returns: nil when anything at all is wrong.
    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])?
}

extension Sealer {
    public var listVersion: Int { 0 }
}
