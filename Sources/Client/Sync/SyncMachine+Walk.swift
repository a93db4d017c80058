import ThicketProtocol
import ThicketSealed

/// Scanning a bucket's whole index, page by page.
extension SyncMachine {
    /// Starts a scan of the whole index. Ghosts are kept; objects that the index does not list are gone at its end.
    mutating func beginWalk(_ number: Int) {
        channels[number].record.walksStarted += 1
        var walk = IndexScan(id: channels[number].record.walksStarted)
        walk.isSame = channels[number].positionHolds
        channels[number].record.walk = walk
        channels[number].isWalkHere = false
        channels[number].needsWalk = false
        touchChannel(number)
    }

    /// Scans the index again on this connection: at once, or after a pause when the previous scan had no result.
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

    mutating func requestPage(_ number: Int) {
        let mark = channels[number].record.walk?.mark
        send(askForPage(number, mark))
    }

    private mutating func askForPage(_ number: Int, _ mark: String?) -> [UInt8] {
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        return Messages.onChannel(number, Messages.index(mark: mark, limit: options.indexPageObjects))
    }

    /// Requests the page after an arrived one before the arrived one is stored, so that the server prepares the next
    /// page while the client stores the last one. At most one page of a bucket is requested ahead.
    ///
    /// Nothing depends on it: the scan's stored mark moves with the objects of its page, and if the connection ends in
    /// between, the page is requested again.
    ///
    /// - Parameter batch: the batch that is passed to `received` next.
    package mutating func ahead(of batch: ServerBatch, now: Int64) -> [SyncAction] {
        guard link == .open else { return [] }
        self.now = max(self.now, now)
        var requests = [SyncAction]()
        for message in batch.messages {
            guard case .read(.channel(let channel, .index(let page))) = message, let mark = page.mark,
                channels.indices.contains(Int(channel)), let walk = channels[Int(channel)].record.walk,
                channels[Int(channel)].phase == .walking, channels[Int(channel)].askedAhead == nil,
                !isOfAnotherStore(walk, Int(channel)),
                !(walk.mark.map { $0.utf8.elementsEqual(mark.utf8) } ?? false)
            else { continue }
            channels[Int(channel)].askedAhead = mark
            requests.append(.send(askForPage(Int(channel), mark)))
            lastSent = self.now
        }
        return requests
    }

    mutating func received(page: IndexPage, on number: Int) throws(ClientError) {
        guard channels[number].phase == .walking, channels[number].record.walk != nil else { return }
        guard try identifyWalk(number), var walk = channels[number].record.walk else { return }
        let isAsked = channels[number].askedAhead != nil && channels[number].askedAhead == page.mark
        channels[number].askedAhead = nil
        if !isAsked { channels[number].answerDue = nil }
        if walk.current == nil { walk.current = page.current }
        walk.objectsRead += Int64(page.entries.count)
        if let total = page.count { walk.objectsTotal = total }
        let isStuck = page.mark != nil && page.mark == walk.mark
        walk.mark = page.mark
        channels[number].record.walk = walk
        touchChannel(number)
        try take(page.entries, walk: walk.id, on: number)
        if isStuck { return hangUp("the index scan makes no progress") }
        guard page.mark == nil else { return isAsked ? () : requestPage(number) }
        try finishWalk(number, walk)
    }

    /// Most objects of a first scan are new: these are stored as received, unparsed and bypassing the cache. That
    /// requires that the bucket has no reader to be notified of them.
    private mutating func take(_ entries: [IndexPage.Entry], walk: Int64, on number: Int) throws(ClientError) {
        let name = channels[number].record.name
        guard !isHeard(name) else {
            for entry in entries { try indexed(entry, walk: walk, on: number) }
            return
        }
        let known = try store.known(name, among: entries.map(\.key))
        if channels[number].sealing != nil { return try takeSealed(entries, known, walk: walk, on: number) }
        for entry in entries {
            let address = EntityAddress(bucket: name, key: entry.key)
            guard !known.contains(entry.key), let body = entry.data, body.isObject, isUnseen(address)
            else {
                try indexed(entry, walk: walk, on: number)
                continue
            }
            arrive(NewObject(address, version: entry.version, walk: walk, body: body))
        }
    }

    mutating func indexed(_ object: IndexPage.Entry, walk: Int64, on number: Int) throws(ClientError) {
        if channels[number].record.walk?.isSame == false { return try indexedAnew(object, walk: walk, on: number) }
        var entity = try entity(number, object.key)
        let newest = entity.record.edits.held ?? entity.record.ghost
        let wasMet = entity.record.walk == walk
        entity.record.walk = walk
        put(number, object.key, entity, .marks)
        let isConfirmed = entity.record.edits.pending?.isConfirmed ?? false
        if object.version == newest.version, newest.object != nil, !isConfirmed { return }
        // A change that arrived during the scan is newer than the scan's snapshot.
        if object.version < newest.version, wasMet { return }
        // A read-only sealed object that is known to exist in this version.
        if let sealed = entity.sealed, sealed.problem != nil, object.version == newest.version { return }
        guard let value = object.data?.object else {
            return try want(number, object.key, object.version)
        }
        try jump(number, object.key, to: Ghost(version: object.version, object: value))
    }

    private mutating func finishWalk(_ number: Int, _ walk: IndexScan) throws(ClientError) {
        let name = channels[number].record.name
        var gone = Set(try store.keysUnseen(name, walk: walk.id))
        // The store does not contain this turn yet.
        for (address, entity) in cache where address.bucket == name {
            if entity.record.walk == walk.id || entity.record.ghost.object == nil { gone.remove(address.key) }
        }
        let isAskedAgain = try setAside(&gone, number)
        for key in gone.sorted() {
            guard walk.isSame || channels[number].sealing != nil else {
                try bringBack(number, key)
                continue
            }
            let version = try entity(number, key).record.ghost.version
            try jump(number, key, to: Ghost(version: version, object: nil))
        }
        // Requested objects that this device never had and that the index does not list are gone.
        for key in channels[number].stale.sorted() {
            let record = try entity(number, key).record
            guard record.walk != walk.id, record.ghost.object == nil else { continue }
            try jump(number, key, to: Ghost(version: record.ghost.version, object: nil))
        }
        try missUnread(number, walk)
        // Changes that the server has accepted (409) at an unknown version: the index requested since then, with the
        // changes after it, includes them, even if another client has removed the object and the index does not list
        // it.
        for key in channels[number].edited.sorted() {
            let record = try entity(number, key).record
            guard record.edits.pending?.isConfirmed == true, record.edits.wanted == nil else { continue }
            try settle(number, key, at: record.edits.held ?? record.ghost)
        }
        channels[number].walked = walk
        channels[number].record.walk = nil
        if !walk.isSame { channels[number].record.store = walk.store }
        if !isAskedAgain { channels[number].record.changeVersion = walk.current }
        touchChannel(number)
        channels[number].phase = .catchingUp
        askSince(number)
    }

    /// Requests everything after the known position.
    mutating func askSince(_ number: Int) {
        channels[number].catchUp = CatchUp()
        channels[number].answerDue = now + SyncLimits.answerMilliseconds
        send(Messages.onChannel(number, "cv:" + (channels[number].record.changeVersion?.text ?? "")))
    }
}
