package import ThicketProtocol
import ThicketSealed

/// The reasons why sealed objects are read-only, and the two ways to resolve them. The choice is always the user's.
extension SyncMachine {
    /// Why an object is read-only; nil when it is not.
    package mutating func problem(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> String? {
        let number = try number(bucket)
        return try buckets[number].entity(try wireKey(number, key), &turn).sealed?.problem?.description
    }

    /// The read-only objects that wait for a choice, in byte order, including those that the app has removed and does
    /// not see any more.
    package mutating func problems(_ bucket: BucketName) throws(ClientError) -> [EntityKey] {
        let number = try number(bucket)
        guard buckets[number].sealing != nil else { return [] }
        var found = [EntityKey]()
        for edited in try turn.store.edited(bucket) where edited.isRefused {
            let entity = try buckets[number].entity(edited.key, &turn)
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
        try SealedChoices.checkShape(known)
        let theirs = sealed.object == nil ? try SealedChoices.theirs(&buckets[number], key, known) : .unreadable
        let actions = try runTurn(now) { machine throws(ClientError) in
            if case .opened = theirs {
                try SealedChoices.adopt(
                    &machine.buckets[number], theirs, key, known, keepsDeletion: true, &machine.turn)
                guard try machine.buckets[number].entity(key, &machine.turn).local != nil else { return }
                return try SealedRules.append(
                    &machine.buckets[number], .remove, key, name: sealed.log.appKey, &machine.turn)
            }
            try SealedChoices.keepMine(&machine.buckets[number], key, known, &machine.turn)
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
        let theirs = try SealedChoices.readable(&buckets[number], key, known, problem)
        let actions = try runTurn(now) { machine throws(ClientError) in
            try SealedChoices.adopt(&machine.buckets[number], theirs, key, known, &machine.turn)
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
        guard case .opened(let sealed, _, _) = try SealedChoices.readable(&buckets[number], key, known, problem) else {
            return nil
        }
        return sealed.object
    }

    private mutating func found(
        _ bucket: BucketName, _ key: EntityKey
    ) throws(ClientError) -> (number: Int, key: EntityKey, known: LocalEntity) {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        return (number, key, try buckets[number].entity(key, &turn))
    }
}
