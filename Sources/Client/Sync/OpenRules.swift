import ThicketProtocol

/// The rules of open buckets: the server merges their changes, and so does the client.
enum OpenRules: ObjectRules {
    static func entity(
        _ record: EntityRecord, _ key: EntityKey, _ bucket: inout BucketMachine
    ) throws(ClientError) -> LocalEntity {
        do {
            let base = try Edits.apply(record.edits.pending?.edit, to: record.ghost.object)
            return LocalEntity(record: record, base: base, local: try Edits.apply(record.edits.later, to: base))
        } catch {
            throw ClientError(.store, "the stored edits of an object do not fit it")
        }
    }

    static func version(
        _ bucket: inout BucketMachine, of value: JSONObject?, _ key: EntityKey
    ) throws(ClientError) -> FetchedVersion {
        FetchedVersion(object: value, stored: value)
    }

    static func receiveNew(
        _ bucket: inout BucketMachine, _ entries: [IndexPage.Entry], _ known: Set<EntityKey>, scanID: Int64,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        for entry in entries {
            let address = bucket.address(entry.key)
            guard !known.contains(entry.key), let body = entry.data, body.isObject, turn.isUnseen(address)
            else {
                try bucket.indexed(entry, scanID: scanID, &turn)
                continue
            }
            turn.arrive(NewObject(address, version: entry.version, scanID: scanID, body: body))
        }
    }
}
