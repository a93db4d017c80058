import ThicketProtocol

extension IndexQuery {
    /// Whether the query asks only for the newest entry, without its object. Clients use it to find the current head of
    /// a bucket.
    var asksForNewest: Bool { limit <= 1 && before == nil && !withData && !oldestFirst }
}

/// Answers index pages without reading every object of the bucket: follows the bucket's log back from the position of
/// the scan.
extension LogSource {
    /// Log steps after which a scan of all objects is cheaper.
    static var stepsMax: Int { 256 }
    /// Objects of a scan per additional log step when that scan is updated: a step is a look-up, an object is one
    /// row of a sequential read.
    static var objectsPerStep: Int { 8 }

    /// The newest object alone; nil when the log does not give the answer within `stepsMax` steps.
    func newestObject(_ query: IndexQuery, floor: GlobalID) throws(StoreError) -> IndexSlice? {
        var seen = Set<EntityKey>()
        var newest: IndexEntry?
        var place = query.current
        for _ in 0..<Self.stepsMax {
            // A position of another bucket gives no information about this bucket.
            guard place > floor, let step = try logStep(place), step.bucket == query.bucket else { return nil }
            if seen.insert(step.key).inserted, step.kind == .modify {
                if let newest {
                    // `next` is set because more objects follow; the client may continue the scan.
                    return IndexSlice(entries: [newest], next: newest.gid, total: 0)
                }
                newest = IndexEntry(key: step.key, version: step.endVersion, gid: place, body: nil)
            }
            place = try before(place, step)
        }
        return nil
    }

    /// The scan `old`, updated by the changes since `from`; nil when they are too many, or cut from the log.
    func moved(
        _ old: IndexScan, of bucket: BucketRow, from: GlobalID, to: GlobalID, floor: GlobalID
    ) throws(StoreError) -> IndexScan? {
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
        return IndexScan(old, without: gone, fresh: fresh)
    }

    private func before(_ place: GlobalID, _ step: LogStep) throws(StoreError) -> GlobalID {
        guard step.previousOfBucket < place else {
            throw StoreError(.corrupt, "change \(place) follows change \(step.previousOfBucket) of its bucket")
        }
        return step.previousOfBucket
    }
}
