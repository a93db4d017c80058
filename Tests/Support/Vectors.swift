import Glibc

/// Third-party test data, named by `THICKET_VECTORS` (default `../shared/vectors` beside the package).
///
/// A test that needs it is skipped by name where it is missing: `.enabled(if: Vectors.has("jsondiff"))`.
public enum Vectors {
    public static let root: String = {
        if let named: UnsafeMutablePointer<CChar> = getenv("THICKET_VECTORS") { return String(cString: named) }
        return "../shared/vectors"
    }()

    public static func path(_ name: String) -> String { "\(root)/\(name)" }
    public static func has(_ name: String) -> Bool { access(path(name), R_OK) == 0 }
}
