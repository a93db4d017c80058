import ThicketProtocol

/// Opening the bucket and catching up.
extension BucketMachine {
    /// Sends `init` with the command that fits the local state.
    mutating func open(_ turn: inout SyncTurn) {
        guard !isLocked else { return }
        disconnected()
        phase = .opening
        token.number = turn.link.options.tokenNumber
        answerDue = turn.now + SyncLimits.answerMilliseconds
        for key in keys.edited.sorted() { outbox.resend.append(key) }
        for key in keys.stale.sorted() { reloads.queue.append(key) }
        if record.changeVersion == nil, record.indexScan == nil { beginScan(&turn) }
        let command: String
        if let indexScan = record.indexScan {
            command = Messages.index(mark: indexScan.mark, limit: turn.link.options.indexPageObjects)
        } else {
            command = "cv:" + (record.changeVersion?.text ?? "")
        }
        turn.send(
            Messages.initialize(
                number, record.name, turn.link.clientID, turn.link.options, command: command,
                mode: record.isSealed ? "sealed" : nil))
    }

    /// - Parameter user: the user that the server derives from the token. A store holds one user's objects for good:
    ///   syncing it as another user would mix two users' data.
    mutating func authorized(user: String, _ turn: inout SyncTurn) throws(ClientError) {
        guard phase == .opening || phase == .renewing else { return }
        if let owner = try turn.store.namedValue("user") {
            guard owner.utf8.elementsEqual(user.utf8) else { return turn.park(.wrongAccount(user)) }
        } else {
            try turn.store.setNamedValue("user", to: user)
        }
        turn.tokenWorked(token.number)
        if phase == .renewing { return goOn(&turn) }
        phase = record.indexScan == nil ? .catchingUp : .scanning
        answerDue = turn.now + SyncLimits.answerMilliseconds
    }

    mutating func authorizationFailed(code: Int, message: String, _ turn: inout SyncTurn) {
        if code == ErrorCode.unauthorized.rawValue || code == ErrorCode.invalidRequest.rawValue {
            if turn.link.options.renewsToken {
                return tokenRefused(isExpired: message.utf8.elementsEqual(Self.expired.utf8), &turn)
            }
            return turn.park(.unauthorized(message))
        }
        let error = ClientError(
            .unavailable, "the server does not open the bucket: \(message)", number: code)
        phase = .refused
        unavailable = error
        answerDue = nil
        resumeAt = turn.now + SyncLimits.reopenMilliseconds
        turn.actions.append(.event(record.name, .unavailable(error)))
    }

    /// Continues what has waited until now.
    mutating func wake(_ turn: inout SyncTurn) {
        // The end of the turn sends what waited.
        if let send = outbox.resumeAt, send <= turn.now { outbox.resumeAt = nil }
        guard let resume = resumeAt, resume <= turn.now else { return }
        resumeAt = nil
        switch phase {
        case .refused: open(&turn)
        case .scanning: requestPage(&turn)
        default: break
        }
    }

    /// The server does not know the client's position: scans the index.
    ///
    /// Happens also in `live`: the answer to a change that was in flight may have arrived first and looked like the
    /// answer to `cv`, while the server, which did not know that position, sends nothing but this client's own changes.
    mutating func positionUnknown(_ turn: inout SyncTurn) throws(ClientError) {
        guard phase == .catchingUp || phase == .live else { return }
        if try rules.missedForGood(&self, &turn) { return }
        served.holdsPosition = false
        scanAgain(&turn)
    }

    /// The answer to `cv` is complete: everything up to now has arrived.
    ///
    /// - Parameter isCertain: the server gave an empty answer, which it does only for a position that it knows.
    mutating func caughtUp(isCertain: Bool = false, _ turn: inout SyncTurn) throws(ClientError) {
        guard phase == .catchingUp else { return }
        if isCertain { positionIsKnown(&turn) }
        try rules.reportMissing(&self, &turn)
        phase = .live
        scan.finished = nil
        answerDue = nil
        outbox.resendStrays()
        if !scan.isNeeded { scan.fruitless = 0 }
        turn.actions.append(.event(record.name, .caughtUp))
        try rules.caughtUp(&self, &turn)
    }

    /// Sends what can be sent: requests for objects, then repeated changes, then new ones.
    mutating func pump(_ turn: inout SyncTurn) throws(ClientError) {
        guard turn.link.isOpen, phase == .live else { return }
        if scan.isNeeded { return scanAgain(&turn) }
        while let key = reloads.next() {
            guard let version = try entity(key, &turn).record.edits.wanted else { continue }
            reloads.ask(key, at: turn.now)
            turn.send(Messages.onChannel(number, "e:\(key.text).\(version)"))
        }
        guard !outbox.isReadOnly, unavailable == nil else { return }
        if let resume = outbox.resumeAt, resume > turn.now { return }
        while outbox.hasRoom(turn.link.options.changesInFlightMax), let key = outbox.resend.popFirst() {
            try sendAgain(key, &turn)
        }
        while outbox.hasRoom(turn.link.options.changesInFlightMax), let key = outbox.ready.popFirst() {
            try rules.sendNew(&self, key, &turn)
        }
        try rules.pump(&self, &turn)
    }

    /// Handles the mode of the bucket as reported by the server. It is not trusted: the store holds the mode in which
    /// the app opened the bucket. A difference is reported to the app, and nothing is sent unencrypted into a sealed
    /// bucket.
    mutating func receivedMode(_ mode: String?, _ turn: inout SyncTurn) {
        guard let mode else { return }
        let isSealed = mode.utf8.elementsEqual("sealed".utf8)
        guard isSealed != record.isSealed else {
            sealing?.isModeReported = false
            sealing?.isServed = isSealed
            return
        }
        if record.isSealed {
            guard sealing?.isModeReported == false else { return }
            sealing?.isModeReported = true
            sealing?.isServed = false
            let detail = "the server no longer reports the bucket as sealed; this device continues to seal it"
            reportOnce(.integrity(IntegrityReport(modeChanged: detail)), &turn)
        } else if isSealed {
            let error = ClientError(
                .sealed, "the bucket is sealed: open it with its secret; nothing is sent into it unencrypted")
            let isReported = unavailable == error
            phase = .refused
            unavailable = error
            answerDue = nil
            resumeAt = turn.now + SyncLimits.reopenMilliseconds
            if !isReported { turn.actions.append(.event(record.name, .unavailable(error))) }
        }
    }

    /// The server's key of the app's object.
    func wireKey(_ key: EntityKey) throws(ClientError) -> EntityKey {
        guard record.isSealed else { return key }
        guard let sealing else {
            throw ClientError(.sealed, "the bucket is sealed: open it with its secret")
        }
        guard let made = try? EntityKey(sealing.keys.serverKey(of: key.text)) else {
            throw ClientError(.sealed, "an object's name could not be derived")
        }
        return made
    }
}
