import ThicketProtocol

/// Dispatches the server's messages.
extension SyncMachine {
    mutating func handle(_ message: ServerBatch.Message) throws(ClientError) {
        switch message {
        case .unreadable(let bytes, let error): unreadable(bytes, error)
        case .read(let message): try handle(message)
        }
    }

    private mutating func handle(_ message: ServerMessage) throws(ClientError) {
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
        case .authExpired:
            // A client of this API version receives the reason in a separate message.
            if !options.renewsToken { park(.unauthorized("the token has expired")) }
        case .index(let page): try received(page: page, on: number)
        case .entity(let reply):
            guard let key = try? EntityKey(reply.key) else { return }
            let value = reply.data?.value.objectValue
            try received(entity: value, key: key, version: reply.version, on: number)
        case .changes(let events): try received(events, on: number)
        case .changeVersionUnknown: try positionUnknown(number)
        case .indexRequest: try reportState(number)
        case .options(let options):
            heardMode(options["mode"]?.stringValue, on: number)
            heardStore(options["store"]?.stringValue, on: number)
        case .removed(let page): try received(removals: page, on: number)
        case .notUnderstood: removalsUnknown(number)
        case .unknown: break
        }
    }

    private mutating func received(_ events: [ChangeEvent], on number: Int) throws(ClientError) {
        // Nothing is accepted of a sealed bucket that was opened as an open one.
        guard channels[number].unavailable?.code != .sealed else { return }
        switch channels[number].phase {
        // Changes between the expiry of a token and its renewal are sent again from the client's position.
        case .opening, .closed, .lapsed, .renewing: return
        case .walking, .catchingUp, .live, .refused: break
        }
        let isCatchingUp = channels[number].phase == .catchingUp
        var isAnswer = true
        if isCatchingUp { isAnswer = try mayAnswerPosition(events, on: number) }
        for event in events {
            switch event {
            case .applied(let change):
                if isBeforeStrangeIndex(number) { try passOver(change, on: number); continue }
                try applied(read(change), on: number, movesPosition: isAnswer)
            case .refused(let refusal):
                guard let key = try? EntityKey(refusal.key) else { continue }
                try refused(number, key, code: refusal.error, changeIDs: refusal.ccids)
            }
            guard link == .open else { return }
        }
        guard isCatchingUp else { return }
        if events.isEmpty { return try caughtUp(number, isCertain: true) }
        for event in events {
            guard case .applied(let first) = event else { continue }
            return try heardMore(number, first: first.cv, isAnswer: isAnswer)
        }
    }

    /// A message with changes arrived while catching up: checks whether it was the last.
    private mutating func heardMore(
        _ number: Int, first: ChangeVersion?, isAnswer: Bool
    ) throws(ClientError) {
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        switch channels[number].catchUp.heard(first: first, isAnswer: isAnswer) {
        case .wait: break
        case .ask: send(Messages.onChannel(number, "cv:" + (channels[number].record.changeVersion?.text ?? "")))
        case .complete: try caughtUp(number)
        }
    }

    /// Whether the message can be the answer to `cv`.
    ///
    /// Answers to changes that were in flight when the last connection ended may arrive before it. Refusals are never
    /// part of it. A message with only acknowledgements may or may not be all of it: if it were taken for the answer,
    /// the client would continue from its position and miss the changes of others before it. So the client asks again.
    private mutating func mayAnswerPosition(_ events: [ChangeEvent], on number: Int) throws(ClientError) -> Bool {
        for event in events {
            guard case .applied(let change) = event else { continue }
            guard let pending = try entity(number, change.key).record.edits.pending,
                change.ccids.contains(where: { $0.utf8.elementsEqual(pending.changeID.text.utf8) })
            else { return true }
        }
        return events.isEmpty
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

    /// A message on a channel that cannot be parsed: its content is lost, so the bucket is scanned again.
    private mutating func unreadable(_ bytes: [UInt8], _ error: WireError) {
        log("a message could not be read: \(error)")
        let digits = bytes.prefix { (0x30...0x39).contains($0) }
        guard let number = Int(String(decoding: digits, as: UTF8.self)), channels.indices.contains(number) else {
            return
        }
        switch channels[number].phase {
        case .live: channels[number].needsWalk = true
        case .catchingUp: walkAgain(number)
        default: hangUp("the server's message could not be read: \(error)")
        }
    }
}
