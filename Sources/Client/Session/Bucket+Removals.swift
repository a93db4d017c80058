import ThicketProtocol

/// A removed object, or one removal of an object, as the server lists it.
public struct RemovedObject: Sendable, Equatable {
    /// The app's key. It is nil for an object of a sealed bucket when the server no longer has the content before the
    /// removal and this copy never held the object.
    public let key: String?
    /// The key that the server uses; in an open bucket the same as `key`.
    public let serverKey: String
    /// The version that the removal created.
    public let version: Int64
    /// When it was removed, in milliseconds since 1970 by the server's clock; nil when the change has been cut from the
    /// server's log.
    public let removedAt: Int64?
}

extension Bucket {
    /// The objects that are removed at the server, in byte order of the server's keys. The result is not stored
    /// locally.
    ///
    /// - Parameter limit: most objects to return, 1...100,000.
    /// - Throws: `offline` without a connection, `unavailable` when the server does not list removals, `deadline`.
    public func removed(limit: Int = 10_000) async throws(ClientError) -> [RemovedObject] {
        var found = [RemovedObject]()
        var mark: String? = ""
        while let after = mark, found.count < min(max(limit, 1), StreamLimits.removedMax) {
            let list = try await engine.removals(
                bucket, .bucket(after: after), limit: Limits.removalsMax, milliseconds: SyncLimits.answerMilliseconds)
            for entry in list.entries { found.append(try await removedObject(entry)) }
            // A mark that does not advance would cause an endless loop.
            mark = list.mark == after ? nil : list.mark
        }
        return Array(found.prefix(max(limit, 1)))
    }

    /// The removals of one object, the newest first, as far back as the server's log reaches.
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
            // In a sealed bucket only the content before the removal contains the app's key.
            name = try await engine.fetchStored(
                bucket, entry.key, entry.version - 1, milliseconds: SyncLimits.answerMilliseconds
            ).name
        }
        return RemovedObject(
            key: name, serverKey: entry.key.text, version: entry.version, removedAt: entry.timestamp)
    }
}
