import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// The buckets that a command has opened: they are closed also when the command fails, so that events that are
/// delivered only once are shown.
final class OpenedBuckets: Sendable {
    private let buckets: Mutex<[OpenBucket]> = Mutex([])

    func add(_ bucket: OpenBucket) { buckets.withLock { $0.append(bucket) } }

    func close() async {
        let all: [OpenBucket] = buckets.withLock { $0 }
        for bucket in all { await bucket.close() }
    }

    /// The exit code for edits that are refused and kept in all closed buckets; nil: no such edits.
    var refusalCode: ExitCode? {
        let codes: [ExitCode] = buckets.withLock { $0 }.compactMap(\.refusals.code)
        return codes.contains(.refused) ? .refused : codes.first
    }
}

extension OpenBucket {
    /// A bucket delivers each event only once: a command that does not follow the events prints them at its end.
    func reportUndelivered() async {
        for event in await bucket.undelivered() { Self.report(event, in: name) }
        guard isSealed else { return }
        // An error is dropped: the command itself reports that the bucket cannot be read.
        guard let problems = try? await bucket.problems(), !problems.isEmpty else { return }
        let what = problems.count == 1 ? "1 object is" : "\(problems.count) objects are"
        Terminal.writeError("\(name): \(what) read-only until you choose: \(repair)\n")
    }

    /// Prints an event on standard error. On a terminal, text of other users must not act as control sequences; a file
    /// gets it unchanged.
    static func report(_ event: BucketEvent, in bucket: String? = nil) {
        for line in lines(event, in: bucket) { Terminal.writeError(line + "\n") }
    }

    /// The lines for a person. They contain a conflicting value in full, since it is stored nowhere else.
    ///
    /// - Parameter bucket: the bucket's name, printed with the object's.
    static func lines(_ event: BucketEvent, in bucket: String? = nil) -> [String] {
        switch event {
        case .integrity(let report): [place(report.key, bucket) + report.detail]
        case .conflict(let report): [place(report.key, bucket) + outcome(report)]
        case .overrun(let missed): [place("", bucket) + "\(missed) more conflicts and alarms came too fast to be shown"]
        default: []
        }
    }

    /// The object or bucket that a line is about; an alarm about the bucket as a whole has no key.
    private static func place(_ key: String, _ bucket: String?) -> String {
        let names = [bucket, key.isEmpty ? nil : key].compactMap { $0 }
        return names.isEmpty ? "" : names.joined(separator: "/") + ": "
    }

    private static func outcome(_ report: ConflictReport) -> String {
        let place = report.path.isEmpty ? "" : " at " + report.path.joined(separator: ".")
        guard let losing = report.losing else { return "two edits met\(place), and a deletion gave way" }
        return "two edits met\(place), and this gave way: \(losing.serializedText)"
    }
}
