import ThicketProtocol

/// What the server may request of a client: its state and its log.
extension SyncMachine {
    /// Answers `index` with positions, versions and pending changes; never with content.
    mutating func reportState(_ number: Int) throws(ClientError) {
        let channel = channels[number]
        let most = SyncLimits.stateReportObjectsMax
        let versions = try store.versions(channel.record.name, limit: most)
        let index: [JSONValue] = versions.map { entry in
            let item: JSONObject = ["id": .string(entry.key.text), "v": .number(JSONNumber(entry.version))]
            return .object(item)
        }
        var pending = [JSONValue]()
        for key in channel.edited.sorted().prefix(most) {
            guard let change = try entity(number, key).record.edits.pending else { continue }
            var item: JSONObject = ["id": .string(key.text)]
            if let source: Version = change.source { item["sv"] = .number(JSONNumber(source)) }
            item["ccid"] = .string(change.changeID.text)
            pending.append(.object(item))
        }
        let extra: JSONObject = [
            "library": .string(options.library), "version": .string(options.version),
            "unsent": .number(JSONNumber(Int64(channel.edited.count))),
        ]
        let current: JSONValue = channel.record.changeVersion.map { .string($0.text) } ?? .null
        let report: JSONObject = [
            "current": current, "index": .array(index), "pending": .array(pending), "extra": .object(extra),
        ]
        send(Messages.state(number, report))
    }

    mutating func setLogLevel(_ level: Int) {
        logLevel = min(max(level, 0), 2)
        guard logLevel > 0 else { return }
        log("logging at level \(logLevel), \(channels.count) buckets open")
    }

    /// Adds a line to the server's log of this client, if the server requested it. Never content, never keys.
    mutating func log(_ line: String, verbose: Bool = false) {
        guard link == .open, logLevel >= (verbose ? 2 : 1), logLines < SyncLimits.logLinesMax else { return }
        logLines += 1
        send(Messages.log(line))
    }
}
