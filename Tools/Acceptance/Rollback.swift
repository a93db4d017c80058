import Glibc
import ThicketProcesses

/// A server is restored from yesterday's backup, while devices have today's changes. Nothing that was confirmed after
/// the backup is lost from the devices, each loss of the server is reported, and afterwards the server has it again.
/// Then all that the server, its backups and the devices have on disk is searched for names and contents.
public struct Rollback {
    private static let canaries = [
        (name: "a name", text: "canary-name-of-a-recipe"), (name: "a folder", text: "canary-folder-of-soups"),
        (name: "a small content", text: "canary-content-in-the-record"),
        (name: "a large content", text: "canary-content-in-a-blob"), (name: "a new name", text: "canary-name-of-today"),
    ]

    private let stand: TreeStand
    private var result = AcceptanceResult()

    public init() throws(ProcessError) { stand = try TreeStand() }

    public mutating func run() throws(ProcessError) -> AcceptanceResult {
        try stand.signUp("home", "other")
        try yesterday()
        try today()
        let before = try listing("home")
        result.expect(try listing("other") == before, "the devices differ before the restore")
        try restore()
        try comeBack()
        let after = try listing("home")
        result.expect(try listing("other") == after, "the devices differ after the restore")
        for line in before where !after.contains(line) { result.faults.append("gone after the restore: \(line)") }
        try readContents()
        try searchSecrets()
        result.faults += try stand.checkFaults()
        return result
    }

    /// A container with a small and a large content, and others that today changes. The backup is made while the server
    /// runs.
    private func yesterday() throws(ProcessError) {
        try stand.shell(
            """
            mkdir -p in/canary-folder-of-soups/empty && cd in/canary-folder-of-soups && \
            echo canary-content-in-the-record >canary-name-of-a-recipe && echo first >changed && echo x >moved && \
            for i in $(seq 2000); do echo "canary-content-in-a-blob $i"; done >large && echo y >removed
            """)
        try stand.tree("home", "put", "-r", stand.path("in"), "in")
        try stand.tree("other", "pull", "--content")
        try Daemon.command(stand.data, ["backup", stand.path("yesterday.db")], succeeding: true)
    }

    /// A content that fits into a record becomes a large one, and a large one is new: the devices have the only copies.
    private func today() throws(ProcessError) {
        let folder = "in/canary-folder-of-soups"
        try stand.shell(
            "seq 6000 >changed && for i in $(seq 2000); do echo \"canary-content-in-a-blob $i\"; done >today")
        try stand.tree("home", "put", stand.path("changed"), "\(folder)/changed")
        try stand.tree("home", "put", stand.path("today"), "canary-name-of-today")
        try stand.tree("home", "mkdir", "\(folder)/empty/new")
        try stand.tree("other", "mv", "\(folder)/moved", "moved")
        try stand.tree("other", "rm", "\(folder)/removed")
        for home in ["home", "other"] { try stand.tree(home, "pull", "--content") }
    }

    private func restore() throws(ProcessError) {
        try stand.server.terminate()
        try Daemon.command(stand.data, ["restore", stand.path("yesterday.db")], succeeding: true)
        try stand.server.start()
    }

    /// Each device catches up, reports what the server has lost, and sends it again.
    private mutating func comeBack() throws(ProcessError) {
        var reported = 0
        for home in ["home", "other"] {
            let pull = try stand.run(home, "pull")
            let waiting = try stand.tree(home, "queue").split(separator: "\n").count
            // 4: changes wait for a decision, and each of them is named.
            result.expect(
                waiting == 0 || pull.code == 4 && pull.errors.contains("home/"),
                "\(home): \(waiting) changes wait, and pull ended with \(pull.code ?? -1): \(pull.errors)")
            reported += waiting
            let lost = try stand.run(home, "cat", "--offline", "canary-name-of-today").output
            result.expect(lost.hasSuffix("canary-content-in-a-blob 2000\n"), "\(home): a lost content cannot be read")
            if waiting > 0 { try stand.tree(home, "queue", "retry") }
        }
        for home in ["home", "other", "home"] {
            let pull = try stand.run(home, "pull")
            result.expect(pull.code == 0, "\(home): \(pull)")
        }
        result.expect(reported >= 4, "only \(reported) losses were reported")
        result.summary += "\(reported) changes of today were reported and sent again; "
    }

    private func listing(_ home: String) throws(ProcessError) -> [Substring] {
        try stand.tree(home, "find").split(separator: "\n")
    }

    private mutating func readContents() throws(ProcessError) {
        let folder = "in/canary-folder-of-soups"
        try stand.thicket(["login"] + stand.loginWords, "new", isSecret: true)
        for home in ["home", "other", "new"] {
            try stand.tree(home, "get", "canary-name-of-today", stand.path("\(home)-today"))
            try stand.tree(home, "get", "\(folder)/large", stand.path("\(home)-large"))
            try stand.tree(home, "get", "\(folder)/changed", stand.path("\(home)-changed"))
            try stand.shell(
                "cmp today \(home)-today && cmp changed \(home)-changed && cmp \(folder)/large \(home)-large")
            for (path, text) in [
                ("moved", "x\n"),
                ("\(folder)/canary-name-of-a-recipe", "canary-content-in-the-record\n"),
            ] {
                let content = try stand.tree(home, "cat", path)
                result.expect(content == text, "\(home): \(path) is '\(content)'")
            }
        }
        let fresh = try listing("new")
        result.expect(try listing("home") == fresh, "a new device has another tree")
        // A removal that the server has forgotten comes back with the backup, visibly.
        result.expect(fresh.contains("home/in/canary-folder-of-soups/empty/new"), "a new container is gone")
    }

    private mutating func searchSecrets() throws(ProcessError) {
        try Daemon.command(stand.data, ["backup", stand.path("second.db")], succeeding: true)
        let metrics = (try? PlainHTTP.get("/metrics", port: stand.server.port)) ?? ""
        try stand.server.terminate()
        try stand.shell("mkdir backups && mv yesterday.db* second.db* backups")
        var sweep = CanarySweep(Self.canaries)
        result.expect(sweep.finds(stand.path("today")), "the search finds nothing in the clear file")
        for folder in ["data", "backups", "home", "other", "new"] { try sweep.read(folder, of: stand) }
        sweep.read(stand.server.log, place: "the server's log")
        sweep.read(metrics, place: "the metrics")
        result.faults += sweep.findings.map { "found: \($0)" }
        result.expect(sweep.filesRead > 20, "only \(sweep.filesRead) files were searched")
        result.summary += "\(sweep.filesRead) files of server, backups and devices searched for 5 secrets"
    }
}
