import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Encodes a position in a bucket's log as the opaque `cv` of the wire, and decodes it.
///
/// A cv is one AES block over (epoch 32 bits | bucket tag 32 bits | gid 64 bits), as 32 hex digits. The tag is the
/// first 32 bits of HMAC-SHA-256(key, app 0x00 owner 0x00 name). A cv therefore reveals nothing about activity
/// elsewhere on the server. A cv of another bucket, of another server or from before a restore (which raises the epoch)
/// decodes to nil.
public struct ChangeVersionCodec: Sendable {
    /// Bytes of the key, which is kept in the store's meta table.
    public static let keyBytes = 16

    private let key: [UInt8]
    private let block: AESBlock
    /// Raised by every restore.
    public let epoch: UInt32

    /// - Parameters:
    ///   - key: 16 bytes, secret, constant for the data folder.
    ///   - epoch: the store's current epoch.
    public init(key: [UInt8], epoch: UInt32) {
        precondition(key.count == Self.keyBytes, "a cv key has 16 bytes")
        self.key = key
        self.block = AESBlock(key: key)
        self.epoch = epoch
    }

    /// The codec of an open store.
    public init(_ identity: StoreIdentity) {
        self.init(key: identity.cvKey, epoch: identity.epoch)
    }

    /// The bucket's tag. Costs one HMAC; callers keep it with the bucket.
    public func tag(of bucket: BucketID) -> UInt32 {
        var text: [UInt8] = Array(bucket.app.text.utf8)
        text.append(0)
        text.append(contentsOf: bucket.user.text.utf8)
        text.append(0)
        text.append(contentsOf: bucket.name.text.utf8)
        let mac = Hash.hmacSHA256(key: key, text)
        return mac.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Distinguishes this bucket from every other bucket that a client may have seen under the same name: 16 hex
    /// digits, the first 64 bits of HMAC-SHA-256(key, "store" 0x00 epoch 0x00 row 0x00 app 0x00 owner 0x00 name).
    ///
    /// The identity stays the same only within one data folder, between two restores, and for the same row: an account
    /// or app that is created again under an old name gets other rows.
    public func identity(of bucket: BucketID, row: BucketRow) -> String {
        let parts = ["store", String(epoch), String(row), bucket.app.text, bucket.user.text, bucket.name.text]
        let mac = Hash.hmacSHA256(key: key, Array(parts.joined(separator: "\0").utf8))
        return Hex.encode(Array(mac.prefix(8)))
    }

    /// Bytes of the text of a cv.
    static let textBytes = 32

    /// The cv of a position, 32 hex digits. Position 0 is the `current` of an empty bucket.
    public func encode(_ gid: GlobalID, tag: UInt32) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.textBytes) { buffer, count in
            guard let place = buffer.baseAddress else { return }
            write(gid, tag: tag, to: place)
            count = Self.textBytes
        }
    }

    /// As `encode(_:tag:)`, into memory with space for `textBytes` bytes.
    @inline(__always)
    func write(_ gid: GlobalID, tag: UInt32, to place: UnsafeMutablePointer<UInt8>) {
        let (high, low) = block.encrypt(
            UInt64(epoch) << 32 | UInt64(tag), UInt64(bitPattern: gid))
        for digit in 0..<16 {
            place[digit] = Hex.digit(UInt8(truncatingIfNeeded: high >> UInt64(60 - 4 * digit)) & 15)
            place[16 + digit] = Hex.digit(UInt8(truncatingIfNeeded: low >> UInt64(60 - 4 * digit)) & 15)
        }
    }

    /// As `encode(_:tag:)`, as a string.
    public func text(_ gid: GlobalID, tag: UInt32) -> String {
        String(decoding: encode(gid, tag: tag), as: UTF8.self)
    }

    /// The position of a cv that a client sent.
    ///
    /// - Returns: nil when the text is not a cv of this bucket in this epoch; the answer is then `cv:?`. The caller
    ///   checks that the position is still kept and not above the head.
    public func decode(_ text: String, tag: UInt32) -> GlobalID? {
        guard text.utf8.count == 32, let cipher = Hex.decode(text) else { return nil }
        let plain = block.decrypt(cipher)
        let head = number(plain[0..<8])
        guard head == UInt64(epoch) << 32 | UInt64(tag) else { return nil }
        let gid = GlobalID(bitPattern: number(plain[8..<16]))
        return gid >= 0 ? gid : nil
    }

    private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
