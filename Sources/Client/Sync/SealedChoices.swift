import ThicketProtocol
import ThicketSealed

/// What the user may choose for a read-only object of a sealed bucket.
enum SealedChoices {
    /// A state written by a newer program is neither read nor overwritten.
    static func checkShape(_ known: LocalEntity) throws(ClientError) {
        guard let object = known.newest.object, SealedEntity.isNewer(object) else { return }
        throw ClientError(.integrity, "the server holds the object in a newer shape: update this program")
    }

    /// The server's state of an object that is read-only here.
    enum Theirs {
        case gone
        case opened(SealedObject, SealedEntity, [SealedEvent])
        /// It cannot be opened, or contains another object's name.
        case unreadable
        /// It contains two histories.
        case apart
    }

    static func theirs(_ bucket: inout BucketMachine, _ key: EntityKey, _ known: LocalEntity) throws(ClientError)
        -> Theirs
    {
        guard let object = known.newest.object else { return .gone }
        let sealer = try SealedRules.sealer(&bucket, key)
        guard var sealed = known.sealed, let shown = try? SealedEntity(object),
            let events = try? sealed.takeServers(shown, with: sealer),
            SealedRules.isNamed(&bucket, sealed.log, key)
        else { return .unreadable }
        return sealed.problem == nil ? .opened(sealed, shown, events) : .apart
    }

    static func readable(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ known: LocalEntity, _ problem: SealedIntegrity
    ) throws(ClientError) -> Theirs {
        try Self.checkShape(known)
        let theirs = try theirs(&bucket, key, known)
        switch theirs {
        case .unreadable: throw ClientError(.integrity, "the server's state cannot be opened: \(problem)")
        case .apart: throw ClientError(.integrity, "the server's state is inconsistent: \(problem)")
        case .gone, .opened: return theirs
        }
    }

    /// The object starts a new history with the app's state, and the server's state is removed.
    static func keepMine(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ known: LocalEntity, _ turn: inout SyncTurn
    ) throws(ClientError) {
        var sealed = known.sealed
        sealed?.keepMine()
        if known.newest.object == nil { sealed?.hasReplaced() }
        bucket.outbox.answered(key)
        try SealedRules.keep(&bucket, key, sealed, isGhostNew: true, &turn) { record in
            record.ghost = known.newest
            record.edits = EditState()
        }
        SealedRules.queue(&bucket, key, &turn)
    }

    /// The object becomes the server's state.
    ///
    /// - Parameter keepsDeletion: the object is removed again at once, so that the removal does not give way.
    static func adopt(
        _ bucket: inout BucketMachine, _ theirs: Theirs, _ key: EntityKey, _ known: LocalEntity,
        keepsDeletion: Bool = false, _ turn: inout SyncTurn
    ) throws(ClientError) {
        bucket.outbox.answered(key)
        switch theirs {
        case .opened(let sealed, let shown, let events):
            try SealedRules.finish(
                &bucket, key, sealed, SealedRules.Shown(next: known.newest, entity: shown), events, &turn
            ) { edits in
                edits = EditState()
                // A requested state may be newer than the one taken.
                edits.wanted = known.record.edits.wanted
            }
            let reported = events.filter { event in
                guard keepsDeletion, case .conflict(let conflict) = event else { return true }
                return !conflict.path.isEmpty || conflict.losing != nil
            }
            try SealedRules.report(&bucket, key, before: known.local, reported, origin: .local, &turn)
            try SealedUpkeep.correctHeads(&bucket, key, &turn)
        case .gone:
            guard var sealed = known.sealed else { return }
            let events = sealed.acceptRemoval()
            sealed.removedAfterTombstone()
            try SealedRules.keep(&bucket, key, sealed, isGhostNew: true, &turn) { record in
                (record.ghost, record.edits) = (known.newest, EditState())
            }
            try SealedRules.report(&bucket, key, before: known.local, events, origin: .local, &turn)
        case .unreadable, .apart: break
        }
    }
}
