import Testing
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

/// Another device that writes under rules that this program does not know, and the newer program that will know them.
/// It is simulated with the operations under known rules: it finds the store that the older program has left, and the
/// same operations readable.
extension Simulation {
    private static var newer: AuthorID { AuthorID(rawValue: 77) }

    func sealedEntity(_ name: String) throws -> SealedEntity {
        try SealedEntity(try #require(server.buckets["notes"]?.entities[try serverKey(name)]?.object))
    }

    private func address(_ name: String) throws -> EntityAddress {
        EntityAddress(bucket: bucket, key: try EntityKey(try serverKey(name)))
    }

    /// The device's stored record of the object.
    func record(_ index: Int, _ name: String) throws -> EntityRecord {
        try #require(clients[index].store.entity(try address(name)))
    }

    /// Two operations of the other device after the server's state, the oldest first.
    ///
    /// - Parameters:
    ///   - isNewer: the first is under newer rules.
    ///   - isDeletion: the second is a tombstone.
    func newerOperations(_ name: String, isNewer: Bool, isDeletion: Bool = false) throws -> [String] {
        let keys = try #require(keys)
        let key = keys.serverKey(of: name)
        let sealer = try keys.sealer(serverKey: key)
        var log = try SealedObject.open(
            try sealedEntity(name), author: Self.newer, place: keys.place(serverKey: key), with: sealer
        ).object.log
        var sealed = [String]()
        for (number, member) in ["first", "second"].enumerated() {
            let diff = ObjectDiff([(key: member, operation: .insert(.string("newer")))])
            let operation = SealedOperation(
                base: log.position, head: try #require(log.chain[log.position]), incarnation: log.incarnationTag,
                author: Self.newer,
                content: number == 1 && isDeletion ? .tombstone : .edit(try Edit(.object(diff))))
            var clear = try #require(try JSONValue(parsing: operation.clearBytes()).objectValue)
            if number == 0, isNewer { clear["t"] = 2 }
            // Different texts are not sealed under one nonce.
            let nonce = Array(repeating: UInt8(number + (isNewer ? 0 : 100)), count: 12)
            let bytes = sealer.seal(
                JSONValue.object(clear).serialized(), kind: .operation, id: Array(repeating: UInt8(number), count: 16),
                position: 0, nonce: nonce)
            sealed.append(Base64.encodeURL(bytes))
            // The newer device's state after it.
            _ = log.append(bytes, clear: operation.clearBytes())
        }
        return sealed
    }

    /// The server shows these operations, the oldest first, after the known ones. All positions are forgotten: every
    /// client reads it.
    mutating func show(_ operations: [String], behind known: SealedEntity, of name: String) throws {
        let key = try serverKey(name)
        var shown = known
        shown.tail = operations.reversed() + known.tail
        server.buckets["notes"]?.entities[key]?.object = shown.object
        server.buckets["notes"]?.entities[key]?.version += Version(operations.count)
        forgetPositions()
    }

    /// The program ends; a newer one starts that can read what the older one stored and what the server holds.
    ///
    /// - Parameters:
    ///   - readable: the same content under the known rules.
    ///   - commits: the newer program's store fails once, after this many commits; nil: never.
    mutating func update(
        _ index: Int, _ name: String, reading readable: SealedEntity, failingAfter commits: Int? = nil
    ) throws {
        let key = try serverKey(name)
        var record = try record(index, name)
        if let held = record.edits.held, held.object != nil {
            record.edits.held = Ghost(version: held.version, object: readable.object)
            var batch = LocalBatch()
            batch.entities = [EntityWrite(try address(name), record, [.ghost, .edits, .marks])]
            try clients[index].store.commit(batch)
        }
        if server.buckets["notes"]?.entities[key]?.object != nil {
            server.buckets["notes"]?.entities[key]?.object = readable.object
        } else if let last = server.buckets["notes"]?.entities[key]?.steps.last {
            let step = ModelServer.Step(version: last.version, before: readable.object, diff: nil)
            server.buckets["notes"]?.entities[key]?.steps = [step]
        }
        try crash(index)
        clients[index].store.commitsUntilFailure = commits
        goOnline(index)
        expectSettled()
    }
}
