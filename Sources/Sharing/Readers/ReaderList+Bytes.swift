import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The encoding of a list: `thicket/reader-list/1` ‖ 0 ‖ lp(owner) ‖ lp(app) ‖ lp(bucket) ‖ version(8) ‖ previous(32) ‖
/// number of epochs(2) ‖ a commitment(32) each ‖ number of readers(2) ‖ lp(user) ‖ key id(16) ‖ rights(1) each, sorted
/// by the bytes of the names.
extension ReaderList {
    /// Bytes of a key id.
    static let keyIDBytes = 16
    static let label: StaticString = "thicket/reader-list/1"

    static func bytes(
        _ bucket: SharedBucket, _ version: UInt64, _ previous: Digest256, _ commitments: [Digest256],
        _ readers: [ListedReader]
    ) throws(ReaderListError) -> [UInt8] {
        do throws(CryptoError) {
            var text = LabelledBytes(label)
            for name in [bucket.owner, bucket.app, bucket.bucket] { try text.add(name.utf8) }
            var bytes = text.octets + version.octets + previous.bytes + UInt16(commitments.count).octets
            for commitment in commitments { bytes += commitment.bytes }
            bytes += UInt16(readers.count).octets
            for reader in readers {
                bytes += UInt16(reader.user.utf8.count).octets + Array(reader.user.utf8)
                bytes += (Hex.decode(reader.keyID) ?? []) + [reader.rights.rawValue]
            }
            return bytes
        } catch { throw .badName }
    }

    /// Parses a list; verifies no signature.
    /// - Throws: `ReaderListError`; `malformed` also for an encoding that is not the unique one.
    public init(parsing bytes: [UInt8]) throws(ReaderListError) {
        guard bytes.count <= ReaderLimits.listBytesMax else { throw .tooMany }
        var fields = FieldReader(bytes)
        guard fields.skip(LabelledBytes(Self.label).octets), let owner: String = fields.text(),
            let app: String = fields.text(), let name: String = fields.text(), let version: UInt64 = fields.number(),
            let previous: Digest256 = fields.digest(), let epochs: UInt16 = fields.number()
        else { throw .malformed }
        let bucket = try SharedBucket(owner: owner, app: app, bucket: name)
        guard epochs <= ReaderLimits.epochsMax else { throw .tooMany }
        var commitments = [Digest256]()
        for _ in 0..<epochs {
            guard let commitment = fields.digest() else { throw .malformed }
            commitments.append(commitment)
        }
        guard let count: UInt16 = fields.number() else { throw .malformed }
        guard count <= ReaderLimits.readersMax else { throw .tooMany }
        var readers = [ListedReader]()
        for _ in 0..<count {
            guard let user = fields.text(), let id = fields.take(Self.keyIDBytes),
                let rights: ListedReader.Rights = fields.take(1).flatMap({ .init(rawValue: $0[0]) })
            else { throw .malformed }
            readers.append(ListedReader(user: user, keyID: Hex.encode(id), rights: rights))
        }
        try self.init(bucket: bucket, version: version, previous: previous, commitments: commitments, readers: readers)
        // Detects readers in another order and bytes after the end.
        guard self.bytes == bytes else { throw .malformed }
    }
}

/// Reads the fields of an encoding in order; each call returns nil when the bytes do not fit.
struct FieldReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ count: Int) -> [UInt8]? {
        guard count >= 0, rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// Whether these bytes come next.
    mutating func skip(_ bytes: [UInt8]) -> Bool { take(bytes.count) == bytes }

    /// Big-endian.
    mutating func number<Number: FixedWidthInteger & UnsignedInteger>() -> Number? {
        take(Number.bitWidth / 8).map { $0.reduce(0) { $0 << 8 | Number($1) } }
    }

    mutating func digest() -> Digest256? { take(Digest256.byteCount).flatMap { Digest256($0) } }

    /// 16 bits of length, then UTF-8.
    mutating func text() -> String? {
        guard let count: UInt16 = number(), let bytes: [UInt8] = take(Int(count)) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// 32 bits of length, then bytes.
    mutating func long() -> [UInt8]? {
        guard let count: UInt32 = number() else { return nil }
        return take(Int(count))
    }
}
