import ThicketProtocol

extension IndexQuery {
    /// Whether it is one entry without its object that is wanted, the newest: where the bucket stands.
    var asksForNewest: Bool { limit <= 1 && before == nil && !withData }
}

/// Index pages without a look at every object of the bucket: by following its log back from where the walk stands.
extension LogSource {
    /// Steps of the log after which looking at all objects is the shorter way.
    static var stepsMax: Int { 256 }
    /// The same where a walk is brought forward, for each object in it: a step is a look-up, an object a row in
    /// passing.
    static var objectsPerStep: Int { 8 }

    /// The newest object alone; nil when the log does not tell soon.
    func newestObject(_ query: IndexQuery, floor: GlobalID) throws(StoreError) -> IndexSlice? {
        var seen = Set<EntityKey>()
        var newest: IndexEntry?
        var place = query.current
        for _ in 0..<Self.stepsMax {
            // A position that is another bucket's says nothing about this one.
            guard place > floor, let step = try logStep(place), step.bucket == query.bucket else { return nil }
            if seen.insert(step.key).inserted, step.kind == .modify {
                if let newest {
                    // There is more to walk through, if the client wants to.
                    return IndexSlice(entries: [newest], next: newest.gid, total: 0)
                }
                newest = IndexEntry(key: step.key, version: step.endVersion, gid: place, body: nil)
            }
            place = try before(place, step)
        }
        return nil
    }

    /// A walk brought forward by what has changed since; nil when that is much, or cut from the log.
    func moved(
        _ old: IndexWalk, of bucket: BucketRow, from: GlobalID, to: GlobalID, floor: GlobalID
    ) throws(StoreError) -> IndexWalk? {
        guard from >= floor else { return nil }
        var seen = Set<EntityKey>()
        var fresh = [(key: EntityKey, version: Version, gid: GlobalID)]()
        var gone = [GlobalID]()
        var place = to
        var left = Self.stepsMax + old.count / Self.objectsPerStep
        while place > from {
            left -= 1
            guard left >= 0, let step = try logStep(place), step.bucket == bucket else { return nil }
            if seen.insert(step.key).inserted, step.kind == .modify {
                fresh.append((step.key, step.endVersion, place))
            }
            if step.previousOfEntity > 0, step.previousOfEntity <= from { gone.append(step.previousOfEntity) }
            place = try before(place, step)
        }
        gone.sort(by: >)
        return IndexWalk(old, without: gone, fresh: fresh)
    }

    private func before(_ place: GlobalID, _ step: LogStep) throws(StoreError) -> GlobalID {
        guard step.previousOfBucket < place else {
            throw StoreError(.corrupt, "change \(place) follows change \(step.previousOfBucket) of its bucket")
        }
        return step.previousOfBucket
    }
}
