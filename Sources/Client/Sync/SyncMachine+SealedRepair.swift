package import ThicketProtocol
import ThicketSealed

/// The reasons why sealed objects are read-only, and the two ways to resolve them. The choice is always the user's.
extension SyncMachine {
    /// Why an object is read-only; nil when it is not.
    package mutating func problem(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> String? {
        let number = try number(bucket)
        return try entity(number, try wireKey(number, key)).sealed?.problem?.description
    }

    /// The read-only objects that wait for a choice, in byte order, including those that the app has removed and does
    /// not see any more.
    package mutating func problems(_ bucket: BucketName) throws(ClientError) -> [EntityKey] {
        let number = try number(bucket)
        guard channels[number].sealing != nil else { return [] }
        var found = [EntityKey]()
        for edited in try store.edited(bucket) where edited.isRefused {
            let entity = try entity(number, edited.key)
            // An object that never existed here cannot be chosen.
            guard let sealed = entity.sealed, sealed.problem != nil,
                !SealedHeads.isReserved(sealed.log.appKey), let key = try? EntityKey(sealed.log.appKey)
            else { continue }
            found.append(key)
        }
        return found.sorted()
    }

    /// *Keep mine*: the object starts a new history with the app's state, and the server's state is removed. When the
    /// app has removed the object, the server's state is removed too, if it can be read.
    ///
    /// - Returns: false when the object is not read-only.
    /// - Throws: `integrity` when a newer program wrote the server's state.
    package mutating func keepMine(
        _ bucket: BucketName, _ key: EntityKey, now: Int64
    ) throws(ClientError) -> (Bool, [SyncAction]) {
        let (number, key, known) = try found(bucket, key)
        guard let sealed = known.sealed, sealed.problem != nil else { return (false, []) }
        try Self.checkShape(known)
        let theirs = sealed.object == nil ? try theirs(number, key, known) : .unreadable
        let actions = try turn(now) { machine throws(ClientError) in
            if case .opened = theirs {
                try machine.take(theirs, number, key, known, keepsDeletion: true)
                guard try machine.entity(number, key).local != nil else { return }
                return try machine.addSealed(.remove, to: number, key, name: sealed.log.appKey)
            }
            var entity = known
            entity.sealed?.keepMine()
            if let held = entity.record.edits.held { entity.record.ghost = held }
            if entity.record.ghost.object == nil { entity.sealed?.hasReplaced() }
            machine.clearInFlight(number, key)
            let walk = entity.record.walk
            entity.record.edits = EditState()
            entity.record.walk = walk
            machine.putSealed(number, key, entity, isGhostNew: true)
            machine.queueSealed(number, key)
        }
        return (true, actions)
    }

    /// *Take the server's*: the object becomes the server's state. The state that the app saw is reported as a
    /// conflict.
    ///
    /// - Returns: false when the object is not read-only.
    /// - Throws: `integrity` when the server's state cannot be opened or contains two histories.
    package mutating func takeServers(
        _ bucket: BucketName, _ key: EntityKey, now: Int64
    ) throws(ClientError) -> (Bool, [SyncAction]) {
        let (number, key, known) = try found(bucket, key)
        guard let problem = known.sealed?.problem else { return (false, []) }
        let theirs = try readable(number, key, known, problem)
        let actions = try turn(now) { machine throws(ClientError) in
            try machine.take(theirs, number, key, known)
        }
        return (true, actions)
    }

    /// The server's state of a read-only object; nil when the server does not have it.
    ///
    /// - Throws: `integrity` as `takeServers`, `notFound` when the object is not read-only.
    package mutating func servers(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> JSONObject? {
        let (number, key, known) = try found(bucket, key)
        guard let problem = known.sealed?.problem else {
            throw ClientError(.notFound, "the object is not read-only")
        }
        guard case .opened(let sealed, _, _) = try readable(number, key, known, problem) else { return nil }
        return sealed.object
    }

    private mutating func found(
        _ bucket: BucketName, _ key: EntityKey
    ) throws(ClientError) -> (number: Int, key: EntityKey, known: Entity) {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        return (number, key, try entity(number, key))
    }

    /// A state written by a newer program is neither read nor overwritten.
    private static func checkShape(_ known: Entity) throws(ClientError) {
        let newest = known.record.edits.held ?? known.record.ghost
        guard let object = newest.object, SealedEntity.isNewer(object) else { return }
        throw ClientError(.integrity, "the server holds the object in a newer shape: update this program")
    }

    /// The server's state of an object that is read-only here.
    private enum Theirs {
        case gone
        case opened(SealedObject, SealedEntity, [SealedEvent])
        /// It cannot be opened, or contains another object's name.
        case unreadable
        /// It contains two histories.
        case apart
    }

    private mutating func theirs(_ number: Int, _ key: EntityKey, _ known: Entity) throws(ClientError) -> Theirs {
        let next = known.record.edits.held ?? known.record.ghost
        guard let object = next.object else { return .gone }
        let sealer = try sealer(number, key)
        guard var sealed = known.sealed, let shown = try? SealedEntity(object),
            let events = try? sealed.takeServers(shown, with: sealer),
            isNamed(sealed.log, key, on: number)
        else { return .unreadable }
        return sealed.problem == nil ? .opened(sealed, shown, events) : .apart
    }

    private mutating func readable(
        _ number: Int, _ key: EntityKey, _ known: Entity, _ problem: SealedIntegrity
    ) throws(ClientError) -> Theirs {
        try Self.checkShape(known)
        let theirs = try theirs(number, key, known)
        switch theirs {
        case .unreadable: throw ClientError(.integrity, "the server's state cannot be opened: \(problem)")
        case .apart: throw ClientError(.integrity, "the server's state is inconsistent: \(problem)")
        case .gone, .opened: return theirs
        }
    }

    /// - Parameter keepsDeletion: the object is removed again at once, so that the removal does not give way.
    private mutating func take(
        _ theirs: Theirs, _ number: Int, _ key: EntityKey, _ known: Entity, keepsDeletion: Bool = false
    ) throws(ClientError) {
        var entity = known
        let next = known.record.edits.held ?? known.record.ghost
        clearInFlight(number, key)
        entity.record.edits = EditState()
        switch theirs {
        case .opened(let sealed, let shown, let events):
            // A requested state may be newer than the one taken.
            entity.record.edits.wanted = known.record.edits.wanted
            try finish(number, key, &entity, sealed, Shown(next: next, entity: shown), events)
            let told = events.filter { event in
                guard keepsDeletion, case .conflict(let conflict) = event else { return true }
                return !conflict.path.isEmpty || conflict.losing != nil
            }
            try tellSealed(number, key, before: known.local, told, .local)
            try correctHeads(number, key)
        case .gone:
            guard var sealed = known.sealed else { return }
            let events = sealed.takeRemoval()
            sealed.removedAfterTombstone()
            entity.sealed = sealed
            entity.record.ghost = next
            putSealed(number, key, entity, isGhostNew: true)
            try tellSealed(number, key, before: known.local, events, .local)
        case .unreadable, .apart: break
        }
    }
}
