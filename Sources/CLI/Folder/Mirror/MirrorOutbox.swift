/// What a mirror has stored in its copy and the server has not acknowledged, with the message about it. "Sent" and
/// "removed" are printed when the server has acknowledged the edit, and never for a refused one. One entry per object.
struct MirrorOutbox: Sendable, Equatable {
    private struct Entry: Sendable, Equatable {
        let confirmed: String
        let kept: String
        var isKeptReported = false
    }

    private var entries = [String: Entry]()

    var isEmpty: Bool { entries.isEmpty }

    /// - Parameters:
    ///   - confirmed: printed once the server has acknowledged it.
    ///   - kept: printed once, while the connection is down.
    mutating func add(_ key: String, confirmed: String, kept: String) {
        entries[key] = Entry(confirmed: confirmed, kept: kept)
    }

    /// The lines to print now, in the order of the keys.
    ///
    /// - Parameters:
    ///   - waiting: objects with edits that the server has not acknowledged, including refused ones.
    ///   - refused: objects whose edits it refused: these are reported elsewhere.
    mutating func report(waiting: Set<String>, refused: Set<String>, isOffline: Bool) -> [String] {
        var lines = [String]()
        for key in entries.keys.sorted() {
            guard let entry = entries[key] else { continue }
            if refused.contains(key) {
                entries[key] = nil
            } else if !waiting.contains(key) {
                entries[key] = nil
                lines.append(entry.confirmed)
            } else if isOffline, !entry.isKeptReported {
                entries[key]?.isKeptReported = true
                lines.append(entry.kept)
            }
        }
        return lines
    }
}
