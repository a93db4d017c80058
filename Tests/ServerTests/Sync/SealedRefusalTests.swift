import Testing
import ThicketProtocol
import ThicketSealedShape
import ThicketTestSupport

@testable import ThicketServer

/// Clear text at every entry point of a sealed bucket.
@Suite("Sealed buckets refuse clear text")
struct SealedRefusalTests {
    private static let id: String = SealedText.changeID(0xF00)
    private static let operation: String = SealedText.operation(id)
    private static let snapshot: String = SealedText.snapshot()
    private static let raw: [UInt8] = Array(repeating: 7, count: 16)

    /// A change: a name, its source version, `v`, and why it is refused.
    private static let table: [(String, Version?, JSONValue, SealedFault)] = [
        ("an open creation", nil, ["t": ["o": "+", "v": "clear"]], .clear),
        ("an empty creation", nil, [:], .clear),
        ("a member more", nil, creation(adding: ["t": ["o": "+", "v": "clear"]]), .clear),
        ("another z", nil, creation(adding: ["z": ["o": "+", "v": 2]]), .clear),
        ("z as a text", nil, creation(adding: ["z": ["o": "+", "v": "clear"]]), .clear),
        ("a tail at birth", nil, creation(adding: ["d": ["o": "+", "v": [.string(operation)]]]), .clear),
        ("d as a text", nil, creation(adding: ["d": ["o": "+", "v": "clear"]]), .clear),
        ("s as a text", nil, creation(adding: ["s": ["o": "+", "v": "clear"]]), .clear),
        ("a snapshot at 1", nil, creation(snapshots: ["1": .string(snapshot)]), .clear),
        ("two snapshots", nil, creation(snapshots: ["0": .string(snapshot), "1": .string(snapshot)]), .clear),
        ("no snapshot", nil, creation(snapshots: [:]), .compaction),
        ("a position in words", nil, creation(snapshots: ["clear text": .string(snapshot)]), .compaction),
        ("a clear snapshot", nil, SealedText.creation("clear text"), .value),
        ("an operation as a snapshot", nil, SealedText.creation(operation), .value),
        ("a number as a snapshot", nil, creation(snapshots: ["0": 5]), .value),
        ("replacing z", 1, ["z": ["o": "r", "v": "clear"]], .clear),
        ("replacing d", 1, ["d": ["o": "r", "v": ["clear"]]], .clear),
        ("a text difference", 1, ["d": ["o": "d", "v": "+clear"]], .clear),
        ("a difference of lists", 1, ["d": ["o": "dL", "v": "+clear"]], .clear),
        ("a new member", 1, ["t": ["o": "+", "v": "clear"]], .clear),
        ("nothing", 1, [:], .clear),
        ("an insertion and more", 1, insertion(adding: ["t": ["o": "+", "v": "clear"]]), .clear),
        ("a clear insertion", 1, SealedText.insertion("clear"), .value),
        ("a snapshot inserted", 1, SealedText.insertion(snapshot), .value),
        ("an unknown suite", 1, sealed(suite: 2, kind: 2), .value),
        ("suite 0", 1, sealed(suite: 0, kind: 2), .value),
        ("an unknown kind", 1, sealed(suite: 1, kind: 3), .value),
        ("a length that no padding gives", 1, sealed(suite: 1, kind: 2, clearBytes: 65), .value),
        ("no clear text at all", 1, sealed(suite: 1, kind: 2, clearBytes: 0), .value),
        ("standard base64", 1, SealedText.insertion(operation + "="), .value),
        ("an object inserted", 1, ["d": ["o": "L", "v": ["0": ["o": "+", "v": ["t": "clear"]]]]], .value),
        ("at the end", 1, ["d": ["o": "L", "v": ["1": ["o": "+", "v": .string(operation)]]]], .clear),
        ("two at once", 1, list(["0": ["o": "+", "v": .string(operation)], "1": ["o": "-"]]), .clear),
        ("a removal from the tail alone", 1, list(["0": ["o": "-"]]), .clear),
        ("another's operation", 1, SealedText.insertion(SealedText.operation(SealedText.changeID(7))), .changeID),
        ("a clear compaction", 1, SealedText.compaction(1, "clear", over: [0], removing: 0..<1), .value),
        ("two snapshots added", 1, twoSnapshots, .clear),
        ("a replaced snapshot", 1, replacedSnapshot, .clear),
    ]

    private static func creation(adding members: JSONObject) -> JSONValue {
        var made: JSONObject = SealedText.creation(snapshot).objectValue ?? [:]
        for (key, value) in members.pairs { made[key] = value }
        return .object(made)
    }

    private static func creation(snapshots: JSONObject) -> JSONValue {
        creation(adding: ["s": ["o": "+", "v": .object(snapshots)]])
    }

    private static func insertion(adding members: JSONObject) -> JSONValue {
        var made: JSONObject = SealedText.insertion(operation).objectValue ?? [:]
        for (key, value) in members.pairs { made[key] = value }
        return .object(made)
    }

    private static func list(_ entries: JSONObject) -> JSONValue { ["d": ["o": "L", "v": .object(entries)]] }

    private static func sealed(suite: UInt8, kind: UInt8, clearBytes: Int = 64) -> JSONValue {
        SealedText.insertion(
            SealedText.text(
                suite: suite, kind: kind, id: Array(repeating: 0, count: 14) + [0x0F, 0x00], clearBytes: clearBytes))
    }

    private static var twoSnapshots: JSONValue {
        [
            "s": [
                "o": "O",
                "v": [
                    "1": ["o": "+", "v": .string(snapshot)], "2": ["o": "+", "v": .string(snapshot)],
                    "0": ["o": "-"],
                ],
            ], "d": ["o": "L", "v": ["0": ["o": "-"]]],
        ]
    }

    private static var replacedSnapshot: JSONValue {
        [
            "s": ["o": "O", "v": ["0": ["o": "r", "v": .string(snapshot)]]],
            "d": ["o": "L", "v": ["0": ["o": "-"]]],
        ]
    }

    private static func fault(_ outcome: CommitOutcome) -> SealedFault? {
        for case .refused(let refused) in outcome.buckets.flatMap(\.events) where refused.code == .invalidRequest {
            return refused.sealedFault
        }
        return nil
    }

    @Test("every change of another shape is 400 with its reason for the metrics, and leaves nothing behind")
    func shapes() throws {
        let shard = try TestShard(.disk)
        shard.seal()
        try shard.create()
        try shard.insert(1, sv: 1)
        let before: [ChangeRecord] = try shard.log()
        for (name, sv, v, reason) in Self.table {
            // A free key, so that only the shape can be the reason.
            let key: String = sv == nil ? SealedText.key(1) : SealedText.key()
            #expect(try shard.send(key, sv: sv.map { $0 + 1 }, v: v, ccid: Self.id) == .error(400), "\(name)")
            #expect(Self.fault(shard.lastOutcome) == reason, "\(name)")
        }
        #expect(try shard.log() == before)
        #expect(try shard.insert(0xF00, sv: 2).version == 3, "the refused ccid is not used up")
    }

    @Test("whole objects, alone or beside a valid diff, and clear keys are refused with 400")
    func wholeObjects() throws {
        let shard = try TestShard(.disk)
        shard.seal()
        try shard.create()
        let sound: JSONValue = SealedText.insertion(Self.operation)
        for library: AuthorLibrary in [.other, .thicket, .nodeSimperium] {
            for whole: JSONValue in [
                ["t": "clear"], [:], ["z": 1, "s": ["0": .string(Self.snapshot)], "d": []],
                ["version": 1, "data": ["t": "clear"]],
            ] {
                #expect(try shard.send(SealedText.key(), sv: 1, d: whole, library: library) == .error(400))
                #expect(Self.fault(shard.lastOutcome) == .clear)
                #expect(
                    try shard.send(SealedText.key(), sv: 1, v: sound, d: whole, ccid: Self.id, library: library)
                        == .error(400))
            }
        }
        for key: String in [
            "shopping list", "notes", "A" + SealedText.key().dropFirst(), "1" + SealedText.key().dropFirst(),
            SealedText.key() + "a", String(SealedText.key().dropLast()),
        ] {
            #expect(try shard.send(key, v: SealedText.creation(Self.snapshot)) == .error(400), "\(key)")
        }
        #expect(try shard.sealed()?.tail == [])
        #expect(try shard.log().count == 1)
    }

    @Test("members beside the operations of a valid change do not reach the log")
    func smuggled() throws {
        let shard = try TestShard(.disk)
        shard.seal()
        var creation: JSONObject = SealedText.creation(Self.snapshot).objectValue ?? [:]
        creation["z"] = ["o": "+", "v": 1, "note": "CANARY"]
        let made: Answer = try shard.send(SealedText.key(), v: .object(creation))
        let insertion: JSONValue = [
            "d": ["o": "L", "note": "CANARY", "v": ["0": ["o": "+", "note": "CANARY", "v": .string(Self.operation)]]]
        ]
        let inserted: Answer = try shard.send(SealedText.key(), sv: 1, v: insertion, ccid: Self.id)
        for answer: Answer in [made, inserted] { #expect(!answer.description.contains("CANARY"), "\(answer)") }
        for row in try shard.log() {
            #expect(!String(decoding: row.diff, as: UTF8.self).contains("CANARY"))
        }
    }
}
