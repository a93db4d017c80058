package import ThicketProtocol

/// Removals as the server lists them.
package struct RemovalList: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// The server's key.
        package let key: EntityKey
        /// The app's key; nil for an object of a sealed bucket that this copy has never held.
        package let name: String?
        /// The version that the removal created.
        package let version: Version
        /// Milliseconds since 1970 by the server's clock; nil: the server no longer knows.
        package let timestamp: Int64?
    }

    /// The scope of the request, with the server's key.
    package let scope: RemovedRequest.Scope
    package let entries: [Entry]
    /// The key after which the next page begins; nil on the last page.
    package let mark: String?
}

/// Requests for removals, which an index does not list.
extension SyncMachine {
    /// Requests removals; the answer is the action `removals`.
    ///
    /// - Throws: `offline` when the bucket is not connected.
    package mutating func askRemovals(
        _ bucket: BucketName, _ request: RemovedRequest, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let number = try number(bucket)
        guard link == .open, channels[number].phase == .live else {
            throw ClientError(.offline, "only the server knows removals")
        }
        return try turn(now) { machine throws(ClientError) in
            machine.channels[number].removalsAsked += 1
            var writer = JSONWriter()
            request.write(to: &writer)
            machine.send(Messages.onChannel(number, "removed:", writer.bytes))
        }
    }

    mutating func received(removals page: RemovedPage, on number: Int) throws(ClientError) {
        guard channels[number].removalsAsked > 0 else { return }
        channels[number].removalsAsked -= 1
        let bucket = channels[number].record.name
        var entries = [RemovalList.Entry]()
        for entry in page.entries {
            guard let key = try? EntityKey(entry.key), !isHeads(key, number) else { continue }
            let name = channels[number].record.isSealed ? try entity(number, key).record.name : key.text
            entries.append(
                RemovalList.Entry(key: key, name: name, version: entry.version, timestamp: entry.timestamp))
        }
        let list = RemovalList(scope: page.scope, entries: entries, mark: page.mark)
        actions.append(.removals(bucket, list))
    }

    /// The server did not understand a command: it can only be this one, because all others are part of the basic
    /// protocol.
    mutating func removalsUnknown(_ number: Int) {
        guard channels[number].removalsAsked > 0 else { return }
        channels[number].removalsAsked = 0
        actions.append(.removals(channels[number].record.name, nil))
    }

    /// The internal object `heads` of a sealed bucket, which is hidden from apps.
    private func isHeads(_ key: EntityKey, _ number: Int) -> Bool { channels[number].sealing?.headsKey == key }
}
