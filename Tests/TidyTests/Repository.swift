import Glibc

/// The files of this package, read from where it was compiled.
enum Repository {
    /// Folder of `Package.swift`.
    static let root: String = {
        var parts: [Substring] = #filePath.split(separator: "/")
        parts.removeLast(3)
        return "/" + parts.joined(separator: "/")
    }()

    /// What is not ours, or made by tools.
    private static let passedOver: Set<String> = [
        ".git", ".build", ".swiftpm", ".work", "artifacts", "__pycache__", "Package.resolved",
    ]

    /// Paths of all files below a folder, relative to the root, sorted.
    static func files(_ folder: String = "", ending: String = "") -> [String] {
        var found: [String] = []
        walk(folder, &found)
        return found.filter { (path: String) in path.hasSuffix(ending) }.sorted()
    }

    static func text(_ path: String) -> String? {
        let file: Int32 = open(root + "/" + path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk: [UInt8] = .init(repeating: 0, count: 1 << 16)
        while case let count = read(file, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func lines(_ path: String) -> [Substring] {
        text(path)?.split(separator: "\n", omittingEmptySubsequences: false) ?? []
    }

    /// Whether a path (relative to the root) exists.
    static func exists(_ path: String) -> Bool { access(root + "/" + path, F_OK) == 0 }

    private static func walk(_ folder: String, _ found: inout [String]) {
        guard let open: OpaquePointer = opendir(root + "/" + folder) else { return }
        defer { closedir(open) }
        while let entry: UnsafeMutablePointer<dirent> = readdir(open) {
            let name: String = withUnsafeBytes(of: entry.pointee.d_name) { (bytes: UnsafeRawBufferPointer) in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name != ".", name != "..", !passedOver.contains(name) else { continue }
            guard !name.hasPrefix("Package@") else { continue }
            let path: String = folder.isEmpty ? name : folder + "/" + name
            if Int32(entry.pointee.d_type) == Int32(DT_DIR) { walk(path, &found) } else { found.append(path) }
        }
    }
}

/// Swift source with comments and the insides of string literals blanked, line by line, so that rules about code do
/// not trip over words.
enum SwiftText {
    static func code(_ path: String) -> [String] {
        var result: [String] = []
        var isInText: Bool = false
        var commentDepth: Int = 0
        for line: Substring in Repository.lines(path) {
            result.append(stripped(line, &isInText, &commentDepth))
        }
        return result
    }

    /// - Parameters:
    ///   - isInText: within a literal of three quotes.
    ///   - commentDepth: of comments with stars.
    private static func stripped(_ line: Substring, _ isInText: inout Bool, _ commentDepth: inout Int) -> String {
        var code: String = ""
        var rest: Substring = line
        var isInString: Bool = false
        while let first: Character = rest.first {
            if commentDepth > 0 {
                if rest.hasPrefix("*/") { commentDepth -= 1 }
                rest = rest.dropFirst(rest.hasPrefix("*/") ? 2 : 1)
            } else if rest.hasPrefix("\"\"\"") {
                isInText.toggle()
                rest = rest.dropFirst(3)
            } else if isInText {
                rest = rest.dropFirst()
            } else if isInString {
                if first == "\\" { rest = rest.dropFirst() }
                if first == "\"" { isInString = false }
                rest = rest.dropFirst()
            } else if first == "\"" {
                isInString = true
                code.append("\"\"")
                rest = rest.dropFirst()
            } else if rest.hasPrefix("//") {
                break
            } else if rest.hasPrefix("/*") {
                commentDepth += 1
                rest = rest.dropFirst(2)
            } else {
                code.append(first)
                rest = rest.dropFirst()
            }
        }
        return code
    }
}
