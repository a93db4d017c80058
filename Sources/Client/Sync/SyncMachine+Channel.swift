package import ThicketProtocol

/// Opening buckets, reading their index, catching up.
extension SyncMachine {
    /// Syncs a bucket from now on. Nothing happens when it is open already.
    ///
    /// - Throws: `limit` when there are too many, `store`.
    package mutating func open(_ name: BucketName, now: Int64) throws(ClientError) -> [SyncAction] {
        if channelNumbers[name] != nil { return [] }
        guard channels.count < SyncLimits.bucketsMax else {
            throw ClientError(.limit, "a session syncs at most \(SyncLimits.bucketsMax) buckets")
        }
        let count: Int = channels.count
        do {
            return try turn(now) { machine throws(ClientError) in
                try machine.addChannel(BucketRecord(name: name))
                let number: Int = machine.channels.count - 1
                machine.touchChannel(number)
                if machine.link == .open { try machine.openChannel(number) }
            }
        } catch {
            // Not kept, so not open.
            if channels.count > count {
                channels.removeLast()
                channelNumbers[name] = nil
            }
            throw error
        }
    }

    /// Sends `init` with the command that follows from what we have.
    mutating func openChannel(_ number: Int) throws(ClientError) {
        channels[number].disconnected()
        channels[number].phase = .opening
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        for key: EntityKey in channels[number].edited.sorted() { channels[number].resend.append(key) }
        for key: EntityKey in channels[number].stale.sorted() { channels[number].reloadQueue.append(key) }
        if channels[number].record.changeVersion == nil, channels[number].record.walk == nil { beginWalk(number) }
        let command: String
        if let walk: IndexWalk = channels[number].record.walk {
            command = Messages.index(mark: walk.mark, limit: options.indexPageObjects)
        } else {
            command = "cv:" + (channels[number].record.changeVersion?.text ?? "")
        }
        send(Messages.initialize(number, channels[number].record.name, clientID, options, command: command))
    }

    /// - Parameter user: whom the server takes us for. A store holds one user's objects for its whole life: syncing it
    ///   as somebody else would mix two people's data.
    mutating func authorized(_ number: Int, user: String) throws(ClientError) {
        guard channels[number].phase == .opening else { return }
        if let owner: String = try store.note("user") {
            guard owner.utf8.elementsEqual(user.utf8) else { return park(.wrongAccount(user)) }
        } else {
            try store.setNote("user", to: user)
        }
        channels[number].phase = channels[number].record.walk == nil ? .catchingUp : .walking
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
    }

    mutating func authorizationFailed(_ number: Int, code: Int, message: String) {
        if code == ErrorCode.unauthorized.rawValue || code == ErrorCode.invalidRequest.rawValue {
            return park(.unauthorized(message))
        }
        let error: ClientError = ClientError(
            .unavailable, "the server does not open the bucket: \(message)", number: code)
        channels[number].phase = .refused
        channels[number].unavailable = error
        channels[number].answerDue = nil
        channels[number].resumeAt = now + SyncLimits.reopenMilliseconds
        actions.append(.event(channels[number].record.name, .unavailable(error)))
    }

    /// `resumeAt` has come.
    mutating func resumeChannel(_ number: Int) throws(ClientError) {
        switch channels[number].phase {
        case .refused: try openChannel(number)
        case .walking: requestPage(number)
        default: break
        }
    }

    // MARK: - Index

    /// Starts reading the whole index. Ghosts stay; what the index does not list will be gone at its end.
    mutating func beginWalk(_ number: Int) {
        channels[number].record.walksStarted += 1
        channels[number].record.walk = IndexWalk(id: channels[number].record.walksStarted)
        channels[number].needsWalk = false
        touchChannel(number)
    }

    /// Reads the index anew on this connection: at once, or after a pause when the last reading brought nothing.
    mutating func walkAgain(_ number: Int) {
        beginWalk(number)
        channels[number].phase = .walking
        channels[number].answerDue = nil
        channels[number].fruitlessWalks += 1
        if channels[number].fruitlessWalks > 1 {
            channels[number].resumeAt = now + channels[number].retry.next(random.next())
        } else {
            channels[number].resumeAt = nil
            requestPage(number)
        }
    }

    private mutating func requestPage(_ number: Int) {
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        let mark: String? = channels[number].record.walk?.mark
        send(Messages.onChannel(number, Messages.index(mark: mark, limit: options.indexPageObjects)))
    }

    mutating func received(page: IndexedPage, on number: Int) throws(ClientError) {
        guard channels[number].phase == .walking, var walk: IndexWalk = channels[number].record.walk else { return }
        channels[number].answerDue = nil
        if walk.current == nil { walk.current = page.current }
        walk.objectsRead += Int64(page.objects.count)
        if let total: Int64 = page.total { walk.objectsTotal = total }
        let isStuck: Bool = page.mark != nil && page.mark == walk.mark
        walk.mark = page.mark
        channels[number].record.walk = walk
        touchChannel(number)
        for object: IndexedObject in page.objects { try indexed(object, walk: walk.id, on: number) }
        if isStuck { return hangUp("the index does not move on") }
        if page.mark != nil { return requestPage(number) }
        try finishWalk(number, walk)
    }

    private mutating func indexed(_ object: IndexedObject, walk: Int64, on number: Int) throws(ClientError) {
        var entity: Entity = try entity(number, object.key)
        let newest: Ghost = entity.record.edits.held ?? entity.record.ghost
        let wasMet: Bool = entity.record.walk == walk
        entity.record.walk = walk
        put(number, object.key, entity, .marks)
        let isConfirmed: Bool = entity.record.edits.pending?.isConfirmed ?? false
        if object.version == newest.version, newest.object != nil, !isConfirmed { return }
        // A change that came during the walk is newer than the walk's snapshot.
        if object.version < newest.version, wasMet { return }
        guard let value: JSONObject = object.value else {
            return try want(number, object.key, object.version)
        }
        try jump(number, object.key, to: Ghost(version: object.version, object: value))
    }

    private mutating func finishWalk(_ number: Int, _ walk: IndexWalk) throws(ClientError) {
        let name: BucketName = channels[number].record.name
        var gone: Set<EntityKey> = Set(try store.keysUnseen(name, walk: walk.id))
        // The store knows nothing of this turn yet.
        for (address, entity): (EntityAddress, Entity) in cache where address.bucket == name {
            if entity.record.walk == walk.id || entity.record.ghost.object == nil { gone.remove(address.key) }
        }
        for key: EntityKey in gone.sorted() {
            let version: Version = try entity(number, key).record.ghost.version
            try jump(number, key, to: Ghost(version: version, object: nil))
        }
        // Objects that were asked for and that we never had: in no index either, so they are gone.
        for key: EntityKey in channels[number].stale.sorted() {
            let record: EntityRecord = try entity(number, key).record
            guard record.walk != walk.id, record.ghost.object == nil else { continue }
            try jump(number, key, to: Ghost(version: record.ghost.version, object: nil))
        }
        // Changes the server has taken (409) without our seeing where: the index that was asked for since then, and what
        // came after it, contain them; also when the object is in no index because somebody removed it.
        for key: EntityKey in channels[number].edited.sorted() {
            let record: EntityRecord = try entity(number, key).record
            guard record.edits.pending?.isConfirmed == true, record.edits.wanted == nil else { continue }
            try settle(number, key, at: record.edits.held ?? record.ghost)
        }
        channels[number].record.walk = nil
        channels[number].record.changeVersion = walk.current
        touchChannel(number)
        channels[number].phase = .catchingUp
        channels[number].catchUp = CatchUp()
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        send(Messages.onChannel(number, "cv:" + (walk.current?.text ?? "")))
    }

    // MARK: - Changes since

    /// The server does not know our position: read the index.
    ///
    /// Also when we are live already: the answer to a change that was in flight may have come first and looked like the
    /// answer to `cv`, while the server, which did not know that position, tells us nothing but our own changes.
    mutating func positionUnknown(_ number: Int) {
        guard channels[number].phase == .catchingUp || channels[number].phase == .live else { return }
        walkAgain(number)
    }

    /// The answer to `cv` is complete: everything up to now is here.
    mutating func caughtUp(_ number: Int) {
        guard channels[number].phase == .catchingUp else { return }
        channels[number].phase = .live
        channels[number].answerDue = nil
        if !channels[number].needsWalk { channels[number].fruitlessWalks = 0 }
        actions.append(.event(channels[number].record.name, .caughtUp))
    }

    /// Sends what can be sent: objects to ask for, changes to repeat, then new ones.
    mutating func pump(_ number: Int) throws(ClientError) {
        guard link == .open, channels[number].phase == .live else { return }
        if channels[number].needsWalk { return walkAgain(number) }
        while channels[number].reloads.count < SyncLimits.reloadsInFlightMax,
            let key: EntityKey = channels[number].reloadQueue.popFirst()
        {
            guard let version: Version = try entity(number, key).record.edits.wanted else { continue }
            channels[number].reloads[key] = now
            send(Messages.onChannel(number, "e:\(key.text).\(version)"))
        }
        guard !channels[number].isReadOnly else { return }
        if let resume: Int64 = channels[number].sendAt, resume > now { return }
        while hasRoom(number), let key: EntityKey = channels[number].resend.popFirst() {
            try resend(number, key)
        }
        while hasRoom(number), let key: EntityKey = channels[number].ready.popFirst() {
            try sendNew(number, key)
        }
    }

    private func hasRoom(_ number: Int) -> Bool {
        channels[number].inFlight.count < options.changesInFlightMax
            && channels[number].bytesInFlight < SyncLimits.bytesInFlightMax
    }
}

/// One page of an index.
struct IndexedPage {
    var current: ChangeVersion?
    var objects: [IndexedObject]
    var mark: String?
    var total: Int64?
}

/// One object of an index page.
struct IndexedObject {
    let key: EntityKey
    let version: Version
    /// nil when the page came without data.
    let value: JSONObject?
}
