import Testing
import ThicketProtocol

@testable import ThicketServer

/// How much a test's shard keeps in memory, and where the rest is stored.
enum Memory: CaseIterable, Sendable {
    /// Everything: late edits are rebased from memory.
    case warm
    /// Nothing beyond the group: everything comes back from the store.
    case cold
    /// As `cold`, over SQLite.
    case disk
    /// As `warm`, and every change is deferred.
    case elsewhere

    var settings: ShardSettings {
        var settings = ShardSettings()
        if self == .elsewhere { settings.decidedHereMax = -1 }
        if self != .warm && self != .elsewhere {
            settings.entityCacheBytes = 0
            settings.bucketCacheBytes = 0
        }
        return settings
    }
}

/// The part of an answer that tests compare.
struct Answer: Equatable, CustomStringConvertible {
    var code: Int?
    /// The element as it goes on the wire, without its cv.
    var element: JSONValue?
    /// What a refusal by a tree says beside the code.
    var reason: String?
    /// `ev` of a refusal.
    var current: Version?

    var version: Int64? { element?["ev"]?.intValue }
    var description: String { code.map { "error \($0) \(reason ?? "")" } ?? element?.serializedText ?? "nothing" }

    static func error(_ code: Int) -> Answer { Answer(code: code, element: nil) }

    init(code: Int? = nil, element: JSONValue? = nil) {
        self.code = code
        self.element = element
    }

    init(_ outcome: ChangeOutcome) throws {
        switch outcome {
        case .batch(let batch): self.init(element: try JSONValue(parsing: batch.answer))
        case .refused(let refused):
            self.init(code: refused.code.rawValue)
            (reason, current) = (refused.tree?.word, refused.tree?.current)
        case .applied(let applied):
            guard case .object(var element) = try JSONValue(parsing: applied.element) else {
                self.init()
                return
            }
            element["cv"] = nil
            self.init(element: .object(element))
        }
    }
}

/// A shard over a store in memory, with one bucket.
final class TestShard {
    let store: any Store
    let bucket: BucketID
    var core: ShardCore
    private let folder: StoreFolder?
    private var settings: ShardSettings
    private var ccidCount = 0
    private(set) var lastOutcome = CommitOutcome()

    /// - Parameter store: nil creates the store that `memory` names.
    init(
        _ memory: Memory = .warm, store given: (any Store)? = nil, name: String = "notes",
        _ adjust: (inout ShardSettings) -> Void = { _ in }
    ) throws {
        folder = memory == .disk && given == nil ? StoreFolder() : nil
        if let given {
            store = given
        } else if let folder {
            store = try StoreKind.sqlite.make(folder)
        } else {
            store = MemoryStore()
        }
        settings = memory.settings
        adjust(&settings)
        bucket = try BucketID(app: AppID("app"), user: UserID("ann@example.com"), name: BucketName(name))
        core = ShardCore(store: try store.makeWriter(), settings: settings)
    }

    /// The process dies and another begins.
    func restart() throws {
        if let store: MemoryStore = store as? MemoryStore {
            store.crash()
            store.restart()
        }
        core = ShardCore(store: try store.makeWriter(), settings: settings)
    }

    func submission(
        _ key: String, _ operation: ChangeRequest.Operation = .modify, sv: Version? = nil, v: JSONValue? = nil,
        d: JSONValue? = nil, ccid: String? = nil, library: AuthorLibrary = .other, canWrite: Bool = true,
        echo: Bool = false, client: String = "client", bucket: BucketID? = nil, isWhole: Bool = false,
        terms: ChangeTerms? = nil
    ) throws -> SubmittedChange {
        ccidCount += 1
        var request = ChangeRequest(
            key: key, ccid: ccid ?? "ccid-\(ccidCount)", operation: operation, sv: sv, diff: try v.map(Self.sent),
            object: try d.map(Self.sent))
        request.isWhole = isWhole
        return SubmittedChange(
            origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket ?? self.bucket,
            clientID: try ClientID(client), library: library, canWrite: canWrite, echoesRemoval: echo,
            request: request, now: 1_000 + Int64(ccidCount), terms: terms)
    }

    /// A value as it comes in a message.
    private static func sent(_ value: JSONValue) throws -> JSONFragment {
        .node(try JSONDocument(parsing: value.serialized(), maxDepth: JSONDocument.depthCeiling).root)
    }

    /// Receives one change; a deferred one is decided, with or without a reader of the store.
    func receive(_ change: SubmittedChange) {
        guard let long: DeferredChange = core.receive(.change(change)) else { return }
        let reader: (any StoreReader)? = ccidCount % 3 == 0 ? nil : try? store.makeReader()
        let again: DeferredChange? = core.receive(.decided(long.decide(reading: reader)))
        #expect(again == nil, "the object has not changed meanwhile")
    }

    /// Sends changes as one group.
    @discardableResult
    func group(_ changes: [SubmittedChange]) throws -> [Answer] {
        // Every second group is committed as the loop does it.
        if ccidCount % 2 == 0 { _ = core.beginCommit(of: changes.map { .change($0) }) }
        for change in changes { receive(change) }
        lastOutcome = core.commit()
        return try lastOutcome.buckets.flatMap(\.events).map(Answer.init)
    }

    /// Sends one change alone.
    @discardableResult
    func send(
        _ key: String, _ operation: ChangeRequest.Operation = .modify, sv: Version? = nil, v: JSONValue? = nil,
        d: JSONValue? = nil, ccid: String? = nil, library: AuthorLibrary = .other, canWrite: Bool = true,
        echo: Bool = false, client: String = "client", isWhole: Bool = false, terms: ChangeTerms? = nil
    ) throws -> Answer {
        let change: SubmittedChange = try submission(
            key, operation, sv: sv, v: v, d: d, ccid: ccid, library: library, canWrite: canWrite, echo: echo,
            client: client, isWhole: isWhole, terms: terms)
        let answers: [Answer] = try group([change])
        #expect(answers.count == 1)
        return answers.first ?? Answer()
    }

    /// Makes an object by additions.
    @discardableResult
    func make(_ key: String, _ value: JSONObject) throws -> Answer {
        try send(key, v: .object(JSONObject(value.pairs.map { ($0.key, ["o": "+", "v": $0.value]) })))
    }

    /// The object in the store; nil if it has none.
    func stored(_ key: String) throws -> JSONValue? {
        let reader: any StoreReader = try store.makeReader()
        guard let row: BucketRow = try reader.bucket(bucket)?.row,
            let body: [UInt8] = try reader.head(of: EntityKey(key), in: row)?.body
        else { return nil }
        return try JSONValue(parsing: body)
    }

    /// Every row of the bucket, oldest first.
    func log() throws -> [ChangeRecord] {
        let reader: any StoreReader = try store.makeReader()
        guard let record: BucketRecord = try reader.bucket(bucket) else { return [] }
        let page: ChangePage? = try reader.changes(
            in: record.row, after: record.floor, upTo: record.head, limit: .max, byteLimit: .max)
        return page?.changes ?? []
    }
}
