/// The place of a sealed object. Everything that is sealed or hashed is bound to it, so that nothing can be moved to
/// another place.
public struct SealedPlace: Sendable, Hashable {
    /// The account that owns the bucket.
    public var owner: String
    /// The app's id.
    public var app: String
    /// The bucket's name.
    public var bucket: String
    /// The key by which the server knows the object.
    public var serverKey: String

    /// - Parameters: each at most 65,535 bytes of UTF-8; `Limits` are far below that.
    public init(owner: String, app: String, bucket: String, serverKey: String) {
        self.owner = owner
        self.app = app
        self.bucket = bucket
        self.serverKey = serverKey
    }

    /// lp(owner) ‖ lp(app) ‖ lp(bucket) ‖ lp(server key).
    var prefixed: [UInt8] {
        lengthPrefixed(owner.utf8) + lengthPrefixed(app.utf8) + lengthPrefixed(bucket.utf8)
            + lengthPrefixed(serverKey.utf8)
    }

    /// Compares the UTF-8 of all four parts.
    public static func == (left: SealedPlace, right: SealedPlace) -> Bool { left.prefixed == right.prefixed }
    /// Hashes the UTF-8 of all four parts.
    public func hash(into hasher: inout Hasher) { hasher.combine(prefixed) }
}

/// lp(x): 16-bit length, big-endian, and the bytes.
func lengthPrefixed(_ bytes: some Collection<UInt8>) -> [UInt8] {
    precondition(bytes.count <= Int(UInt16.max), "a name of more than 65,535 bytes")
    return UInt16(bytes.count).bigEndianBytes + bytes
}
