import ThicketProcesses
import ThicketThreats

/// The search for secrets in all files of a stand: names, contents and what is made of them, in all spellings.
struct CanarySweep {
    private let search: CanarySearch
    private(set) var filesRead = 0
    private(set) var findings: [String] = []

    init(_ secrets: [(name: String, text: String)]) {
        search = CanarySearch(secrets.map { Canary($0.name, $0.text) })
    }

    /// Searches all files below a folder of the stand, and their names.
    mutating func read(_ folder: String, of stand: TreeStand) throws(ProcessError) {
        let files = try stand.files(below: folder)
        findings += search.findings(
            in: Array(files.joined(separator: "\n").utf8), place: "the names of files in \(folder)")
        for file in files {
            guard let bytes = TreeStand.bytes(of: file) else { continue }
            filesRead += 1
            findings += search.findings(in: bytes, place: file)
        }
    }

    mutating func read(_ text: String, place: String) {
        findings += search.findings(in: Array(text.utf8), place: place)
    }

    /// Whether the search finds something where it is.
    func finds(_ path: String) -> Bool { !search.found(in: TreeStand.bytes(of: path) ?? []).isEmpty }
}
