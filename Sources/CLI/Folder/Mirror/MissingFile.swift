/// What has happened to a mirrored file that a scan of its folder has not found: only a file that is gone counts as
/// deleted.
enum MissingFile: Equatable {
    case gone
    /// The file exists again.
    case there
    /// The path is blocked, or the file system finds the file under another name.
    case hidden(String)

    /// The state of a file that the file system finds by its name, though the listing may differ.
    ///
    /// - Parameters:
    ///   - entries: the names that the folder lists.
    ///   - isMirrored: whether an object of this key was mirrored.
    init(_ file: FileName, among entries: [String], isMirrored: (String) -> Bool) {
        if entries.contains(where: { same($0, file.name) }) {
            let isStillOfKey = (try? FileName(file: file.name)).map { same($0.key, file.key) } ?? false
            self = isStillOfKey ? .there : .hidden("it is the file of another object now: rename it")
            return
        }
        guard let other = FolderScan.alias(of: file.name, among: entries) else {
            self = .hidden("the folder does not list it, and has it nevertheless")
            return
        }
        // Another name for the same file: only its case was changed. If two objects share one file, the folder has lost
        // one of them.
        let isOther = (try? FileName(file: other)).map { isMirrored($0.key) } ?? false
        self = isOther ? .hidden("this folder does not distinguish its name from \(other)") : .gone
    }
}
