package import ThicketProtocol

/// An object with what a program needs that keeps a copy of it elsewhere.
package struct ObjectLook: Sendable, Equatable {
    package let object: JSONObject?
    /// There is none, and there was one: a removal was made here or heard of. An object that is absent and was never
    /// seen in this bucket is not a removed one.
    package let isRemoved: Bool
    package let place: BucketPlace
}

/// Which bucket of which server a local copy follows, and how far it is.
package struct BucketPlace: Sendable, Equatable {
    /// Names the local copy, and counts how often it met a bucket that need not be the one known before: what was
    /// compared at another origin says nothing of the objects that are here now. nil while such a bucket is being read.
    package let origin: String?
    /// The copy has met no such bucket since it was made.
    package let isFirst: Bool
    /// The bucket was read as a whole, at some time.
    package let isRead: Bool
    /// The server is telling what happened since the last connection.
    package let isReading: Bool
}

extension SyncMachine {
    package mutating func look(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> ObjectLook {
        let number = try number(bucket)
        let entity = try entity(number, try wireKey(number, key))
        let ghost = entity.record.ghost
        let isRemoved = entity.local == nil && (ghost.version > 0 || ghost.object != nil)
        return ObjectLook(object: entity.local, isRemoved: isRemoved, place: try place(bucket))
    }

    package func place(_ bucket: BucketName) throws(ClientError) -> BucketPlace {
        let channel = channels[try number(bucket)]
        let record = channel.record
        let isLost = record.changeVersion == nil || record.walk?.isSame == false
        let isBetween = isLost && record.generation > 0
        let isReading =
            switch channel.phase {
            case .opening, .walking, .catchingUp: true
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
