import ThicketCrypto

/// Verification of look-ups.
extension KeyLogReader {
    /// Ends a verification early.
    enum Stop: Error {
        case refused(KeyLogError)
        case alarm(KeyLogAlarm)
    }

    /// Verifies the answer to a look-up, and stores what it proves.
    ///
    /// - Parameters:
    ///   - user: the user that was looked up.
    ///   - now: milliseconds since 1970.
    public mutating func receive(_ lookup: KeyLogLookup, of user: String, now: UInt64) -> KeyLogVerdict {
        do throws(Stop) {
            try acceptHead(of: lookup, now: now)
            guard try isCommitted(lookup, user) else { return .absent }
            return try accept(lookup, user)
        } catch {
            switch error {
            case .refused(let why): return .refused(why)
            case .alarm(let alarm): return .alarm(alarm)
            }
        }
    }

    /// Verifies the head of an answer, and stores it if it is the newest. It is stored even if the rest of the answer
    /// is refused, because the server cannot withdraw a signed head.
    mutating func acceptHead(of lookup: KeyLogLookup, now: UInt64) throws(Stop) {
        if let fork { throw .alarm(.fork(fork)) }
        let new = lookup.head
        try refusing { () throws(KeyLogError) in
            try new.check(logKey)
            guard !Self.isStale(new.time, now) else {
                throw KeyLogError(.staleHead, "the key log's head is older than an hour, by this device's clock")
            }
            guard !Self.isFuture(new.time, now) else { throw Self.future }
        }
        if let head { try compare(new, with: head, lookup) }
        guard
            MerkleTree.isIncluded(
                KeyLogHead.mapLeaf(new.mapRoot), index: new.size - 1, size: new.size, root: new.root,
                proof: lookup.mapRootProof)
        else { throw Self.notProven("its last leaf is not the root of its map") }
        if head.map({ $0.size < new.size || $0.time < new.time }) ?? true { head = new }
    }

    private mutating func compare(_ new: KeyLogHead, with head: KeyLogHead, _ lookup: KeyLogLookup) throws(Stop) {
        guard new.size >= head.size else {
            throw .refused(
                KeyLogError(.olderHead, "the key log has \(new.size) leaves, and this device has seen \(head.size)"))
        }
        guard new.size > head.size else {
            if !new.isSameLog(as: head) { throw .alarm(.fork(found(new, head, []))) }
            return
        }
        guard lookup.known == head.size else {
            throw .refused(
                KeyLogError(
                    .otherSize, "the answer leads from \(lookup.known) leaves, and this device has seen \(head.size)"))
        }
        guard
            MerkleTree.isConsistent(
                oldSize: head.size, oldRoot: head.root, newSize: new.size, newRoot: new.root, proof: lookup.consistency)
        else { throw .alarm(.fork(found(new, head, lookup.consistency))) }
    }

    /// Stores a fork.
    mutating func found(_ one: KeyLogHead, _ other: KeyLogHead, _ proof: [Digest256]) -> KeyLogFork {
        let found = KeyLogFork(one, other, proof: proof)
        fork = found
        return found
    }

    /// Whether the log of the answer's head has an entry of the user. If so, the last entry of the answer is the newest
    /// one, and the earlier ones are its predecessors.
    ///
    /// - Throws: `refused` when the answer does not prove this. Errors thrown after that concern content that the log
    ///   has committed to.
    mutating func isCommitted(_ lookup: KeyLogLookup, _ user: String) throws(Stop) -> Bool {
        let (key, head) = (KeyLogEntry.mapKey(of: user), lookup.head)
        guard lookup.mapProof.proves(key, lookup.chain.last?.hash, root: head.mapRoot) else {
            throw Self.notProven("the map does not show these to be the user's newest keys, or that there are none")
        }
        guard let newest = lookup.chain.last else {
            if pins[key] == nil { return false }
            throw alarm(.removed(user: user), of: key)
        }
        // Entries are at even indices, so a map root cannot be taken for an entry.
        guard lookup.index % 2 == 0,
            MerkleTree.isIncluded(
                newest.hash, index: lookup.index, size: head.size, root: head.root, proof: lookup.inclusion)
        else { throw Self.notProven("the newest entry is not in the log") }
        for (earlier, later) in zip(lookup.chain, lookup.chain.dropFirst()) {
            guard later.previous == earlier.hash else {
                throw Self.notProven("the entries are not the predecessors of the newest one")
            }
        }
        return true
    }

    /// Checks the rules of a chain that the log has committed to, from the first entry or from a known one.
    mutating func checkChain(_ lookup: KeyLogLookup, _ user: String) throws(Stop) {
        let key = KeyLogEntry.mapKey(of: user)
        let chain = lookup.chain
        guard let first = chain.first, first.sequence <= pins[key]?.sequence ?? 0 else {
            throw .refused(KeyLogError(.sequence, "the answer begins after the known entry"))
        }
        do throws(KeyLogError) {
            guard first.user.utf8.elementsEqual(user.utf8) else {
                throw KeyLogError(.otherUser, "an entry of another user is in this user's place")
            }
            guard first.app.utf8.elementsEqual(app.utf8) else {
                throw KeyLogError(.otherApp, "an entry for another app is in this app's log")
            }
            if first.sequence == 0 { try first.check(after: nil) }
            for (earlier, later) in zip(chain, chain.dropFirst()) {
                try later.check(after: earlier)
            }
        } catch { throw alarm(.badEntry(user: user, error), of: key) }
        guard let pin = pins[key] else { return }
        // An entry that was seen once must stay in its place.
        let place = pin.sequence - first.sequence
        guard place < UInt64(chain.count), chain[Int(place)].hash == pin.hash else {
            throw alarm(.replaced(user: user), of: key)
        }
    }

    private mutating func accept(_ lookup: KeyLogLookup, _ user: String) throws(Stop) -> KeyLogVerdict {
        try checkChain(lookup, user)
        let key = KeyLogEntry.mapKey(of: user)
        guard let newest = lookup.chain.last else { return .absent }
        guard let old = pins[key] else {
            try pin(newest, at: lookup.head.time)
            return .verified(newest.keys, .first)
        }
        let isReset = lookup.chain.contains { $0.sequence > old.sequence && $0.kind == .reset }
        pins[key] = Pin(
            sequence: newest.sequence, hash: newest.hash, keys: newest.keys,
            confirmed: old.confirmed ?? (isReset ? old.keys : nil), checked: lookup.head.time)
        if let confirmed = pins[key]?.confirmed {
            return .needsConfirmation(old: confirmed, new: newest.keys)
        }
        return .verified(newest.keys, newest.hash == old.hash ? .same : .rotated(from: old.keys))
    }

    /// Pins a verified entry.
    mutating func pin(_ entry: KeyLogEntry, at time: UInt64) throws(Stop) {
        let key = KeyLogEntry.mapKey(of: entry.user)
        guard pins[key] != nil || pins.count < KeyLogLimits.pinsMax else {
            throw .refused(
                KeyLogError(.tooMany, "this device knows the keys of \(KeyLogLimits.pinsMax) users: forget some first"))
        }
        pins[key] = Pin(sequence: entry.sequence, hash: entry.hash, keys: entry.keys, confirmed: nil, checked: time)
    }

    /// From now on the user's keys must be confirmed by the user of this device, even if the next answer is valid.
    mutating func alarm(_ alarm: KeyLogAlarm, of user: Digest256) -> Stop {
        if let pin = pins[user] {
            pins[user]?.confirmed = pin.confirmed ?? pin.keys
            pins[user]?.checked = nil
        }
        return .alarm(alarm)
    }

    private func refusing(_ body: () throws(KeyLogError) -> Void) throws(Stop) {
        do throws(KeyLogError) { try body() } catch { throw .refused(error) }
    }

    private static func notProven(_ what: String) -> Stop { .refused(KeyLogError(.notProven, "key log: \(what)")) }

    static let future = KeyLogError(
        .futureHead, "the key log's head is from the future by this device's clock: is the clock right?")
}
