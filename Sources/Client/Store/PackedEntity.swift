internal import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// The file format of an object in a sealed bucket. Its texts are base64url; as bytes they take a quarter less space.
///
/// Byte 0x01, with which no JSON begins ‖ number of snapshots(4), and for each: position(8), length(4), bytes ‖ number
/// of operations(4), and for each, the newest first: length(4), bytes. Numbers are big-endian. Any other object is
/// stored as JSON.
enum PackedEntity {
    static let mark: UInt8 = 0x01

    /// The values of a sealed object, decoded to bytes.
    struct Values {
        /// In ascending order of position.
        var snapshots = [(position: Int, sealed: [UInt8])]()
        /// The newest first.
        var tail = [[UInt8]]()

        /// - Returns: nil for a text that is not base64url, because it could not be restored exactly.
        init?(_ entity: SealedEntity) {
            for (position, text) in entity.snapshots.sorted(by: { $0.key < $1.key }) {
                guard let sealed = Base64.decodeURL(Array(text.utf8)[...]) else { return nil }
                snapshots.append((position, sealed))
            }
            tail.reserveCapacity(entity.tail.count)
            for text in entity.tail {
                guard let sealed = Base64.decodeURL(Array(text.utf8)[...]) else { return nil }
                tail.append(sealed)
            }
        }
    }

    /// - Returns: nil for an object that could not be restored exactly.
    static func pack(_ object: JSONObject) -> [UInt8]? {
        guard SealedEntity.looksSealed(object), let entity = try? SealedEntity(object) else { return nil }
        return Values(entity).map(pack)
    }

    static func pack(_ values: Values) -> [UInt8] {
        var bytes = [mark]
        bytes.reserveCapacity(
            64 + values.snapshots.reduce(0) { $0 + 12 + $1.sealed.count } + values.tail.reduce(0) { $0 + 4 + $1.count })
        append(UInt32(values.snapshots.count), to: &bytes)
        for (position, sealed) in values.snapshots {
            append(UInt64(position), to: &bytes)
            append(sealed, to: &bytes)
        }
        append(UInt32(values.tail.count), to: &bytes)
        for sealed in values.tail { append(sealed, to: &bytes) }
        return bytes
    }

    /// A packed object, and the ranges of its values.
    struct Packed {
        let bytes: [UInt8]
        let newest: Range<Int>
        /// The newest first.
        let tail: [Range<Int>]
    }

    /// Packs an object directly from a message.
    ///
    /// - Parameters:
    ///   - text: the text of the message.
    /// - Returns: nil for an object that could not be restored exactly.
    static func pack(_ outline: SealedOutline, of text: UnsafeBufferPointer<UInt8>) -> Packed? {
        guard let size = size(outline) else { return nil }
        var places: (newest: Range<Int>, tail: [Range<Int>])?
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { room, count in
            var writer = Writer(text: text, room: UnsafeMutableRawBufferPointer(room))
            places = writer.write(outline)
            count = size
        }
        return places.map { Packed(bytes: bytes, newest: $0.newest, tail: $0.tail) }
    }

    /// The packed size in bytes.
    private static func size(_ outline: SealedOutline) -> Int? {
        guard let newest = Base64.decodedCount(outline.newest.text.count) else { return nil }
        var size = 1 + 4 + 12 + newest + 4
        for snapshot in outline.older {
            guard let count = Base64.decodedCount(snapshot.text.count) else { return nil }
            size += 12 + count
        }
        for text in outline.tail {
            guard let count = Base64.decodedCount(text.count) else { return nil }
            size += 4 + count
        }
        return size
    }

    /// Writes a packed object into a buffer.
    private struct Writer {
        let text: UnsafeBufferPointer<UInt8>
        let room: UnsafeMutableRawBufferPointer
        var place = 0

        mutating func write(_ outline: SealedOutline) -> (newest: Range<Int>, tail: [Range<Int>])? {
            number(mark)
            number(UInt32(outline.older.count + 1))
            for snapshot in outline.older {
                number(UInt64(snapshot.position))
                guard sealed(snapshot.text) != nil else { return nil }
            }
            number(UInt64(outline.newest.position))
            guard let newest = sealed(outline.newest.text) else { return nil }
            number(UInt32(outline.tail.count))
            var tail = [Range<Int>]()
            tail.reserveCapacity(outline.tail.count)
            for text in outline.tail {
                guard let operation = sealed(text) else { return nil }
                tail.append(operation)
            }
            return (newest, tail)
        }

        private mutating func number(_ number: some FixedWidthInteger) {
            room.storeBytes(of: number.bigEndian, toByteOffset: place, as: type(of: number))
            place += number.bitWidth / 8
        }

        /// - Returns: the range of the written bytes; nil for a text that is not base64url.
        private mutating func sealed(_ letters: Range<Int>) -> Range<Int>? {
            guard let count = Base64.decodedCount(letters.count) else { return nil }
            number(UInt32(count))
            let range = place..<place + count
            place = range.upperBound
            let bytes = room.assumingMemoryBound(to: UInt8.self)
            return Base64.decodeURL(.init(rebasing: text[letters]), into: .init(rebasing: bytes[range])) ? range : nil
        }
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ sealed: [UInt8], to bytes: inout [UInt8]) {
        append(UInt32(sealed.count), to: &bytes)
        bytes.append(contentsOf: sealed)
    }

    /// - Returns: nil for bytes that `pack` does not write.
    static func unpack(_ bytes: [UInt8]) -> JSONObject? {
        var reader = Reader(bytes: bytes[...])
        guard reader.take(1)?.first == mark, let count = reader.number(4), count <= SealedLimits.snapshotsMax
        else {
            return nil
        }
        var entity = SealedEntity(snapshots: [:])
        for _ in 0..<count {
            guard let position = reader.number(8), let text = reader.text() else { return nil }
            entity.snapshots[position] = text
        }
        guard let operations = reader.number(4) else { return nil }
        for _ in 0..<operations {
            guard let text = reader.text() else { return nil }
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

        /// Reads a number below 2^53.
        mutating func number(_ width: Int) -> Int? {
            guard let read = take(width) else { return nil }
            let number = read.reduce(0) { $0 << 8 | UInt64($1) }
            return number < 1 << 53 ? Int(number) : nil
        }

        mutating func text() -> String? {
            guard let count = number(4), let sealed = take(count) else { return nil }
            return Base64.encodeURL(Array(sealed))
        }
    }
}
