import Glibc
import ThicketReplay

/// Whole recorded typing sessions, one change per edit, through real clients with SQLite stores.
///
/// The sessions are third-party data, found through `THICKET_VECTORS` (default `../shared/vectors`).
func traces() async throws -> [Figure] {
    let root: String = getenv("THICKET_VECTORS").map { String(cString: $0) } ?? "../shared/vectors"
    var figures: [Figure] = []
    for name: String in ["friendsforever", "sveltecomponent", "automerge-paper"] {
        let path = "\(root)/editing-traces/\(name).json.gz"
        guard access(path, R_OK) == 0 else {
            throw BenchMissing("there is no \(path): name the folder of test data in THICKET_VECTORS")
        }
        let trace = try Trace(path: path)
        let server = try BenchServer(users: 1)
        var options: Replay.Options = Replay.Options(
            server: server.process.address, app: BenchServer.app, token: server.tokens[0], key: "page")
        let folder: String = server.process.folder
        options.store = { $0 < 0 ? .memory : .file("\(folder)/client\($0).db") }
        let report: Replay.Report = try await Replay(trace, options: options).run()
        if let difference: Replay.Difference = report.difference { throw BenchError("\(name): \(difference)") }
        figures.append(Figure(name: "\(name), \(report.edits) edits", value: report.seconds, unit: "s"))
        figures.append(Figure(name: "\(name): edits", value: Double(report.edits) / report.seconds, unit: "1/s"))
        figures.append(Figure(name: "\(name): sent", value: Double(report.bytesSent) / 1_048_576, unit: "MiB"))
    }
    return figures
}
