import Glibc
import ThicketProtocol

/// Third-party test data, named by `THICKET_VECTORS` (default `../shared/vectors` beside the package).
///
/// A test that needs it is skipped by name where it is missing: `.enabled(if: Vectors.has("jsondiff"))`.
public enum Vectors {
    public static let root: String = {
        if let named = getenv("THICKET_VECTORS") { return String(cString: named) }
        return "../shared/vectors"
    }()

    public static func path(_ name: String) -> String { "\(root)/\(name)" }
    public static func has(_ name: String) -> Bool { access(path(name), R_OK) == 0 }

    /// A file of the test data.
    public static func bytes(_ name: String) throws -> [UInt8] {
        guard let file = fopen(path(name), "r") else { throw NotReadable(name: name) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk: [UInt8] = Array(repeating: 0, count: 1 << 16)
        while true {
            let count: Int = fread(&chunk, 1, chunk.count, file)
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
    }

    /// A file of JSON.
    public static func json(_ name: String) throws -> JSONValue { try JSONValue(parsing: bytes(name)) }

    public struct NotReadable: Error { let name: String }
}
