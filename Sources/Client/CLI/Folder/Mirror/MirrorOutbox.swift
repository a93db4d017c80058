/// What a mirror has stored in its copy and the server has not confirmed, with what is said about it. "Sent" and
/// "removed" are said when the server has confirmed, and never of what it refused. One entry an object.
struct MirrorOutbox: Sendable, Equatable {
    private struct Entry: Sendable, Equatable {
        let confirmed: String
        let kept: String
        var isKeptTold = false
    }

    private var entries = [String: Entry]()

    var isEmpty: Bool { entries.isEmpty }

    /// - Parameters:
    ///   - confirmed: said once the server has confirmed it.
    ///   - kept: said once, while there is no connection.
    mutating func add(_ key: String, confirmed: String, kept: String) {
        entries[key] = Entry(confirmed: confirmed, kept: kept)
    }

    /// What is to be said now, in the order of the keys.
    ///
    /// - Parameters:
    ///   - waiting: objects with edits that the server has not confirmed, refused ones among them.
    ///   - refused: objects whose edits it refused: they are told elsewhere.
    mutating func tell(waiting: Set<String>, refused: Set<String>, isOffline: Bool) -> [String] {
        var lines = [String]()
        for key in entries.keys.sorted() {
            guard let entry = entries[key] else { continue }
            if refused.contains(key) {
                entries[key] = nil
            } else if !waiting.contains(key) {
                entries[key] = nil
                lines.append(entry.confirmed)
            } else if isOffline, !entry.isKeptTold {
                entries[key]?.isKeptTold = true
                lines.append(entry.kept)
            }
        }
        return lines
    }
}
