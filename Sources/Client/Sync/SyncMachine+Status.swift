import ThicketProtocol

/// The status that is reported to the app.
extension SyncMachine {
    /// Recomputes the status, and reports it when it has changed.
    mutating func updateStatus() {
        let current = currentStatus()
        guard current != status else { return }
        status = current
        turn.actions.append(.status(current))
    }

    private func currentStatus() -> SyncStatus {
        switch turn.link.state {
        case .parked(let reason): return .offline(reason)
        case .waiting(_, let reason): return isFirstAttempt ? .connecting : .offline(reason)
        case .connecting: return turn.link.backoff.failures <= 1 ? .connecting : status
        case .open: break
        }
        var done: Int64 = 0
        var total: Int64? = 0
        var isIndexing = false
        var isOpening = false
        var pending = 0
        for channel in buckets where !channel.isLocked {
            switch channel.phase {
            case .scanning,
                .catchingUp where channel.scan.finished != nil:
                // Between the last page and the changes since the first page the channel is still indexing.
                let indexScan = channel.record.indexScan ?? channel.scan.finished
                isIndexing = true
                done += indexScan?.objectsRead ?? 0
                total = indexScan?.objectsTotal.flatMap { one in total.map { $0 + one } }
            case .closed, .opening, .catchingUp, .refused, .lapsed, .renewing: isOpening = true
            case .live:
                pending += channel.keys.edited.count - channel.keys.refusedEdits
            }
        }
        if isIndexing { return .indexing(done: done, of: total) }
        if isOpening { return .connecting }
        return pending == 0 ? .upToDate : .syncing(pending: pending)
    }
}
