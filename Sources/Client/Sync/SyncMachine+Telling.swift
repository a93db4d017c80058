import ThicketProtocol

/// What is reported to the app: changes of objects, and the status.
extension SyncMachine {
    /// Reports to the app that the object under `key` changed from `before` to `after`.
    mutating func tell(
        _ number: Int, _ key: EntityKey, before: JSONObject?, after: JSONObject?, by change: Edit,
        _ origin: ChangeOrigin
    ) {
        revision += 1
        let bucket = channels[number].record.name
        guard isHeard(bucket) else { return }
        guard let after else {
            guard before != nil else { return }
            let removal = ObjectRemoval(
                key: shownKey(number, key), origin: origin, revision: revision)
            actions.append(.event(bucket, .removed(removal)))
            return
        }
        var diff = ObjectDiff()
        if case .modify(let told) = change, before != nil {
            diff = told
        } else {
            diff = JSONDiff.diff(from: JSONObject(), to: after)
        }
        let told = ObjectChange(
            key: shownKey(number, key), object: after, diff: diff, origin: origin, isNew: before == nil,
            revision: revision)
        actions.append(.event(bucket, .changed(told)))
    }

    /// The app's key of an object.
    func shownKey(_ number: Int, _ key: EntityKey) -> String {
        guard channels[number].sealing != nil else { return key.text }
        return cache[address(number, key)]?.record.name ?? key.text
    }

    mutating func send(_ bytes: [UInt8]) {
        lastSent = now
        actions.append(.send(bytes))
    }

    /// Recomputes the status, and reports it when it has changed.
    mutating func updateStatus() {
        let current = currentStatus()
        guard current != status else { return }
        status = current
        actions.append(.status(current))
    }

    private func currentStatus() -> SyncStatus {
        switch link {
        case .parked(let reason): return .offline(reason)
        case .waiting(_, let reason): return isFirstAttempt ? .connecting : .offline(reason)
        case .connecting: return backoff.failures <= 1 ? .connecting : status
        case .open: break
        }
        var done: Int64 = 0
        var total: Int64? = 0
        var isIndexing = false
        var isOpening = false
        var pending = 0
        for channel in channels where !channel.isLocked {
            switch channel.phase {
            case .walking,
                .catchingUp where channel.walked != nil:
                // Between the last page and the changes since the first page the channel is still indexing.
                let walk = channel.record.walk ?? channel.walked
                isIndexing = true
                done += walk?.objectsRead ?? 0
                total = walk?.objectsTotal.flatMap { one in total.map { $0 + one } }
            case .closed, .opening, .catchingUp, .refused, .lapsed, .renewing: isOpening = true
            case .live:
                pending += channel.edited.count - channel.refusedEdits
            }
        }
        if isIndexing { return .indexing(done: done, of: total) }
        if isOpening { return .connecting }
        return pending == 0 ? .upToDate : .syncing(pending: pending)
    }
}
