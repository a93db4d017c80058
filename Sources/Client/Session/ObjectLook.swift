package import ThicketProtocol

/// An object with what a program needs to keep a copy of it outside of the store, such as the mirror.
package struct ObjectLook: Sendable, Equatable {
    package let object: JSONObject?
    /// The object does not exist but did: a removal was made here or received. An object that was never seen in this
    /// bucket does not count as removed.
    package let isRemoved: Bool
    package let place: BucketPlace
}

/// Which bucket of which server a local copy follows, and how far it has read.
package struct BucketPlace: Sendable, Equatable {
    /// Identifies the local copy and counts how often it met a bucket that may be a different one than before:
    /// comparisons made at another origin do not apply to the current objects. nil while such a bucket is being read.
    package let origin: String?
    /// Whether the copy has met no such bucket since it was created.
    package let isFirst: Bool
    /// Whether the bucket has been read completely at some time.
    package let isRead: Bool
    /// Whether the server is still sending what happened since the last connection.
    package let isReading: Bool
}

extension SyncMachine {
    package mutating func look(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> ObjectLook {
        let number = try number(bucket)
        let entity = try buckets[number].entity(try wireKey(number, key), &turn)
        let ghost = entity.record.ghost
        let isRemoved = entity.local == nil && (ghost.version > 0 || ghost.object != nil)
        return ObjectLook(object: entity.local, isRemoved: isRemoved, place: try place(bucket))
    }

    package func place(_ bucket: BucketName) throws(ClientError) -> BucketPlace {
        let channel = buckets[try number(bucket)]
        let record = channel.record
        let isLost = record.changeVersion == nil || record.indexScan?.isSame == false
        let isBetween = isLost && record.generation > 0
        let isReading =
            switch channel.phase {
            case .opening, .scanning, .catchingUp: true
            case .closed, .live, .refused, .lapsed, .renewing: false
            }
        return BucketPlace(
            origin: isBetween ? nil : "\(clientID.text).\(record.generation)", isFirst: record.generation == 0,
            isRead: record.changeVersion != nil, isReading: isReading)
    }
}

extension Bucket {
    package func look(_ key: String) async throws(ClientError) -> ObjectLook {
        let key = try Self.key(key)
        let bucket = bucket
        return try await engine.act { (machine, _) throws(ClientError) in (try machine.look(bucket, key), []) }
    }

    package var place: BucketPlace {
        get async throws(ClientError) {
            let bucket = bucket
            return try await engine.act { (machine, _) throws(ClientError) in (try machine.place(bucket), []) }
        }
    }
}
