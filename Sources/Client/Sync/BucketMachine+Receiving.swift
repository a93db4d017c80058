import ThicketProtocol

/// Dispatches the server's messages.
extension BucketMachine {
    mutating func handle(_ reply: ServerReply, _ turn: inout SyncTurn) throws(ClientError) {
        switch reply {
        case .authorized(let user): try authorized(user: user, &turn)
        case .authFailed(let code, let message): authorizationFailed(code: code, message: message, &turn)
        case .authExpired:
            // A client of this API version receives the reason in a separate message.
            if !turn.link.options.renewsToken { turn.park(.unauthorized("the token has expired")) }
        case .index(let page): try received(page: page, &turn)
        case .entity(let reply):
            guard let key = try? EntityKey(reply.key) else { return }
            let value = reply.data?.value.objectValue
            try received(entity: value, key: key, version: reply.version, &turn)
        case .changes(let events): try received(events, &turn)
        case .changeVersionUnknown: try positionUnknown(&turn)
        case .indexRequest: try reportState(&turn)
        case .options(let options):
            receivedMode(options["mode"]?.stringValue, &turn)
            receivedStore(options["store"]?.stringValue, &turn)
        case .removed(let page): try received(removals: page, &turn)
        case .notUnderstood: removalsUnknown(&turn)
        case .unknown: break
        }
    }

    private mutating func received(_ events: [ChangeEvent], _ turn: inout SyncTurn) throws(ClientError) {
        // Nothing is accepted of a sealed bucket that was opened as an open one.
        guard unavailable?.code != .sealed else { return }
        switch phase {
        // Changes between the expiry of a token and its renewal are sent again from the client's position.
        case .opening, .closed, .lapsed, .renewing: return
        case .scanning, .catchingUp, .live, .refused: break
        }
        let isCatchingUp = phase == .catchingUp
        var isAnswer = true
        if isCatchingUp { isAnswer = try mayAnswerPosition(events, &turn) }
        for event in events {
            switch event {
            case .applied(let change):
                if isBeforeForeignIndex { try passOver(change, &turn); continue }
                try applied(RemoteChange(change), movesPosition: isAnswer, &turn)
            case .refused(let refusal):
                guard let key = try? EntityKey(refusal.key) else { continue }
                try refused(key, code: refusal.error, changeIDs: refusal.ccids, &turn)
            }
        }
        guard isCatchingUp else { return }
        if events.isEmpty { return try caughtUp(isCertain: true, &turn) }
        for event in events {
            guard case .applied(let first) = event else { continue }
            return try receivedMore(first: first.cv, isAnswer: isAnswer, &turn)
        }
    }

    /// A message with changes arrived while catching up: checks whether it was the last.
    private mutating func receivedMore(
        first: ChangeVersion?, isAnswer: Bool, _ turn: inout SyncTurn
    ) throws(ClientError) {
        answerDue = turn.now + SyncLimits.answerMilliseconds
        switch catchUp.received(first: first, isAnswer: isAnswer) {
        case .wait: break
        case .ask: turn.send(Messages.onChannel(number, "cv:" + (record.changeVersion?.text ?? "")))
        case .complete: try caughtUp(&turn)
        }
    }

    /// Whether the message can be the answer to `cv`.
    ///
    /// Answers to changes that were in flight when the last connection ended may arrive before it. Refusals are never
    /// part of it. A message with only acknowledgements may or may not be all of it: if it were taken for the answer,
    /// the client would continue from its position and miss the changes of others before it. So the client asks again.
    private mutating func mayAnswerPosition(_ events: [ChangeEvent], _ turn: inout SyncTurn) throws(ClientError) -> Bool
    {
        for event in events {
            guard case .applied(let change) = event else { continue }
            guard let pending = try entity(change.key, &turn).record.edits.pending,
                change.ccids.contains(where: { $0.utf8.elementsEqual(pending.changeID.text.utf8) })
            else { return true }
        }
        return events.isEmpty
    }

    /// A message on a channel that cannot be parsed: its content is lost, so the bucket is scanned again.
    mutating func missedMessage(_ error: WireError, _ turn: inout SyncTurn) {
        switch phase {
        case .live: scan.isNeeded = true
        case .catchingUp: scanAgain(&turn)
        default: turn.hangUp("the server's message could not be read: \(error)")
        }
    }
}
