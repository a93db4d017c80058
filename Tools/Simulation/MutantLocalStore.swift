import ThicketClient
import ThicketProtocol

/// A client's store with a bug.
final class MutantLocalStore: LocalStore {
    private let inner: any LocalStore
    private let mutant: Mutant
    private var turns = 0

    init(_ inner: any LocalStore, _ mutant: Mutant) {
        self.inner = inner
        self.mutant = mutant
    }

    func clientID(fresh: ClientID) throws(ClientError) -> ClientID { try inner.clientID(fresh: fresh) }
    func namedValue(_ name: String) throws(ClientError) -> String? { try inner.namedValue(name) }
    func setNamedValue(_ name: String, to value: String) throws(ClientError) {
        try inner.setNamedValue(name, to: value)
    }
    func buckets() throws(ClientError) -> [BucketRecord] { try inner.buckets() }
    func entity(_ address: EntityAddress) throws(ClientError) -> EntityRecord? { try inner.entity(address) }
    func known(_ bucket: BucketName, among keys: [EntityKey]) throws(ClientError) -> Set<EntityKey> {
        try inner.known(bucket, among: keys)
    }
    func liveKeys(_ bucket: BucketName, after: EntityKey?, limit: Int) throws(ClientError) -> [EntityKey] {
        try inner.liveKeys(bucket, after: after, limit: limit)
    }
    func liveNames(_ bucket: BucketName, after: String?, limit: Int) throws(ClientError) -> [String] {
        try inner.liveNames(bucket, after: after, limit: limit)
    }
    func edited(_ bucket: BucketName) throws(ClientError) -> [EditedKey] { try inner.edited(bucket) }
    func keysHeld(_ bucket: BucketName) throws(ClientError) -> [EntityKey] { try inner.keysHeld(bucket) }
    func keysUnseen(_ bucket: BucketName, scanID: Int64) throws(ClientError) -> [EntityKey] {
        try inner.keysUnseen(bucket, scanID: scanID)
    }
    func versions(_ bucket: BucketName, limit: Int) throws(ClientError) -> [(key: EntityKey, version: Version)] {
        try inner.versions(bucket, limit: limit)
    }
    func undelivered(_ bucket: BucketName) throws(ClientError) -> [BucketEvent] { try inner.undelivered(bucket) }
    func close() { inner.close() }

    func commit(_ batch: LocalBatch) throws(ClientError) {
        var batch = batch
        turns += 1
        // Steps continue from what was stored, which differs with a bug: whole records are written instead.
        batch.entities = batch.entities.map { Self.without([], $0) }
        switch mutant {
        case .unsavedPending where batch.isOnDisk: batch.entities.removeAll { $0.parts.contains(.edits) }
        case .tornTurn where turns % 20 == 0:
            batch.entities = batch.entities.map { $0.parts.contains(.ghost) ? Self.without(.edits, $0) : $0 }
        case .lostGhost where turns % 20 == 0: batch.entities = batch.entities.map { Self.without(.ghost, $0) }
        default: break
        }
        try inner.commit(batch)
    }

    private static func without(_ part: EntityParts, _ write: EntityWrite) -> EntityWrite {
        EntityWrite(write.address, write.record, write.parts.subtracting(part))
    }
}
