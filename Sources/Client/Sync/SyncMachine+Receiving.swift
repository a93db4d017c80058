import ThicketProtocol

/// What the server says, by kind.
extension SyncMachine {
    mutating func handle(_ bytes: [UInt8]) throws(ClientError) {
        let message: ServerMessage
        do {
            message = try ServerMessage(parsing: bytes)
        } catch {
            return unreadable(bytes, error)
        }
        switch message {
        case .heartbeat(let count): heartbeat = count &+ 1
        case .log(let level): setLogLevel(level)
        case .channel(let channel, let reply):
            guard channels.indices.contains(Int(channel)) else { return }
            try handle(reply, on: Int(channel))
        }
    }

    private mutating func handle(_ reply: ServerReply, on number: Int) throws(ClientError) {
        switch reply {
        case .authorized(let user): try authorized(number, user: user)
        case .authFailed(let code, let message): authorizationFailed(number, code: code, message: message)
        case .authExpired: park(.unauthorized("the token has expired"))
        case .index(let page): try received(page: try read(page), on: number)
        case .entity(let reply):
            guard let key: EntityKey = try? EntityKey(reply.key) else { return }
            let value: JSONObject? = reply.data?.value.objectValue
            try received(entity: value, key: key, version: reply.version, on: number)
        case .changes(let events): try received(events, on: number)
        case .changeVersionUnknown: positionUnknown(number)
        case .indexRequest: try reportState(number)
        case .notUnderstood, .options, .unknown: break
        }
    }

    private func read(_ page: IndexPage) throws(ClientError) -> IndexedPage {
        let objects: [IndexedObject] = page.entries.map { entry in
            IndexedObject(key: entry.key, version: entry.version, value: entry.data?.value.objectValue)
        }
        return IndexedPage(current: page.current, objects: objects, mark: page.mark, total: page.count)
    }

    private mutating func received(_ events: [ChangeEvent], on number: Int) throws(ClientError) {
        guard channels[number].phase != .opening, channels[number].phase != .closed else { return }
        for event: ChangeEvent in events {
            switch event {
            case .applied(let change): try applied(read(change), on: number)
            case .refused(let refusal):
                guard let key: EntityKey = try? EntityKey(refusal.key) else { continue }
                try refused(number, key, code: refusal.error, changeIDs: refusal.ccids)
            }
            guard link == .open else { return }
        }
        caughtUp(number)
    }

    private func read(_ change: AppliedChange) -> RemoteChange {
        let effect: RemoteChange.Effect
        switch change.operation {
        case .remove: effect = .remove
        case .modify: effect = .modify(change.diff.flatMap { try? ObjectDiff($0.value) })
        }
        return RemoteChange(
            key: change.key, changeIDs: change.ccids, position: change.cv, effect: effect, source: change.sv,
            end: change.ev)
    }

    /// A message on one of our channels that does not parse: what it said is lost, so the bucket is read anew.
    private mutating func unreadable(_ bytes: [UInt8], _ error: WireError) {
        log("a message could not be read: \(error)")
        let digits: ArraySlice<UInt8> = bytes.prefix { (0x30...0x39).contains($0) }
        guard let number: Int = Int(String(decoding: digits, as: UTF8.self)), channels.indices.contains(number) else {
            return
        }
        switch channels[number].phase {
        case .live: channels[number].needsWalk = true
        case .catchingUp: walkAgain(number)
        default: hangUp("the server's message could not be read: \(error)")
        }
    }
}
