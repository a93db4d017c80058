import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketServer

/// A sealing bug in one client: its messages are altered on the way to the network, with the client's keys.
final class SealedMutation {
    private unowned let client: SimulatedClient
    private let mutant: Mutant
    private var random: SimulationRandom
    /// Operations that were sent, by ccid.
    private var sealed = Set<String>()

    /// - Returns: nil when no such bug is built in.
    init?(_ client: SimulatedClient) {
        guard let mutant = client.world.scenario.mutant, mutant.needsSealing, mutant != .acceptsClear else {
            return nil
        }
        self.client = client
        self.mutant = mutant
        random = client.world.random.split()
    }

    /// What is sent in the place of `text`.
    func sent(_ text: [UInt8]) -> [UInt8] {
        guard case .channel(let number, .change(let change))? = try? ClientMessage(parsing: text),
            let bucket = client.bucket(of: number),
            let keys = client.world.names.keys(bucket, of: client.account),
            let sealer = try? keys.sealer(serverKey: change.key),
            let other = changed(change, in: bucket, sealer)
        else { return text }
        return ClientMessage.channel(number, .change(other)).encoded()
    }

    private func changed(
        _ change: ChangeRequest, in bucket: BucketName, _ sealer: ObjectSealer
    ) -> ChangeRequest? {
        var change = change
        switch mutant {
        case .freshSealing:
            guard let text = change.sealedOperation, !sealed.insert(change.ccid).inserted,
                let opened = sealer.open(SealedObject.bytes(of: text), kind: .operation, position: 0)
            else { return nil }
            let again = sealer.seal(
                opened.clear, kind: .operation, id: opened.id, position: 0, nonce: bytes(AEADSuite.nonceBytes))
            change.diff = .value(.object(SealedEntity.insertion(Base64.encodeURL(again)).json.objectValue ?? [:]))
        case .bareRemoval:
            guard let text = change.sealedOperation,
                let clear = sealer.open(SealedObject.bytes(of: text), kind: .operation, position: 0)?.clear,
                (try? JSONValue(parsing: clear))?["x"] == .string("-")
            else { return nil }
            change.operation = .remove
            change.diff = nil
        case .forgetfulCompaction:
            guard let diff = forgetful(change, in: bucket, sealer) else { return nil }
            change.diff = .value(diff)
        default: return nil
        }
        return change
    }

    /// The compaction with a snapshot of the object before the last operation.
    private func forgetful(_ change: ChangeRequest, in bucket: BucketName, _ sealer: ObjectSealer) -> JSONValue? {
        guard change.isCompaction, let value = change.diff?.value,
            let diff = try? ObjectDiff(value),
            case .object(let named)? = diff["s"], let key = try? EntityKey(change.key)
        else { return nil }
        let id = client.world.names.id(bucket, of: client.account)
        var operations = [(key: String, operation: Operation)]()
        for (name, operation) in named.operations {
            guard case .insert(.string(let text)) = operation, let position = Int(name),
                let opened = sealer.open(SealedObject.bytes(of: text), kind: .snapshot, position: position),
                var clear = (try? JSONValue(parsing: opened.clear, maxDepth: SealedLimits.clearDepthMax))?
                    .objectValue,
                let truth = client.world.ledger.mirror(id).sealed[key], truth.log.position == position,
                let before = truth.before
            else {
                operations.append((key: name, operation: operation))
                continue
            }
            clear["o"] = .object(before)
            let again = sealer.seal(
                JSONValue.object(clear).serialized(), kind: .snapshot, id: opened.id, position: position,
                nonce: bytes(AEADSuite.nonceBytes))
            operations.append((key: name, operation: .insert(.string(Base64.encodeURL(again)))))
        }
        var all = diff.operations
        for place in all.indices where all[place].key == "s" {
            all[place].operation = .object(ObjectDiff(operations))
        }
        return ObjectDiff(all).json
    }

    private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(random.below(256)) } }
}

/// Clear text that an older program of the same user writes into a sealed bucket.
enum ClearWrite {
    /// Whether `text` is a change of a sealed object: a clear change is then sent beside it.
    static func fits(_ text: [UInt8]) -> Bool {
        guard case .channel(_, .change(let change))? = try? ClientMessage(parsing: text) else { return false }
        return change.sealedOperation != nil
    }

    /// A new object, or a member of the object that `text` changes.
    static func made(beside text: [UInt8], of account: Account, number: Int) -> [UInt8]? {
        guard case .channel(let channel, .change(let sealed))? = try? ClientMessage(parsing: text) else { return nil }
        let isNew = number % 2 == 0
        var change = ChangeRequest(
            key: isNew ? "clear" : sealed.key, ccid: "clear-\(account.number)-\(number)", operation: .modify)
        let mark = JSONValue.string(MarkerSource.mark(of: account.number) + "clear")
        change.diff = .value(ObjectDiff([(key: "t", operation: .insert(mark))]).json)
        if !isNew { change.sv = sealed.sv }
        return ClientMessage.channel(channel, .change(change)).encoded()
    }
}

extension ChangeRequest {
    private var sealedDiff: ObjectDiff? {
        guard operation == .modify, let value = diff?.value else { return nil }
        return try? ObjectDiff(value)
    }

    /// The text of the sealed operation, if the change inserts one.
    var sealedOperation: String? {
        guard let diff = sealedDiff, diff.operations.count == 1, case .list(let list)? = diff["d"],
            list.operations.count == 1, case .insert(.string(let text)) = list.operations[0].operation
        else { return nil }
        return text
    }

    /// Whether it is a compaction of a sealed object: it changes `s` and removes from `d`.
    var isCompaction: Bool {
        guard sv != nil, let diff = sealedDiff, diff.operations.count == 2, case .object? = diff["s"],
            case .list? = diff["d"]
        else { return false }
        return true
    }
}
