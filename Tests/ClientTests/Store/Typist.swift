import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketClient

/// Changes one large object in a store as a session does, and knows what must be stored.
final class Typist {
    private(set) var record = EntityRecord()
    let address: EntityAddress
    private var random: SeededRandom
    private var position = 0

    init(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        address = EntityAddress(bucket: try BucketName("notes"), key: try EntityKey("page"))
    }

    /// The object as it begins: a text of `units` letters, already synced.
    func begin(in store: any LocalStore, units: Int = 6_000) throws {
        record.ghost = Ghost(version: 1, object: ["text": .string(letters(units)), "n": 0])
        record.isLive = true
        try commit(EntityWrite(address, record, [.ghost, .marks]), to: store)
    }

    /// One turn; if the store refuses it, nothing has happened.
    func step(in store: any LocalStore, isOnDisk: Bool = false) throws {
        let before = record
        do {
            try commit(try next(), to: store, isOnDisk: isOnDisk)
        } catch {
            record = before
            throw error
        }
    }

    /// Continues from the state that a store held after a crash.
    func adopt(_ found: EntityRecord) throws { record = found }

    /// A keystroke that becomes a change at once, and its acknowledgement: two turns.
    func pressKey(in store: any LocalStore) throws {
        record.edits.later = .modify(try edit(of: local(), insertedMax: 1))
        try commit(send(), to: store, movesPosition: false)
        try commit(try acknowledge(), to: store)
    }

    private func commit(
        _ write: EntityWrite, to store: any LocalStore, isOnDisk: Bool = false, movesPosition: Bool = true
    ) throws {
        position += 1
        var batch = LocalBatch()
        batch.entities = [write]
        if movesPosition {
            batch.buckets = [BucketRecord(name: address.bucket, changeVersion: try ChangeVersion("cv\(position)"))]
        }
        batch.isOnDisk = isOnDisk
        try store.commit(batch)
    }

    // MARK: - Turns

    private func next() throws -> EntityWrite {
        let edits = record.edits
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<9: return try type()
        case 9..<12 where edits.pending == nil && edits.later != nil: return send()
        case 12..<15 where edits.pending != nil: return try acknowledge()
        case 15 where !edits.hasEdits:
            record.ghost = Ghost(version: record.ghost.version + 1, object: ["text": .string(letters(5_000)), "n": 1])
            return EntityWrite(address, record, .ghost)
        case 16 where !edits.hasEdits && record.ghost.version % 5 == 0:
            record.ghost = Ghost(version: record.ghost.version + 1, object: nil)
            record.isLive = false
            return EntityWrite(address, record, [.ghost, .marks])
        default:
            record.scanID += 1
            return edits.hasEdits ? EntityWrite(address, record, .marks) : try follow()
        }
    }

    private func type() throws -> EntityWrite {
        let diff = try edit(of: local(), insertedMax: Bool.random(using: &random) ? 3 : 400)
        let isStep = record.edits.hasEdits
        let composed = try Edits.compose(record.edits.later, .modify(diff), base: JSONObject())
        record.edits.later = composed
        record.isLive = true
        return EntityWrite(address, record, [.edits, .marks], laterSteps: isStep && composed != nil ? [diff] : nil)
    }

    private func send() -> EntityWrite {
        let bytes = EditCodec.encode(record.edits.later) ?? []
        record.edits.pending = PendingChange(
            changeID: Self.changeID, edit: record.edits.later, source: record.ghost.version, bytes: bytes)
        record.edits.later = nil
        return EntityWrite(address, record, .edits)
    }

    private func acknowledge() throws -> EntityWrite {
        guard case .modify(let diff)? = record.edits.pending?.edit else { return EntityWrite(address, record, .marks) }
        let isStep = record.ghost.object != nil
        let version: Version = record.ghost.version + 1
        record.ghost = Ghost(
            version: version, object: try Edits.apply(.modify(diff), to: record.ghost.object))
        record.edits.pending = nil
        let steps = isStep ? [GhostStep(version: version, diff: diff)] : nil
        return EntityWrite(address, record, [.ghost, .edits], ghostSteps: steps)
    }

    /// Changes of another client.
    private func follow() throws -> EntityWrite {
        var steps = [GhostStep]()
        guard record.ghost.object != nil else { return EntityWrite(address, record, .marks) }
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let diff = try edit(of: record.ghost.object ?? JSONObject(), insertedMax: 60)
            steps.append(GhostStep(version: record.ghost.version + 1, diff: diff))
            record.ghost = try record.ghost.after([steps[steps.count - 1]])
        }
        return EntityWrite(address, record, [.ghost, .marks], ghostSteps: steps)
    }

    // MARK: - Texts

    private static let changeID = {
        guard let made = try? ChangeID("c") else { preconditionFailure("c is a change id") }
        return made
    }()

    private func local() throws -> JSONObject {
        let base = try Edits.apply(record.edits.pending?.edit, to: record.ghost.object)
        return try Edits.apply(record.edits.later, to: base) ?? JSONObject()
    }

    private func edit(of object: JSONObject, insertedMax: Int) throws -> ObjectDiff {
        let number = Operation.replace(.number(JSONNumber(Int64(position))))
        guard let text = object["text"]?.stringValue else {
            return ObjectDiff([(key: "text", operation: .insert(.string(letters(6_000))))])
        }
        let length = text.utf16.count
        let place = Int.random(in: 0...length, using: &random)
        let deleted = Int.random(in: 0...min(5, length - place), using: &random)
        let inserted = letters(Int.random(in: 1...insertedMax, using: &random))
        let delta = TextDelta(
            [
                .retain(place), .delete(deleted), .insert(Array(inserted.utf16)),
                .retain(length - place - deleted),
            ])
        var operations: [(key: String, operation: Operation)] = [(key: "text", operation: .text(delta))]
        if object.contains("n"), Bool.random(using: &random) { operations.append((key: "n", operation: number)) }
        return ObjectDiff(operations)
    }

    private func letters(_ count: Int) -> String {
        let alphabet: [Character] = Array("abcdefgh \n\"é日")
        return String((0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] })
    }
}
