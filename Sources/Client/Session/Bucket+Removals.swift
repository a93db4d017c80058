import ThicketProtocol

/// An object that was removed, or one removal of an object, as the server lists it.
public struct RemovedObject: Sendable, Equatable {
    /// The key; nil: an object of a sealed bucket whose content from before the removal the server no longer has, and
    /// that this copy has never held.
    public let key: String?
    /// The key under which the server lists it: the same in an open bucket.
    public let serverKey: String
    /// The version that the removal made.
    public let version: Int64
    /// Milliseconds since 1970 by the server's clock; nil: the change has been cut from the server's log.
    public let removedAt: Int64?
}

extension Bucket {
    /// Objects that are removed at the server, in byte order of the server's keys. Nothing of it is kept here.
    ///
    /// - Parameter limit: objects at most, 1...100,000.
    /// - Throws: `offline` without a connection, `unavailable` when the server does not list removals, `deadline`.
    public func removed(limit: Int = 10_000) async throws(ClientError) -> [RemovedObject] {
        var found = [RemovedObject]()
        var mark: String? = ""
        while let after = mark, found.count < min(max(limit, 1), StreamLimits.removedMax) {
            let list = try await engine.removals(
                bucket, .bucket(after: after), limit: Limits.removalsMax, milliseconds: SyncLimits.answerMilliseconds)
            for entry in list.entries { found.append(try await removedObject(entry)) }
            // A mark that does not move on would be asked for without end.
            mark = list.mark == after ? nil : list.mark
        }
        return Array(found.prefix(max(limit, 1)))
    }

    /// The removals of one object, the newest first, as far as the server's log goes.
    ///
    /// - Throws: as `removed`.
    public func removals(of key: String) async throws(ClientError) -> [RemovedObject] {
        let serverKey = try await storedKey(of: key)
        let list = try await engine.removals(
            bucket, .object(serverKey), limit: StreamLimits.versionsMax, milliseconds: SyncLimits.answerMilliseconds)
        return list.entries.map {
            RemovedObject(key: key, serverKey: serverKey, version: $0.version, removedAt: $0.timestamp)
        }
    }

    private func removedObject(_ entry: RemovalList.Entry) async throws(ClientError) -> RemovedObject {
        var name = entry.name
        if name == nil {
            // The content from before the removal names the object.
            name = try await engine.fetchStored(
                bucket, entry.key, entry.version - 1, milliseconds: SyncLimits.answerMilliseconds
            ).name
        }
        return RemovedObject(
            key: name, serverKey: entry.key.text, version: entry.version, removedAt: entry.timestamp)
    }
}
