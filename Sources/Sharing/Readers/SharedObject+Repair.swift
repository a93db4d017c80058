public import ThicketSealed

/// Restoring stored objects, resolving alarms, and changing an account's keys.
extension SharedObject {
    /// Restores a stored object. Values count as they did when they were stored, even if the owner has signed two
    /// contradicting lists since, so that the object stays readable.
    ///
    /// - Parameters:
    ///   - entity: the server's object up to the position that the log has read or, with a creation in flight, the
    ///     object being created; nil: none.
    ///   - appKey: the app's own key.
    ///   - pending: the sealed operation in flight, of this device. It may be signed with the account's former keys.
    ///   - kept: the rest of the stored state. Its edits are sent under the sealer's writer.
    /// - Throws: `SharedOpenError`: `held` when a list, a secret or verified keys are missing that were available
    ///   before. The stored state must then be left unchanged.
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

    /// Resolves an alarm by *take the server's*: accepts the server's state and drops the local one. The content that
    /// the app saw is reported as a conflict, and the author of the snapshot is reported as always, because other
    /// devices may not accept that snapshot.
    ///
    /// - Parameter entity: nil: the server has no object.
    /// - Returns: no events if there is no alarm.
    /// - Throws: `SharedOpenError` when the server's state is not valid or not consistent; the state is unchanged then.
    public mutating func takeServers(
        _ entity: SealedEntity?, with sealer: AuthoredSealer
    ) throws(SharedOpenError) -> [SharedEvent] {
        guard object.problem != nil else { return [] }
        guard let entity else {
            let events = object.acceptRemoval()
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

    /// Resolves an alarm by *keep mine*: the content that the app sees becomes a draft. The server is asked to remove
    /// its object (`serverRemoved`), and then the draft is `created`.
    /// - Throws: `readOnly` for an account that may only read, and without an alarm; `deleted` where the app sees no
    ///   object: use *take the server's*, and delete the result.
    public mutating func keepMine(with sealer: AuthoredSealer) throws(SealedEditError) {
        guard sealer.maySeal, object.problem != nil else { throw .readOnly }
        guard object.object != nil else { throw .deleted }
        object.keepMine()
    }

    /// Drops the waiting edits, as `SealedObject.discardEdits`: for an account that has lost write permission and does
    /// not want to keep them.
    public mutating func discardEdits() { object.discardEdits() }

    /// Changes the keys of the account: waiting edits are sent under the new keys. An operation in flight under the old
    /// keys keeps its bytes and must be sent unchanged until the server has it. If it is valid, it is acknowledged; if
    /// it follows an operation under the list with the new keys, it is ignored and its edit is sent again under the new
    /// keys. Only an operation that is known never to have been sent may be reverted (`refuse`). Therefore no edit is
    /// lost or applied twice.
    ///
    /// - Parameters:
    ///   - old: the keys under which this device has written.
    ///   - sealer: with the new keys, and the same device.
    /// - Throws: `SharingError.otherKeys` when `old` and the device are not those of the object's author, or belong to
    ///   another account.
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
