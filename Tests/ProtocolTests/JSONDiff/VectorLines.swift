import Glibc
import ThicketProtocol
import ThicketTestSupport

/// The recorded cases of `jsondiff`, one JSON object per line.
enum DiffVectors {
    /// Reported as skipped where the third-party vectors are missing.
    static let arePresent = Vectors.has("jsondiff/diff.jsonl") && Vectors.has("jsondiff/transform.jsonl")

    static func cases(_ name: String) throws -> [JSONValue] {
        let bytes = try read(Vectors.path("jsondiff/\(name).jsonl"))
        return try bytes.split(separator: 0x0A).map { line in
            // Two lines hold half a surrogate pair, in the outcome of an older version.
            try (try? JSONValue(parsing: Array(line))) ?? JSONValue(parsing: withoutVariants(Array(line)))
        }
    }

    /// Removes the outcome of other versions, which is at the end.
    private static func withoutVariants(_ line: [UInt8]) -> [UInt8] {
        let mark: [UInt8] = Array(#","jsondiff":"#.utf8)
        guard line.count > mark.count else { return line }
        let start: Int? = (0..<(line.count - mark.count)).first {
            line[$0] == mark[0] && line[$0...].starts(with: mark)
        }
        return start.map { line[..<$0] + [UInt8(ascii: "}")] } ?? line
    }

    struct NotReadable: Error { let path: String }

    private static func read(_ path: String) throws -> [UInt8] {
        guard let file = fopen(path, "r") else { throw NotReadable(path: path) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk: [UInt8] = Array(repeating: 0, count: 1 << 16)
        while true {
            let count: Int = fread(&chunk, 1, chunk.count, file)
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
    }
}
