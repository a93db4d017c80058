import ThicketProtocol

/// What the server says, by kind.
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
            // A client of this API version gets the reason in a message of its own.
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
        // Of a sealed bucket that was opened as an open one nothing is taken.
        guard channels[number].unavailable?.code != .sealed else { return }
        switch channels[number].phase {
        // What comes between the end of a token and the next one is told again from our position on.
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

    /// A message with changes came while we catch up: is that all?
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

    /// Whether this can be taken for the answer to our `cv`.
    ///
    /// Answers to changes that were on their way when the last connection ended may come before it. Refusals are never
    /// part of it. Acknowledgements alone may be all of it, or not: were they taken for it, we would go on from their
    /// position and never hear of what others did before them. So the question is asked again.
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

    /// A message on one of our channels that does not parse: what it said is lost, so the bucket is read anew.
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
