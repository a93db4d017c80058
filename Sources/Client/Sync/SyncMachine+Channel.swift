package import ThicketProtocol
package import ThicketSealed

/// Opening buckets and catching up.
extension SyncMachine {
    /// Syncs a bucket from now on. Does nothing when it is already open.
    ///
    /// - Parameter keys: the keys of a sealed bucket; nil for an open one. A bucket's mode never changes after the
    ///   first opening.
    /// - Throws: `limit` when too many buckets are open, `sealed` when the bucket was opened in the other mode before,
    ///   `store`.
    package mutating func open(
        _ name: BucketName, keys: SealedBucketKeys? = nil, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        if let number = channelNumbers[name] { return try reopen(number, keys, now: now) }
        let sealing = try keys.map { (keys) throws(ClientError) in try makeSealing(keys) }
        guard channels.count < SyncLimits.bucketsMax else {
            throw ClientError(.limit, "a session syncs at most \(SyncLimits.bucketsMax) buckets")
        }
        let count = channels.count
        do {
            return try turn(now) { machine throws(ClientError) in
                try machine.addChannel(BucketRecord(name: name, isSealed: sealing != nil))
                let number = machine.channels.count - 1
                machine.channels[number].sealing = sealing
                machine.touchChannel(number)
                if machine.link == .open { try machine.openChannel(number) }
            }
        } catch {
            // The bucket was not stored, so it is not open.
            if channels.count > count {
                channels.removeLast()
                channelNumbers[name] = nil
            }
            throw error
        }
    }

    /// Sends `init` with the command that fits the local state.
    mutating func openChannel(_ number: Int) throws(ClientError) {
        guard !channels[number].isLocked else { return }
        channels[number].disconnected()
        channels[number].phase = .opening
        channels[number].tokenNumber = options.tokenNumber
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        for key in channels[number].edited.sorted() { channels[number].resend.append(key) }
        for key in channels[number].stale.sorted() { channels[number].reloadQueue.append(key) }
        if channels[number].record.changeVersion == nil, channels[number].record.walk == nil { beginWalk(number) }
        let command: String
        if let walk = channels[number].record.walk {
            command = Messages.index(mark: walk.mark, limit: options.indexPageObjects)
        } else {
            command = "cv:" + (channels[number].record.changeVersion?.text ?? "")
        }
        let record = channels[number].record
        send(
            Messages.initialize(
                number, record.name, clientID, options, command: command, isSealed: record.isSealed))
    }

    /// - Parameter user: the user that the server derives from the token. A store holds one user's objects for good:
    ///   syncing it as another user would mix two users' data.
    mutating func authorized(_ number: Int, user: String) throws(ClientError) {
        guard channels[number].phase == .opening || channels[number].phase == .renewing else { return }
        if let owner = try store.note("user") {
            guard owner.utf8.elementsEqual(user.utf8) else { return park(.wrongAccount(user)) }
        } else {
            try store.setNote("user", to: user)
        }
        tokenWorked(channels[number].tokenNumber)
        if channels[number].phase == .renewing { return goOn(number) }
        channels[number].phase = channels[number].record.walk == nil ? .catchingUp : .walking
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
    }

    mutating func authorizationFailed(_ number: Int, code: Int, message: String) {
        if code == ErrorCode.unauthorized.rawValue || code == ErrorCode.invalidRequest.rawValue {
            if options.renewsToken {
                return tokenRefused(number, isExpired: message.utf8.elementsEqual(Self.expired.utf8))
            }
            return park(.unauthorized(message))
        }
        let error = ClientError(
            .unavailable, "the server does not open the bucket: \(message)", number: code)
        channels[number].phase = .refused
        channels[number].unavailable = error
        channels[number].answerDue = nil
        channels[number].resumeAt = now + SyncLimits.reopenMilliseconds
        actions.append(.event(channels[number].record.name, .unavailable(error)))
    }

    /// Called when `resumeAt` has been reached.
    mutating func resumeChannel(_ number: Int) throws(ClientError) {
        switch channels[number].phase {
        case .refused: try openChannel(number)
        case .walking: requestPage(number)
        default: break
        }
    }

    // MARK: - Changes since

    /// The server does not know the client's position: scans the index.
    ///
    /// Happens also in `live`: the answer to a change that was in flight may have arrived first and looked like the
    /// answer to `cv`, while the server, which did not know that position, sends nothing but this client's own changes.
    mutating func positionUnknown(_ number: Int) throws(ClientError) {
        guard channels[number].phase == .catchingUp || channels[number].phase == .live else { return }
        if try missedForGood(number) { return }
        channels[number].positionHolds = false
        walkAgain(number)
    }

    /// The answer to `cv` is complete: everything up to now has arrived.
    ///
    /// - Parameter isCertain: the server gave an empty answer, which it does only for a position that it knows.
    mutating func caughtUp(_ number: Int, isCertain: Bool = false) throws(ClientError) {
        guard channels[number].phase == .catchingUp else { return }
        if isCertain { positionIsKnown(number) }
        try tellMissing(number)
        channels[number].phase = .live
        channels[number].walked = nil
        channels[number].answerDue = nil
        sendStrays(number)
        if !channels[number].needsWalk { channels[number].fruitlessWalks = 0 }
        actions.append(.event(channels[number].record.name, .caughtUp))
        try sealedCaughtUp(number)
    }

    /// Sends what can be sent: requests for objects, then repeated changes, then new ones.
    mutating func pump(_ number: Int) throws(ClientError) {
        guard link == .open, channels[number].phase == .live else { return }
        if channels[number].needsWalk { return walkAgain(number) }
        while channels[number].reloads.count < SyncLimits.reloadsInFlightMax,
            let key = channels[number].reloadQueue.popFirst()
        {
            guard let version = try entity(number, key).record.edits.wanted else { continue }
            channels[number].reloads[key] = now
            send(Messages.onChannel(number, "e:\(key.text).\(version)"))
        }
        guard !channels[number].isReadOnly, channels[number].unavailable == nil else { return }
        if let resume = channels[number].sendAt, resume > now { return }
        while hasRoom(number), let key = channels[number].resend.popFirst() {
            try resend(number, key)
        }
        while hasRoom(number), let key = channels[number].ready.popFirst() {
            try sendNew(number, key)
        }
        try pumpSealed(number)
    }

    private func hasRoom(_ number: Int) -> Bool {
        channels[number].inFlight.count < options.changesInFlightMax
            && channels[number].bytesInFlight < SyncLimits.bytesInFlightMax
    }
}
