public import ThicketSealed

/// What was kept, the ways out of an alarm, and an account's new keys.
extension SharedObject {
    /// The object as it was when it was kept. What is kept counts as it did when it was taken: also where the owner has
    /// signed two lists since, so that it can be read.
    ///
    /// - Parameters:
    ///   - entity: what the server had, as far as the log was read, or, with a creation in flight, what will be there;
    ///     nil: there was nothing.
    ///   - appKey: the app's own key.
    ///   - pending: the sealed operation in flight, of this device. It may be under the account's keys of before.
    ///   - kept: the rest. Its edits go out under the sealer's writer.
    /// - Throws: `SharedOpenError`: `held` when a list, a secret or verified keys are lacking that were there before.
    ///   What is kept is to stay where it is then.
    public static func restored(
        _ entity: SealedEntity?, appKey: String, pending: [UInt8]?, kept: SealedKept, with sealer: AuthoredSealer
    ) throws(SharedOpenError) -> SharedObject {
        let sealer = sealer.beforeFork
        guard sealer.isNamed(appKey) else { throw .doesNotFit }
        var log = SealedObject.absent(author: sealer.author, place: sealer.place, appKey: appKey).log
        if let entity {
            let opened = try open(entity, author: sealer.author, with: sealer).object.object
            if let problem = opened.problem { throw .sealed(SealedOpenError(integrity: problem)) }
            log = opened.log
        }
        var judged = JudgedSealer(sealer)
        if let pending {
            do throws(SharedHold) {
                try judged.judge(pending, .operation, position: 0, at: log.position + 1)
            } catch { throw .held(error) }
            switch judged.events.first {
            case .uncounted(let error, _, _)?: throw .refused(error)
            case .written(let author, _, _)?:
                guard sealer.isOwn(author) else { throw .doesNotFit }
            case .object?, nil: break
            }
        }
        guard
            let object = SealedObject.restored(
                author: sealer.author, log: log, pending: pending, kept: kept, with: judged)
        else { throw .doesNotFit }
        return SharedObject(object)
    }

    /// *Take the server's*, after an alarm: what it shows, and nothing of what is here. What the app saw is told as a
    /// conflict, and who wrote the snapshot as always: it may be one that others do not believe.
    ///
    /// - Parameter entity: nil: the server has nothing.
    /// - Returns: nothing where nothing is to be chosen.
    /// - Throws: `SharedOpenError` when that does not count, or does not hold together; then nothing has happened.
    public mutating func takeServers(
        _ entity: SealedEntity?, with sealer: AuthoredSealer
    ) throws(SharedOpenError) -> [SharedEvent] {
        guard object.problem != nil else { return [] }
        guard let entity else {
            let events = object.takeRemoval()
            object.removedAfterTombstone()
            return events.map { .object($0) }
        }
        let judged = try Self.judged(entity, sealer)
        var next = object
        let events: [SealedEvent]
        do throws(SealedOpenError) { events = try next.takeServers(entity, with: judged) } catch {
            throw .sealed(error)
        }
        if let problem = next.problem { throw .sealed(SealedOpenError(integrity: problem)) }
        object = next
        return judged.events + events.map { .object($0) }
    }

    /// *Keep mine*, after an alarm: what the app sees becomes a draft. The server is told to remove what it has
    /// (`serverRemoved`), and the draft is `created`.
    /// - Throws: `readOnly` for an account that may only read, and where nothing is to be chosen; `deleted` where the
    ///   app sees nothing: take the server's, and delete that.
    public mutating func keepMine(with sealer: AuthoredSealer) throws(SealedEditError) {
        guard sealer.maySeal, object.problem != nil else { throw .readOnly }
        guard object.object != nil else { throw .deleted }
        object.keepMine()
    }

    /// Gives up the edits that wait, as `SealedObject.discardEdits`: for who may not write any more, and does not want
    /// to keep them.
    public mutating func discardEdits() { object.discardEdits() }

    /// The account has other keys: its edits that wait go out under them. An operation that is on its way under the old
    /// ones keeps its bytes, and is to be sent as it is until the server has it: if it counts, it was acknowledged; if
    /// it comes behind a word under the list with the new keys, it counts for nothing, and its edit goes out under
    /// these. Only what is known never to have been sent may be taken back (`refuse`). So nothing is lost, and nothing
    /// stands there twice.
    ///
    /// - Parameters:
    ///   - old: the keys under which this device has written.
    ///   - sealer: with the new keys, and the same device.
    /// - Throws: `SharingError.otherKeys` when these are not the keys and the device of the object's author, or another
    ///   account's.
    public mutating func move(from old: PublicKeys, to sealer: AuthoredSealer) throws(SharingError) {
        guard let (keys, device) = sealer.writing, keys.user.utf8.elementsEqual(old.user.utf8)
        else { throw .otherKeys(old.user) }
        guard object.author != sealer.author else { return }
        guard Authorship.authorID(keyID: old.id, device: device) == object.author else { throw .otherKeys(old.user) }
        object.write(as: sealer.author)
    }

    private static func judged(
        _ entity: SealedEntity, _ sealer: AuthoredSealer
    ) throws(SharedOpenError) -> JudgedSealer {
        let judged: JudgedSealer
        do throws(SharedHold) { judged = try JudgedSealer(entity, sealer) } catch { throw .held(error) }
        if case .uncounted(let error, .snapshot, _)? = judged.events.first { throw .refused(error) }
        return judged
    }
}
