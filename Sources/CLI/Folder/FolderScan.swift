/// The files of a folder that correspond to objects.
struct FolderScan: Sendable {
    /// Files by key.
    var files = [String: FileName]()
    /// The files that are left out, each with the reason, in byte order.
    var problems = [(name: String, reason: String)]()

    /// - Parameter preferred: for each key, the name that wins when several files map to it.
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

    /// The entry under which a file system has a file that it finds as `name` without listing that name: the file
    /// system ignores case, or the Unicode composition of accents.
    ///
    /// - Returns: nil when `name` is listed, or no entry resembles it.
    static func alias(of name: String, among entries: [String]) -> String? {
        guard !entries.contains(where: { same($0, name) }) else { return nil }
        // Swift compares strings by canonical equivalence: a difference in the composition of accents is not one to it.
        return entries.first { $0.lowercased() == name.lowercased() }
    }

    /// The files, in byte order of their keys.
    var sorted: [FileName] { files.values.sorted { $0.key < $1.key } }
}
