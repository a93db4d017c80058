import ThicketClient
import ThicketCommandLine
import ThicketProtocol

extension OpenBucket {
    /// What a sealed bucket has to tell comes once: a command that waits for something else tells it at its end.
    func tellUnheard() async {
        guard isSealed else { return }
        for event: BucketEvent in await bucket.unheard() {
            for line: String in Self.lines(event) { Terminal.writeError("\(name)/\(line)\n") }
        }
        // What cannot be read here is told by the command itself.
        guard let problems: [String] = try? await bucket.problems(), !problems.isEmpty else { return }
        let what: String = problems.count == 1 ? "1 object is" : "\(problems.count) objects are"
        Terminal.writeError("\(name): \(what) read-only until you choose: thicket repair \(name)\n")
    }

    /// For a person; what gave way stands in it whole, since it is nowhere else.
    static func lines(_ event: BucketEvent) -> [String] {
        switch event {
        case .integrity(let report): [report.key + ": " + report.detail]
        case .conflict(let report): conflict(report)
        case .overrun(let missed): ["…: \(missed) more conflicts and alarms came too fast to be told"]
        default: []
        }
    }

    private static func conflict(_ report: ConflictReport) -> [String] {
        let place: String = report.path.isEmpty ? "" : " at " + report.path.joined(separator: ".")
        guard let losing: JSONValue = report.losing else {
            return ["\(report.key): two edits met\(place), and a deletion gave way"]
        }
        return ["\(report.key): two edits met\(place), and this gave way: \(losing.serializedText)"]
    }
}
