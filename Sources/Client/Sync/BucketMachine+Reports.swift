import ThicketProtocol

/// What the server may request of a client, and removals, which an index does not list.
extension BucketMachine {
    /// Answers `index` with positions, versions and pending changes; never with content.
    mutating func reportState(_ turn: inout SyncTurn) throws(ClientError) {
        let most = SyncLimits.stateReportObjectsMax
        let versions = try turn.store.versions(record.name, limit: most)
        let index: [JSONValue] = versions.map { entry in
            let item: JSONObject = ["id": .string(entry.key.text), "v": .number(JSONNumber(entry.version))]
            return .object(item)
        }
        var pending = [JSONValue]()
        for key in keys.edited.sorted().prefix(most) {
            guard let change = try entity(key, &turn).record.edits.pending else { continue }
            var item: JSONObject = ["id": .string(key.text)]
            if let source: Version = change.source { item["sv"] = .number(JSONNumber(source)) }
            item["ccid"] = .string(change.changeID.text)
            pending.append(.object(item))
        }
        let extra: JSONObject = [
            "library": .string(turn.link.options.library), "version": .string(turn.link.options.version),
            "unsent": .number(JSONNumber(Int64(keys.edited.count))),
        ]
        let current: JSONValue = record.changeVersion.map { .string($0.text) } ?? .null
        let report: JSONObject = [
            "current": current, "index": .array(index), "pending": .array(pending), "extra": .object(extra),
        ]
        turn.send(Messages.state(number, report))
    }

    mutating func received(removals page: RemovedPage, _ turn: inout SyncTurn) throws(ClientError) {
        guard removalsAsked > 0 else { return }
        removalsAsked -= 1
        let bucket = record.name
        var entries = [RemovalList.Entry]()
        for entry in page.entries {
            guard let key = try? EntityKey(entry.key), !isHeads(key) else { continue }
            let name = record.isSealed ? try entity(key, &turn).record.name : key.text
            entries.append(
                RemovalList.Entry(key: key, name: name, version: entry.version, timestamp: entry.timestamp))
        }
        let list = RemovalList(scope: page.scope, entries: entries, mark: page.mark)
        turn.actions.append(.removals(bucket, list))
    }

    /// The server did not understand a command: it can only be this one, because all others are part of the basic
    /// protocol.
    mutating func removalsUnknown(_ turn: inout SyncTurn) {
        guard removalsAsked > 0 else { return }
        removalsAsked = 0
        turn.actions.append(.removals(record.name, nil))
    }

    /// The internal object `heads` of a sealed bucket, which is hidden from apps.
    private func isHeads(_ key: EntityKey) -> Bool { sealing?.headsKey == key }
}
