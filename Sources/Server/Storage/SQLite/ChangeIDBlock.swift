/// Keyed hashes of ccids with the positions of their changes, ascending by hash: the content of one blob of `idrun` or
/// `idset`. Layout, little-endian: for each entry the hash (8 bytes) and the gid (8 bytes).
struct ChangeIDBlock: Sendable {
    static let entryBytes = 16

    let bytes: [UInt8]

    init(_ bytes: [UInt8]) throws(StoreError) {
        guard bytes.count.isMultiple(of: Self.entryBytes) else {
            throw StoreError(.corrupt, "a block of ccids ends within an entry")
        }
        self.bytes = bytes
    }

    /// - Parameter entries: ascending by hash.
    init(sorted entries: some Sequence<ChangeIDEntry>) {
        var bytes = [UInt8]()
        for entry in entries {
            withUnsafeBytes(of: entry.hash.littleEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: entry.gid.littleEndian) { bytes.append(contentsOf: $0) }
        }
        self.bytes = bytes
    }

    var count: Int { bytes.count / Self.entryBytes }

    func entry(_ place: Int) -> ChangeIDEntry {
        bytes.withUnsafeBytes { raw in
            ChangeIDEntry(hash: Self.hash(raw, place), gid: Self.gid(raw, place))
        }
    }

    var entries: [ChangeIDEntry] { (0..<count).map(entry) }

    /// Position of the change with this hash; nil when the block does not contain it.
    func position(of wanted: UInt64) -> GlobalID? {
        bytes.withUnsafeBytes { raw in
            var low = 0
            var high = raw.count / Self.entryBytes
            while low < high {
                let middle = (low + high) / 2
                if Self.hash(raw, middle) < wanted { low = middle + 1 } else { high = middle }
            }
            guard low < raw.count / Self.entryBytes, Self.hash(raw, low) == wanted else { return nil }
            return Self.gid(raw, low)
        }
    }

    private static func hash(_ raw: UnsafeRawBufferPointer, _ place: Int) -> UInt64 {
        UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: place * entryBytes, as: UInt64.self))
    }

    private static func gid(_ raw: UnsafeRawBufferPointer, _ place: Int) -> GlobalID {
        Int64(littleEndian: raw.loadUnaligned(fromByteOffset: place * entryBytes + 8, as: Int64.self))
    }
}

extension UInt64 {
    /// The value as an SQLite column holds it: SQLite's integers are signed, so the top bit is flipped to keep the
    /// order.
    var column: Int64 { Int64(bitPattern: self ^ 1 << 63) }

    init(column: Int64) { self = UInt64(bitPattern: column) ^ 1 << 63 }
}
