import Glibc
import ThicketProtocol
import ThicketServer

/// The time of one large change on each thread that it passes: read, decided, written. No other change passes
/// meanwhile, so other tenants wait for these times beside large objects.
func largeChanges() throws -> [Figure] {
    try LargeChange.allCases.flatMap { try $0.measure(rounds: 20) }
}

private enum LargeChange: String, CaseIterable {
    case text = "text of 900 kB made"
    case members = "60,000 members made"
    case membersAgain = "60,000 members set without sv"
    case membersReplaced = "60,000 members replaced"
    case oneMember = "one of 60,000 members"
    case typing = "a word in a text of 900 kB"
    case tooLarge = "text of 7 MB, refused"

    private static let words = String(repeating: "lorem ipsum ", count: 75_000)
    private static let tree: String = (0..<60_000).map { "\"m\($0)\":[\($0)]" }.joined(separator: ",")

    /// The object before the change; nil: none.
    private var before: String? {
        switch self {
        case .text, .members, .tooLarge: nil
        case .membersAgain, .membersReplaced, .oneMember: "{\"f\":{\"o\":\"+\",\"v\":{\(Self.tree)}}}"
        case .typing: "{\"f\":{\"o\":\"+\",\"v\":\"\(Self.words)\"}}"
        }
    }

    private func change(_ round: Int) -> String {
        switch self {
        case .text: "{\"f\":{\"o\":\"+\",\"v\":\"\(Self.words)\"}}"
        case .members: "{\"f\":{\"o\":\"+\",\"v\":{\(Self.tree)}}}"
        case .membersAgain: "{\"f\":{\"o\":\"+\",\"v\":{\(Self.tree),\"n\":\(round)}}}"
        case .membersReplaced: "{\"f\":{\"o\":\"r\",\"v\":{\(Self.tree),\"n\":\(round)}}}"
        case .oneMember: "{\"f\":{\"o\":\"O\",\"v\":{\"m\(round)\":{\"o\":\"r\",\"v\":\"new\"}}}}"
        case .typing:
            "{\"f\":{\"o\":\"d\",\"v\":\"=\(round * 1_000)\\t+word \\t=\(900_000 - round * 995)\"}}"
        case .tooLarge: "{\"f\":{\"o\":\"+\",\"v\":\"\(String(repeating: Self.words, count: 8))\"}}"
        }
    }

    func measure(rounds: Int) throws -> [Figure] {
        let shard = try LargeShard()
        if let before { _ = try shard.decide("first", "{\"id\":\"x\",\"o\":\"M\",\"v\":\(before)") }
        var times: [LargeShard.Times] = []
        for round: Int in 0..<rounds {
            let key: String = before == nil ? "x\(round)" : "x"
            let source: String = before == nil || self == .membersAgain ? "" : ",\"sv\":\(round + 1)"
            let text = "{\"id\":\"\(key)\",\"o\":\"M\"\(source),\"v\":\(change(round))"
            times.append(try shard.decide("round-\(round)", text, mayFail: self == .tooLarge))
        }
        return [
            Figure(name: "\(rawValue): read", samples: times.map(\.read), unit: "ms"),
            Figure(name: "\(rawValue): decided", samples: times.map(\.decided), unit: "ms"),
            Figure(name: "\(rawValue): written", samples: times.map(\.written), unit: "ms"),
        ]
    }
}

/// A shard and its store, on the caller's thread.
private final class LargeShard {
    /// Milliseconds.
    struct Times {
        let read: Double
        let decided: Double
        let written: Double
    }

    private let folder: String
    private let core: ShardCore
    private let bucket: BucketID
    private let client: ClientID

    init() throws {
        var template: [CChar] = Array("/tmp/thicket-large-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BenchError("no temporary folder in /tmp: errno \(errno)") }
        folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        core = ShardCore(store: try SQLiteStore(path: folder + "/thicket.db").makeWriter())
        bucket = BucketID(app: try AppID("bench"), user: try UserID("u@example.com"), name: try BucketName("b"))
        client = try ClientID("bench")
    }

    deinit {
        for name: String in ["", "-wal", "-shm"] { unlink(folder + "/thicket.db" + name) }
        rmdir(folder)
    }

    func decide(_ ccid: String, _ change: String, mayFail: Bool = false) throws -> Times {
        let message: [UInt8] = Array("0:c:\(change),\"ccid\":\"\(ccid)\"}".utf8)
        let begun: UInt64 = nanoseconds()
        guard case .channel(_, let request) = try UnparsedMessage(parsing: message[...]),
            case .one(let change) = request.readChanges()
        else { throw BenchError("the message of \(ccid) is no change") }
        let read: UInt64 = nanoseconds()
        _ = core.receive(
            .change(
                SubmittedChange(
                    origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: client,
                    library: .other, canWrite: true, request: change, now: 1_700_000_000_000)))
        let decided: UInt64 = nanoseconds()
        let outcome: CommitOutcome = core.commit()
        let end: UInt64 = nanoseconds()
        guard outcome.appliedCount == (mayFail ? 0 : 1) else {
            throw BenchError("\(ccid): \(outcome)".prefix(300).description)
        }
        func milliseconds(_ from: UInt64, _ to: UInt64) -> Double { Double(to - from) / 1e6 }
        return Times(
            read: milliseconds(begun, read), decided: milliseconds(read, decided), written: milliseconds(decided, end))
    }
}
