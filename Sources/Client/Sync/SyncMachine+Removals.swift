package import ThicketProtocol

/// Removals as the server lists them.
package struct RemovalList: Sendable, Equatable {
    /// One removal.
    package struct Entry: Sendable, Equatable {
        /// The server's key.
        package let key: EntityKey
        /// The app's key; nil: an object of a sealed bucket that this copy has never held.
        package let name: String?
        /// The version that the removal made.
        package let version: Version
        /// Milliseconds since 1970 by the server's clock; nil: the server no longer knows.
        package let timestamp: Int64?
    }

    /// What was asked, with the server's key.
    package let scope: RemovedRequest.Scope
    package let entries: [Entry]
    /// The key behind which the next page begins; nil on the last one.
    package let mark: String?
}

/// Questions for removals: the index lists none.
extension SyncMachine {
    /// Asks for removals; the answer comes as `removals`.
    ///
    /// - Throws: `offline` when the bucket is not connected.
    package mutating func askRemovals(
        _ bucket: BucketName, _ request: RemovedRequest, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let number = try number(bucket)
        guard link == .open, channels[number].phase == .live else {
            throw ClientError(.offline, "removals are known to the server only")
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

    /// The server did not understand a command; every other command that this client sends is one of the protocol's.
    mutating func removalsUnknown(_ number: Int) {
        guard channels[number].removalsAsked > 0 else { return }
        channels[number].removalsAsked = 0
        actions.append(.removals(channels[number].record.name, nil))
    }

    /// The object `heads` of a sealed bucket, which no app sees.
    private func isHeads(_ key: EntityKey, _ number: Int) -> Bool { channels[number].sealing?.headsKey == key }
}
