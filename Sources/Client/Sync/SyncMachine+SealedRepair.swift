package import ThicketProtocol
import ThicketSealed

/// What makes sealed objects read-only, and the two ways out. The user chooses; nothing is decided for them.
extension SyncMachine {
    /// What makes an object read-only; nil: nothing does.
    package mutating func problem(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> String? {
        let number = try number(bucket)
        return try entity(number, try wireKey(number, key)).sealed?.problem?.description
    }

    /// The objects that are read-only until somebody chooses, in byte order: also those that the app has deleted, and
    /// sees no more.
    package mutating func problems(_ bucket: BucketName) throws(ClientError) -> [EntityKey] {
        let number = try number(bucket)
        guard channels[number].sealing != nil else { return [] }
        var found = [EntityKey]()
        for edited in try store.edited(bucket) where edited.isRefused {
            let entity = try entity(number, edited.key)
            // What was never here cannot be chosen.
            guard let sealed = entity.sealed, sealed.problem != nil,
                !SealedHeads.isReserved(sealed.log.appKey), let key = try? EntityKey(sealed.log.appKey)
            else { continue }
            found.append(key)
        }
        return found.sorted()
    }

    /// *Keep mine*: the object begins anew with what the app sees, and what the server holds is removed. Where the app
    /// sees nothing, having deleted the object, what the server shows is deleted, if it can be read.
    ///
    /// - Returns: false when there is nothing to choose.
    /// - Throws: `integrity` when a newer program has written what the server holds.
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
            machine.landed(number, key)
            let walk = entity.record.walk
            entity.record.edits = EditState()
            entity.record.walk = walk
            machine.putSealed(number, key, entity, isGhostNew: true)
            machine.queueSealed(number, key)
        }
        return (true, actions)
    }

    /// *Take the server's*: the object is what the server shows. What the app saw is told as a conflict.
    ///
    /// - Returns: false when there is nothing to choose.
    /// - Throws: `integrity` when what the server shows does not open, or holds two histories at once.
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

    /// What the server shows of an object that is read-only; nil: it has none.
    ///
    /// - Throws: `integrity` as `takeServers`, `notFound` when there is nothing to choose.
    package mutating func servers(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> JSONObject? {
        let (number, key, known) = try found(bucket, key)
        guard let problem = known.sealed?.problem else {
            throw ClientError(.notFound, "nothing makes the object read-only")
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

    /// What a newer program has written is neither read nor written over.
    private static func checkShape(_ known: Entity) throws(ClientError) {
        let newest = known.record.edits.held ?? known.record.ghost
        guard let object = newest.object, SealedEntity.isNewer(object) else { return }
        throw ClientError(.integrity, "the server holds the object in a newer shape: update this program")
    }

    /// What the server shows of an object that is read-only here.
    private enum Theirs {
        case gone
        case opened(SealedObject, SealedEntity, [SealedEvent])
        /// It does not open, or calls itself another.
        case unreadable
        /// It holds two histories at once.
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
        case .unreadable: throw ClientError(.integrity, "what the server shows does not open: \(problem)")
        case .apart: throw ClientError(.integrity, "what the server shows does not hold together: \(problem)")
        case .gone, .opened: return theirs
        }
    }

    /// - Parameter keepsDeletion: it is deleted again at once, so that the deletion does not give way.
    private mutating func take(
        _ theirs: Theirs, _ number: Int, _ key: EntityKey, _ known: Entity, keepsDeletion: Bool = false
    ) throws(ClientError) {
        var entity = known
        let next = known.record.edits.held ?? known.record.ghost
        landed(number, key)
        entity.record.edits = EditState()
        switch theirs {
        case .opened(let sealed, let shown, let events):
            // What is on its way may be newer than what was taken.
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
