/// Seals and opens the values of one object. Tests use a transparent implementation.
public protocol Sealer: Sendable {
    /// Version of the signed list of readers for sealing operations; 0 in a bucket that belongs to one account alone.
    var listVersion: Int { get }
    /// The sealed bytes; the server gets their base64url.
    /// - Parameter position: of a snapshot; 0 for operations.
    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8]
    /// - Returns: nil when anything is wrong.
    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])?
}

extension Sealer {
    /// The bucket belongs to one account.
    public var listVersion: Int { 0 }
}
