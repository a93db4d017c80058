import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// One line of an object's history: a version, or the removal that made one.
enum HistoryStep {
    case version(ObjectVersion)
    case removal(RemovedObject)

    var number: Int64 {
        switch self {
        case .version(let version): version.version
        case .removal(let removal): removal.version
        }
    }

    /// Versions and removals in one list, newest first.
    ///
    /// - Parameters:
    ///   - versions: newest first, from a query of the last `limit` versions.
    ///   - removals: newest first; those older than the last `limit` versions are left out.
    static func merged(_ versions: [ObjectVersion], _ removals: [RemovedObject], limit: Int) -> [HistoryStep] {
        let steps = versions.map(HistoryStep.version) + removals.map(HistoryStep.removal)
        let newest = steps.map(\.number).max() ?? 0
        return steps.filter { $0.number > newest - Int64(limit) }.sorted { $0.number > $1.number }
    }

    /// For a program: `{"version","object"}`, or `{"version","removed":true,"removedAt"}`.
    var json: String {
        switch self {
        case .version(let version):
            let row: JSONObject = ["version": .number(JSONNumber(version.version)), "object": .object(version.object)]
            return JSONValue.object(row).serializedText + "\n"
        case .removal(let removal):
            var row: JSONObject = ["version": .number(JSONNumber(removal.version)), "removed": true]
            row["removedAt"] = removal.removedAt.map { .number(JSONNumber($0)) } ?? .null
            return JSONValue.object(row).serializedText + "\n"
        }
    }

    /// For a person.
    ///
    /// - Parameter before: the previous step, with which `isDiff` compares.
    func text(after before: HistoryStep?, isDiff: Bool) -> String {
        switch self {
        case .removal(let removal): return "v\(removal.version)  removed\(RemovedObjects.time(removal))\n"
        case .version(let version):
            guard isDiff, let before else { return Self.text(version) }
            guard case .version(let older) = before else { return Self.text(version, from: nil) }
            return Self.text(version, from: older)
        }
    }

    private static var columns: Int { max(40, Terminal.columns(Terminal.standardOutput)) }

    private static func text(_ version: ObjectVersion) -> String {
        let start = "v\(version.version)  "
        return start + Screen.line(.object(version.object), columns: columns - start.utf8.count - 1) + "\n"
    }

    /// What the version changed; after a removal, its whole content.
    private static func text(_ version: ObjectVersion, from older: ObjectVersion?) -> String {
        let base = older?.object ?? JSONObject()
        var text = "v\(version.version)\n"
        let lines = DiffText.lines(JSONDiff.diff(from: base, to: version.object), from: base, columns: columns - 6)
        for line in lines { text += "    \(line)\n" }
        if lines.isEmpty { text += older.map { "    as v\($0.version)\n" } ?? "    nothing in it\n" }
        return text
    }
}
