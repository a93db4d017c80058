import ThicketProtocol

/// One blob of bodies, newest change first, so that an index page with data is one sequential read.
///
/// A copy, never the only place of a body: it can be deleted and built again at any time.
/// Layout, little-endian: "TKS1", count (4 bytes); then for each object, newest first, gid (8), start (4) and length
/// (4) of its entry; then the entries: version (8), length of the key (2), key, body.
struct Segment: Sendable {
    private static let mark: [UInt8] = Array("TKS1".utf8)
    private static let placeBytes = 16
    private static let entryHeadBytes = 10

    private let content: [UInt8]
    let count: Int
    /// Bytes in memory.
    var byteCount: Int { content.count }

    /// nil when the blob does not have this layout.
    init?(_ content: [UInt8]) {
        guard content.count >= 8, Array(content[0..<4]) == Self.mark else { return nil }
        self.content = content
        count = Int(Self.number(content, 4, UInt32.self))
        guard content.count >= 8 + count * Self.placeBytes else { return nil }
        for place in 0..<count {
            let (start, length) = range(place)
            guard start >= 8, length >= Self.entryHeadBytes, start + length <= content.count,
                Self.entryHeadBytes + keyBytes(start) <= length
            else { return nil }
        }
    }

    func gid(_ place: Int) -> GlobalID { Self.number(content, 8 + place * Self.placeBytes, Int64.self) }
    func version(_ place: Int) -> Version { Self.number(content, range(place).start, Int64.self) }
    func key(_ place: Int) -> String {
        let start = range(place).start
        let keyStart = start + Self.entryHeadBytes
        return String(decoding: content[keyStart..<keyStart + keyBytes(start)], as: UTF8.self)
    }

    func body(_ place: Int) -> [UInt8] {
        let (start, length) = range(place)
        return Array(content[start + Self.entryHeadBytes + keyBytes(start)..<start + length])
    }

    /// The body after change `wanted`; nil if the segment does not contain it.
    func body(of wanted: GlobalID) -> [UInt8]? {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if gid(middle) > wanted { low = middle + 1 } else { high = middle }
        }
        return low < count && gid(low) == wanted ? body(low) : nil
    }

    private func range(_ place: Int) -> (start: Int, length: Int) {
        let at = 8 + place * Self.placeBytes + 8
        return (Int(Self.number(content, at, UInt32.self)), Int(Self.number(content, at + 4, UInt32.self)))
    }

    private func keyBytes(_ start: Int) -> Int { Int(Self.number(content, start + 8, UInt16.self)) }

    private static func number<Number: FixedWidthInteger>(_ bytes: [UInt8], _ at: Int, _ type: Number.Type) -> Number {
        bytes.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(fromByteOffset: at, as: type)) }
    }

    /// Builds one blob. Objects may be added in any order.
    struct Builder {
        private var objects = [(gid: GlobalID, start: Int, length: Int)]()
        private var entries = [UInt8]()

        var count: Int { objects.count }
        /// Bytes of entries so far.
        var byteCount: Int { entries.count }
        var newest: GlobalID { objects.map(\.gid).max() ?? 0 }

        mutating func add(_ gid: GlobalID, _ version: Version, _ key: EntityKey, _ body: [UInt8]) {
            let start = entries.count
            append(version, to: &entries)
            append(UInt16(key.text.utf8.count), to: &entries)
            entries.append(contentsOf: key.text.utf8)
            entries.append(contentsOf: body)
            objects.append((gid, start, entries.count - start))
        }

        func content() -> [UInt8] {
            let head = 8 + objects.count * Segment.placeBytes
            var bytes: [UInt8] = Segment.mark
            bytes.reserveCapacity(head + entries.count)
            append(UInt32(objects.count), to: &bytes)
            for object in objects.sorted(by: { $0.gid > $1.gid }) {
                append(object.gid, to: &bytes)
                append(UInt32(head + object.start), to: &bytes)
                append(UInt32(object.length), to: &bytes)
            }
            bytes.append(contentsOf: entries)
            return bytes
        }

        private func append<Number: FixedWidthInteger>(_ number: Number, to bytes: inout [UInt8]) {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }
    }
}
