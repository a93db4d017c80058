import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@testable import ThicketSealed

/// What a server does with the changes of a case: it inserts operations at 0 as they arrive; a compaction, made for an
/// older state, removes the part of the present tail that it covers.
struct HeldCase {
    /// The state after each change, as authors may have seen it.
    private(set) var states = [SealedEntity]()

    var held: SealedEntity { states[states.count - 1] }

    mutating func apply(_ change: SealedShape.Change) {
        guard let known = states.last else {
            if case .creation(let text) = change { states.append(SealedEntity(snapshots: [0: text])) }
            return
        }
        var next = known
        switch change {
        case .creation, .removal: break
        case .insertion(let text): next.tail.insert(text, at: 0)
        case .compaction(let compaction):
            next.snapshots[compaction.position] = compaction.snapshot
            for older in compaction.removedSnapshots { next.snapshots[older] = nil }
            next.tail = Array(known.tail.prefix(max(0, known.position - compaction.position)))
        }
        states.append(next)
    }
}

/// Checks the changes of a case, the object that they make, and its entry in `heads`.
struct SealedCaseChanges {
    private let json: JSONValue
    private let sealer: ObjectSealer
    private let place: SealedPlace

    init(_ vector: SealedCase, _ sealer: ObjectSealer, _ place: SealedPlace) {
        (json, self.sealer, self.place) = (vector.json, sealer, place)
    }

    /// - Parameter log: the log that the operations give.
    func problem(_ log: SealedLog) throws -> String? {
        let changes = json["changes"]?.arrayValue ?? []
        var server = HeldCase()
        for (number, change) in changes.enumerated() {
            let diff = try ObjectDiff(change["v"] ?? .null)
            let shape: SealedShape.Change
            do throws(SealedShapeError) {
                shape = try SealedShape.check(diff, changeID: Self.changeID(diff), isCreation: number == 0)
                if case .compaction(let compaction) = shape {
                    let seen = Int(change["sv"]?.intValue ?? 0)
                    guard (1...server.states.count).contains(seen) else { return "change \(number): no such sv" }
                    try compaction.check(on: server.states[seen - 1])
                }
            } catch { return "change \(number): \(error)" }
            // Writing the parsed change gives the same change.
            guard let again = written(shape, change, server), again.json == change["v"] else {
                return "change \(number): we would have sent another"
            }
            server.apply(shape)
        }
        guard !server.states.isEmpty, JSONValue.object(server.held.object) == json["object"] else { return "object" }
        _ = try SealedShape.check(object: server.held.object)
        let opened = try SealedObject.open(
            server.held, author: AuthorID(rawValue: 0), place: place, with: sealer
        ).object.log
        guard opened == log else { return "the object gives another log" }
        let heads = try JSONDiff.apply(SealedHeads.edit(of: [:], for: [log]), to: [:])
        return JSONValue.object(heads) == json["heads"] ? nil : "heads: \(heads)"
    }

    private func written(_ shape: SealedShape.Change, _ change: JSONValue, _ server: HeldCase) -> ObjectDiff? {
        switch shape {
        case .creation(let text): SealedEntity.creation(text)
        case .insertion(let text): SealedEntity.insertion(text)
        case .compaction(let compaction):
            server.states[Int(change["sv"]?.intValue ?? 0) - 1].compaction(
                compaction.snapshot, at: compaction.position)
        case .removal: nil
        }
    }

    /// The ccid of an operation is its id.
    private static func changeID(_ diff: ObjectDiff) -> String {
        guard case .list(let list)? = diff["d"], case .insert(let value)? = list.operations.first?.operation,
            let header = SealedHeader(of: SealedObject.bytes(of: value.stringValue ?? ""))
        else { return "" }
        return Hex.encode(header.id)
    }
}

/// Writes the changes of a log as devices would send them; some devices had not seen the newest change.
struct ChangeWriter {
    private(set) var changes = [JSONValue]()
    private var server = HeldCase()
    private var logs: [Int: SealedLog]

    init(creation: String, of log: SealedLog) throws {
        logs = [0: log]
        try send(SealedEntity.creation(creation), sv: 0, isCreation: true)
    }

    var held: SealedEntity { server.held }

    private mutating func send(_ diff: ObjectDiff, sv: Int, changeID: String = "", isCreation: Bool = false) throws {
        changes.append(["sv": .number(JSONNumber(Int64(sv))), "v": diff.json])
        server.apply(try SealedShape.check(diff, changeID: changeID, isCreation: isCreation))
    }

    /// - Parameter seen: how many changes back the author's state is, 1 for the newest.
    mutating func add(_ sealed: [UInt8], of log: SealedLog, seen: Int) throws {
        let id = (SealedHeader(of: sealed)?.id).map { Hex.encode($0) } ?? ""
        try send(
            SealedEntity.insertion(Base64.encodeURL(sealed)), sv: max(1, server.states.count + 1 - seen), changeID: id)
        logs[log.position] = log
    }

    /// Sends a snapshot of the author's state, if it covers more than the newest snapshot.
    mutating func compact(seen: Int, _ seal: (SealedLog) -> String) throws {
        let sv = max(1, server.states.count + 1 - seen)
        let known = server.states[sv - 1]
        guard known.position > held.newest?.position ?? 0, let log = logs[known.position],
            let diff = known.compaction(seal(log), at: known.position)
        else { return }
        try send(diff, sv: sv)
    }
}
