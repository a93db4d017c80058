import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

/// A log with all of its writer's results, as the independent model writes and reads them:
/// `Tests/Vectors/sealed/ORIGIN.md`.
struct SealedCase {
    let json: JSONValue

    private func text(_ key: String) throws -> String {
        guard let text = json[key]?.stringValue else { throw World.Failure(description: "no \(key)") }
        return text
    }

    func keys() throws -> SealedBucketKeys {
        let vault = SecureBytes(copying: Hex.decode(try text("vault")) ?? [])
        var secrets = [UInt32: SecureBytes]()
        for epoch in 0..<UInt32(json["epochs"]?.intValue ?? 0) {
            secrets[epoch] = try SealedBucketKeys.secret(
                vault: vault, app: text("app"), bucket: text("bucket"), epoch: epoch)
        }
        return try SealedBucketKeys(owner: text("owner"), app: text("app"), bucket: text("bucket"), secrets: secrets)
    }

    /// The first difference between our result and the writer's; nil if both agree, from the start and from every
    /// snapshot on.
    func problem() throws -> String? {
        let keys = try keys()
        let serverKey = keys.serverKey(of: try text("key"))
        guard serverKey.utf8.elementsEqual(try text("server_key").utf8) else { return "server key" }
        let reading = Reading(
            sealer: try keys.sealer(serverKey: serverKey), place: keys.place(serverKey: serverKey),
            snapshots: json["snapshots"]?.objectValue ?? [:])
        guard var log = reading.log(at: 0) else { return "the first snapshot does not open" }
        var others = [SealedLog]()
        var (verdicts, conflicts): ([JSONValue], [JSONValue]) = ([], [])
        for operation in json["operations"]?.arrayValue ?? [] {
            let sealed = SealedObject.bytes(of: operation.stringValue ?? "")
            let clear = reading.sealer.open(sealed, kind: .operation, position: 0)?.clear
            let verdict = log.append(sealed, clear: clear)
            verdicts.append(.string(verdict.word))
            conflicts += verdict.reported(at: log.position)
            for other in others.indices where others[other].append(sealed, clear: clear) != verdict {
                return "operation \(verdicts.count) from a snapshot on"
            }
            guard reading.snapshots.contains(String(verdicts.count)), log.position == verdicts.count else { continue }
            guard let fresh = reading.log(at: log.position), fresh == log else {
                return "snapshot \(log.position) holds something else"
            }
            others.append(fresh)
        }
        if let problem: String = Self.difference(verdicts, json["verdicts"]) { return "verdicts: \(problem)" }
        if let problem = Self.difference(conflicts, json["conflicts"]) { return "conflicts: \(problem)" }
        for log in [log] + others {
            let state = try JSONValue(parsing: SealedSnapshot.clearBytes(of: log), maxDepth: 600)
            guard state == json["state"] else {
                return "end: \(state) and not \(String(describing: json["state"]))"
            }
        }
        return try SealedCaseChanges(self, reading.sealer, reading.place).problem(log)
    }

    /// The first element that differs.
    private static func difference(_ ours: [JSONValue], _ theirs: JSONValue?) -> String? {
        let theirs = theirs?.arrayValue ?? []
        for place in 0..<max(ours.count, theirs.count) {
            let mine: JSONValue? = ours.indices.contains(place) ? ours[place] : nil
            let other: JSONValue? = theirs.indices.contains(place) ? theirs[place] : nil
            if mine != other { return "\(place): \(String(describing: mine)) and not \(String(describing: other))" }
        }
        return nil
    }

    private struct Reading {
        let sealer: ObjectSealer
        let place: SealedPlace
        let snapshots: JSONObject

        func log(at position: Int) -> SealedLog? {
            let sealed = SealedObject.bytes(of: snapshots[String(position)]?.stringValue ?? "")
            guard let clear = sealer.open(sealed, kind: .snapshot, position: position)?.clear else {
                return nil
            }
            return SealedSnapshot.log(clear: clear, place: place, position: position)
        }
    }
}

extension SealedLog.Verdict {
    var word: String {
        switch self {
        case .applied: "applied"
        case .void(let reason): "void \(reason)"
        case .misfit: "misfit"
        case .unknownRules: "unknownRules"
        case .forked(let at): "forked \(at)"
        }
    }

    func reported(at position: Int) -> [JSONValue] {
        guard case .applied(_, _, let conflicts) = self else { return [] }
        return conflicts.map { conflict in
            [
                .number(JSONNumber(Int64(position))), .array(conflict.path.map { .string($0) }),
                .array(conflict.losing.map { [$0] } ?? []), .array(conflict.winning.map { [$0] } ?? []),
            ]
        }
    }
}

/// Writes logs as the model does: the authors know different amounts of the log, the server orders the operations, and
/// a few operations are faulty.
struct CaseWriter {
    private var random: SeededRandom
    private var letters = Letters()
    private var states = [JSONObject?]()
    private var heads = [Head]()

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func made(steps: Int) throws -> JSONValue {
        let vault = random.bytes(32)
        var case_: JSONObject = [
            "vault": .string(Hex.encode(vault)), "owner": "bob", "app": "notes", "bucket": "buck", "key": "é-key",
            "epochs": 1,
        ]
        let keys = try SealedCase(json: .object(case_)).keys()
        let serverKey = keys.serverKey(of: "é-key")
        let sealer = try keys.sealer(serverKey: serverKey)
        let start: JSONObject = [
            "t": .string(letters.insert(8)), "n": 1, "l": [1, "x", ["y": "abc"]], "o": ["s": "hey"],
        ]
        var log = SealedLog(
            place: keys.place(serverKey: serverKey), appKey: "é-key", incarnation: random.bytes(16), object: start)
        (states, heads) = ([log.object], [log.chain.recent[0]])
        let authors: [AuthorID] = (0..<4).map { _ in .init(rawValue: random.next()) }
        let lag = [3, 12, 70][random.below(3)]
        var snapshots: JSONObject = ["0": sealed(log, sealer)]
        var (operations, verdicts, conflicts): ([[UInt8]], [JSONValue], [JSONValue]) = ([], [], [])
        var sent = try ChangeWriter(creation: snapshots["0"]?.stringValue ?? "", of: log)
        while log.position < steps {
            let author = authors[random.below(authors.count)]
            let base = max(log.lastPositions[author] ?? 0, log.position - random.below(lag))
            var bytes: [UInt8] = sealer.seal(
                clear(log, base, author), kind: .operation, id: random.bytes(16), position: 0, nonce: random.bytes(12))
            switch random.below(60) {
            case 0: bytes[bytes.count - 1] ^= 1
            case 1 where !operations.isEmpty: bytes = operations[random.below(operations.count)]
            default: break
            }
            operations.append(bytes)
            let verdict: SealedLog.Verdict = log.append(
                bytes, clear: sealer.open(bytes, kind: .operation, position: 0)?.clear)
            verdicts.append(.string(verdict.word))
            conflicts += verdict.reported(at: log.position)
            try sent.add(bytes, of: log, seen: 1 + random.below(3))
            guard verdict.isAppended else { break }
            if random.below(6) == 0 {
                try sent.compact(seen: 1 + random.below(6)) { sealed($0, sealer).stringValue ?? "" }
            }
            states.append(log.object)
            heads.append(log.chain.recent[log.chain.recent.count - 1])
            if random.below(30) == 0 { snapshots[String(log.position)] = sealed(log, sealer) }
        }
        case_["server_key"] = .string(serverKey)
        case_["snapshots"] = .object(snapshots)
        case_["operations"] = .array(operations.map { .string(Base64.encodeURL($0)) })
        case_["verdicts"] = .array(verdicts)
        case_["conflicts"] = .array(conflicts)
        case_["state"] = try JSONValue(parsing: SealedSnapshot.clearBytes(of: log), maxDepth: 600)
        case_["changes"] = .array(sent.changes)
        case_["object"] = .object(sent.held.object)
        case_["heads"] = .object(try JSONDiff.apply(SealedHeads.edit(of: [:], for: [log]), to: [:]))
        return .object(case_)
    }

    private mutating func sealed(_ log: SealedLog, _ sealer: ObjectSealer) -> JSONValue {
        let bytes = sealer.seal(
            SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: random.bytes(16), position: log.position,
            nonce: random.bytes(12))
        return .string(Base64.encodeURL(bytes))
    }

    private mutating func clear(_ log: SealedLog, _ base: Int, _ author: AuthorID) -> [UInt8] {
        var operation = SealedOperation(
            base: base, head: heads[base], incarnation: log.incarnationTag, author: author, content: .tombstone)
        if let state = states[base], random.below(150) > 0 {
            let diff = random.edit(of: state, .everything, &letters)
            operation.content = (try? Edit(.object(diff))).map { .edit($0) } ?? .tombstone
        }
        switch random.below(120) {
        case 0: operation.incarnation = 1
        case 1: operation.content = .edit(.members([.init("t", .increment(1))]))
        case 2 where random.below(4) == 0: operation.head = heads[0]
        case 3: return Array(operation.clearBytes().dropLast())
        default: break
        }
        return operation.clearBytes()
    }
}
