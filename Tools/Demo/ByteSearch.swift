import Glibc

/// A search for bytes in files of any size.
struct ByteSearch {
    private static let chunkBytes = 4 << 20

    private var wanted: [(name: String, bytes: [UInt8])] = []

    var count: Int { wanted.count }

    mutating func add(_ name: String, _ bytes: [UInt8]) { wanted.append((name, bytes)) }

    /// Some bytes of a file.
    static func read(_ path: String, from place: Int, count: Int) throws -> [UInt8] {
        guard let file = fopen(path, "r") else { throw DemoError("cannot read \(path)") }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: count)
        guard fseek(file, place, SEEK_SET) == 0, fread(&bytes, 1, count, file) == count else {
            throw DemoError("\(path) is too short")
        }
        return bytes
    }

    /// The names of what is in the files or in their paths, each once.
    func found(in paths: [String]) throws -> Set<String> {
        var found = Set<String>()
        for path in paths {
            // The path of the data folder itself is not the server's.
            let name: [UInt8] = Array(path.split(separator: "/").suffix(2).joined(separator: "/").utf8)
            look(in: name, name.count, &found)
            try look(inFile: path, &found)
        }
        return found
    }

    private func look(inFile path: String, _ found: inout Set<String>) throws {
        guard let file = fopen(path, "r") else { throw DemoError("cannot read \(path)") }
        defer { fclose(file) }
        let overlap = max(0, (wanted.map(\.bytes.count).max() ?? 1) - 1)
        var chunk = [UInt8](repeating: 0, count: Self.chunkBytes + overlap)
        var kept = 0
        while true {
            let count = chunk.withUnsafeMutableBytes {
                fread($0.baseAddress.map { $0 + kept }, 1, Self.chunkBytes, file)
            }
            if count == 0 { return }
            look(in: chunk, kept + count, &found)
            let end = kept + count
            kept = min(overlap, end)
            chunk.replaceSubrange(0..<kept, with: chunk[(end - kept)..<end])
        }
    }

    private func look(in bytes: [UInt8], _ count: Int, _ found: inout Set<String>) {
        for (name, wanted) in wanted where !found.contains(name) {
            let isFound = bytes.withUnsafeBytes {
                Self.contains(UnsafeRawBufferPointer(rebasing: $0[..<count]), wanted)
            }
            if isFound { found.insert(name) }
        }
    }

    /// Fast in a debug build too: the C library searches.
    static func contains(_ bytes: UnsafeRawBufferPointer, _ wanted: [UInt8]) -> Bool {
        guard let base = bytes.baseAddress, let first = wanted.first, bytes.count >= wanted.count else { return false }
        var place = 0
        let last = bytes.count - wanted.count
        while place <= last, let found = memchr(base + place, Int32(first), last - place + 1) {
            if memcmp(found, wanted, wanted.count) == 0 { return true }
            place = UnsafeRawPointer(found) - base + 1
        }
        return false
    }
}
