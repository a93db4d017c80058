import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// The buckets that a command has opened: where it fails, they are closed all the same, so that what comes once is
/// told.
final class OpenedBuckets: Sendable {
    private let buckets: Mutex<[OpenBucket]> = Mutex([])

    func add(_ bucket: OpenBucket) { buckets.withLock { $0.append(bucket) } }

    func close() async {
        let all: [OpenBucket] = buckets.withLock { $0 }
        for bucket in all { await bucket.close() }
    }

    /// The code for edits that are refused and kept, of all buckets that were closed; nil: there are none.
    var refusalCode: ExitCode? {
        let codes: [ExitCode] = buckets.withLock { $0 }.compactMap(\.refusals.code)
        return codes.contains(.refused) ? .refused : codes.first
    }
}

extension OpenBucket {
    /// What a bucket has to tell comes once: a command that waits for something else tells it at its end.
    func tellUnheard() async {
        for event in await bucket.unheard() { Self.tell(event, in: name) }
        guard isSealed else { return }
        // What cannot be read here is told by the command itself.
        guard let problems = try? await bucket.problems(), !problems.isEmpty else { return }
        let what = problems.count == 1 ? "1 object is" : "\(problems.count) objects are"
        Terminal.writeError("\(name): \(what) read-only until you choose: \(repair)\n")
    }

    /// On standard error. What others have written must not drive the terminal; a file gets it as it is.
    static func tell(_ event: BucketEvent, in bucket: String? = nil) {
        for line in lines(event, in: bucket) { Terminal.writeError(line + "\n") }
    }

    /// For a person; what gave way stands in it whole, since it is nowhere else.
    ///
    /// - Parameter bucket: the bucket's name, to be told with the object's.
    static func lines(_ event: BucketEvent, in bucket: String? = nil) -> [String] {
        switch event {
        case .integrity(let report): [place(report.key, bucket) + report.detail]
        case .conflict(let report): [place(report.key, bucket) + outcome(report)]
        case .overrun(let missed): [place("", bucket) + "\(missed) more conflicts and alarms came too fast to be told"]
        default: []
        }
    }

    /// What the words are about; an alarm about the bucket as a whole has no key.
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
