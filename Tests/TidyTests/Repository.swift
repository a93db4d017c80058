import Glibc

/// The files of this package, read from where it was compiled.
enum Repository {
    /// Folder of `Package.swift`.
    static let root = {
        var parts = #filePath.split(separator: "/")
        parts.removeLast(3)
        return "/" + parts.joined(separator: "/")
    }()

    /// Foreign files, and files made by tools.
    private static let passedOver: Set<String> = [
        ".git", ".build", ".swiftpm", ".work", "artifacts", "__pycache__", "Package.resolved",
    ]

    /// Paths of all files below a folder, relative to the root, sorted.
    static func files(_ folder: String = "", ending: String = "") -> [String] {
        var found = [String]()
        walk(folder, &found)
        return found.filter { (path: String) in path.hasSuffix(ending) }.sorted()
    }

    static func text(_ path: String) -> String? {
        exists(path) ? String(decoding: bytes(path), as: UTF8.self) : nil
    }

    /// Empty when there is no such file.
    static func bytes(_ path: String) -> [UInt8] {
        let file = open(root + "/" + path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = read(file, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
        return bytes
    }

    static func lines(_ path: String) -> [Substring] {
        text(path)?.split(separator: "\n", omittingEmptySubsequences: false) ?? []
    }

    /// Whether a path (relative to the root) exists.
    static func exists(_ path: String) -> Bool { access(root + "/" + path, F_OK) == 0 }

    private static func walk(_ folder: String, _ found: inout [String]) {
        guard let open = opendir(root + "/" + folder) else { return }
        defer { closedir(open) }
        while let entry = readdir(open) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { (bytes: UnsafeRawBufferPointer) in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name != ".", name != "..", !passedOver.contains(name) else { continue }
            guard !name.hasPrefix("Package@") else { continue }
            let path = folder.isEmpty ? name : folder + "/" + name
            if Int32(entry.pointee.d_type) == Int32(DT_DIR) { walk(path, &found) } else { found.append(path) }
        }
    }
}
