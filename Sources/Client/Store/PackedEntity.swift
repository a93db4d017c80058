internal import ThicketCrypto
import ThicketProtocol
import ThicketSealed

/// How an object of a sealed bucket stands in a file: its texts are base64url, which takes a quarter less as the bytes it stands for.
///
/// 0x01, which begins no JSON ‖ number of snapshots(4), and of each position(8), length(4), bytes ‖ number of operations(4), and of
/// each, the newest first, length(4), bytes; numbers big-endian. Whatever is not exactly a sealed object stands there as JSON.
enum PackedEntity {
    static let mark: UInt8 = 0x01

    /// The values of a sealed object, read as bytes.
    struct Values {
        /// By position, ascending.
        var snapshots: [(position: Int, sealed: [UInt8])] = []
        /// The newest first.
        var tail: [[UInt8]] = []

        /// - Returns: nil for a text that is no base64url, which would not come back the same.
        init?(_ entity: SealedEntity) {
            for (position, text): (Int, String) in entity.snapshots.sorted(by: { $0.key < $1.key }) {
                guard let sealed: [UInt8] = Base64.decodeURL(Array(text.utf8)[...]) else { return nil }
                snapshots.append((position, sealed))
            }
            tail.reserveCapacity(entity.tail.count)
            for text: String in entity.tail {
                guard let sealed: [UInt8] = Base64.decodeURL(Array(text.utf8)[...]) else { return nil }
                tail.append(sealed)
            }
        }
    }

    /// - Returns: nil for anything that would not come back the same.
    static func pack(_ object: JSONObject) -> [UInt8]? {
        guard SealedEntity.looksSealed(object), let entity: SealedEntity = try? SealedEntity(object) else { return nil }
        return Values(entity).map(pack)
    }

    static func pack(_ values: Values) -> [UInt8] {
        var bytes: [UInt8] = [mark]
        bytes.reserveCapacity(
            64 + values.snapshots.reduce(0) { $0 + 12 + $1.sealed.count } + values.tail.reduce(0) { $0 + 4 + $1.count })
        append(UInt32(values.snapshots.count), to: &bytes)
        for (position, sealed): (Int, [UInt8]) in values.snapshots {
            append(UInt64(position), to: &bytes)
            append(sealed, to: &bytes)
        }
        append(UInt32(values.tail.count), to: &bytes)
        for sealed: [UInt8] in values.tail { append(sealed, to: &bytes) }
        return bytes
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ sealed: [UInt8], to bytes: inout [UInt8]) {
        append(UInt32(sealed.count), to: &bytes)
        bytes.append(contentsOf: sealed)
    }

    /// - Returns: nil for what `pack` does not write.
    static func unpack(_ bytes: [UInt8]) -> JSONObject? {
        var reader: Reader = .init(bytes: bytes[...])
        guard reader.take(1)?.first == mark, let count: Int = reader.number(4), count <= SealedLimits.snapshotsMax
        else {
            return nil
        }
        var entity: SealedEntity = .init(snapshots: [:])
        for _ in 0..<count {
            guard let position: Int = reader.number(8), let text: String = reader.text() else { return nil }
            entity.snapshots[position] = text
        }
        guard let operations: Int = reader.number(4) else { return nil }
        for _ in 0..<operations {
            guard let text: String = reader.text() else { return nil }
            entity.tail.append(text)
        }
        return reader.bytes.isEmpty ? entity.object : nil
    }

    private struct Reader {
        var bytes: ArraySlice<UInt8>

        mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard bytes.count >= count else { return nil }
            defer { bytes = bytes.dropFirst(count) }
            return bytes.prefix(count)
        }

        /// A number below 2^53.
        mutating func number(_ width: Int) -> Int? {
            guard let read: ArraySlice<UInt8> = take(width) else { return nil }
            let number: UInt64 = read.reduce(0) { $0 << 8 | UInt64($1) }
            return number < 1 << 53 ? Int(number) : nil
        }

        mutating func text() -> String? {
            guard let count: Int = number(4), let sealed: ArraySlice<UInt8> = take(count) else { return nil }
            return Base64.encodeURL(Array(sealed))
        }
    }
}
