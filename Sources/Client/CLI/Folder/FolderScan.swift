/// The files of a folder that belong to objects.
struct FolderScan: Sendable {
    /// Key → file.
    var files = [String: FileName]()
    /// What is not taken, each with the reason, in byte order.
    var problems = [(name: String, reason: String)]()

    /// - Parameter preferred: for each key, the name that wins when several files would be its object.
    init(_ names: [String], isFolder: (String) -> Bool, preferred: (String) -> String? = { _ in nil }) {
        for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            let file: FileName
            do throws(FileName.Problem) { file = try FileName(file: name) } catch {
                if error == .keyTooLong {
                    problems.append((name, "its name is too long for a key of \(FolderLimits.keyBytesMax) bytes"))
                }
                continue
            }
            guard !isFolder(name) else {
                problems.append((name, "it is a folder; only files are taken"))
                continue
            }
            guard let other = files[file.key] else {
                files[file.key] = file
                continue
            }
            let wins = preferred(file.key).map { same($0, file.name) } ?? false
            let (kept, left) = wins ? (file, other) : (other, file)
            files[file.key] = kept
            problems.append((left.name, "\(kept.name) is the same object '\(file.key)' already: rename one of the two"))
        }
    }

    /// The entry under which a file system holds a file that it finds as `name` without listing that name: it does not
    /// tell capitals from small letters, or one spelling of an accent from the other.
    ///
    /// - Returns: nil when `name` is listed, or nothing looks like it.
    static func alias(of name: String, among entries: [String]) -> String? {
        guard !entries.contains(where: { same($0, name) }) else { return nil }
        // Strings that differ in the spelling of accents alone are equal to Swift.
        return entries.first { $0.lowercased() == name.lowercased() }
    }

    /// The files, in byte order of their keys.
    var sorted: [FileName] { files.values.sorted { $0.key < $1.key } }
}
