public import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol

/// A signed state of the log: the number of releases, the root over them (RFC 6962, 2.1), and the time.
public struct ReleaseHead: Sendable, Equatable {
    /// Number of releases in the log, at least 1.
    public let size: UInt64
    /// The root of the log's Merkle tree.
    public let root: Digest256
    /// Milliseconds since 1970 on the signer's clock.
    public let time: UInt64
    /// Ed25519 over `thicket/release-head/1` ‖ 0 ‖ size, root and time, each with its length.
    public let signature: [UInt8]

    /// Signs a head.
    public init(size: UInt64, root: Digest256, time: UInt64, key: Ed25519.SigningKey) throws(ReleaseError) {
        (self.size, self.root, self.time) = (size, root, time)
        do throws(CryptoError) {
            signature = try key.signature(for: .releaseHead, Self.fields(size, root, time))
        } catch {
            throw ReleaseError(.malformed, "a head cannot be signed: \(error)")
        }
    }

    /// Reads what `json` writes.
    /// - Throws: `malformed`.
    public init(_ value: JSONValue?) throws(ReleaseError) {
        guard let size = value?["size"]?.intValue, size > 0,
            let root = value?["root"]?.stringValue.flatMap(Digest256.init(hex:)),
            let time = value?["time"]?.intValue, time >= 0,
            let signature = value?["signature"]?.stringValue.flatMap(Hex.decode),
            signature.count == Ed25519.signatureBytes
        else { throw ReleaseError(.malformed, "the head of the log lacks its size, root, time or signature") }
        (self.size, self.root, self.time, self.signature) = (UInt64(size), root, UInt64(time), signature)
    }

    /// The head's form in files.
    public var json: JSONValue {
        [
            "size": .number(JSONNumber(Int64(size))), "root": .string(root.description),
            "time": .number(JSONNumber(Int64(time))), "signature": .string(Hex.encode(signature)),
        ]
    }

    /// - Throws: `otherKey` unless the key has signed the head.
    public func check(_ key: Ed25519.VerifyingKey) throws(ReleaseError) {
        guard key.isSignature(signature, for: .releaseHead, Self.fields(size, root, time)) else {
            throw ReleaseError(
                .otherKey,
                "the head of the log is not signed by the key \(Hex.encode(key.octets)). Either the proof was changed, "
                    + "or it was signed with another key")
        }
    }

    private static func fields(_ size: UInt64, _ root: Digest256, _ time: UInt64) -> [[UInt8]] {
        [size, time].map { number in (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
            .inserting(root.bytes, at: 1)
    }
}

extension [[UInt8]] {
    fileprivate func inserting(_ element: [UInt8], at place: Int) -> [[UInt8]] {
        var copy: [[UInt8]] = self
        copy.insert(element, at: place)
        return copy
    }
}
