import ThicketProtocol

/// Encrypted notes: their length and their number (decision 0046).
extension ShardCore {
    /// The number of notes of a bucket being loaded; nil where notes are not limited.
    func noteCount(of id: BucketID, _ record: BucketRecord?) throws(ChangeRejection) -> Int? {
        try reading { () throws(StoreError) in
            guard try store.noteRule(of: id) == .free else { return nil }
            return try record.map { (record) throws(StoreError) in try store.liveCount(in: record.row) } ?? 0
        }
    }

    /// Checks whether the app permits the note after a change. Removals are always permitted.
    /// - Throws: 413 for a note that is too long, and for one note too many.
    func checkNote(
        _ decision: Decision, before: ObjectState?, in bucket: ActiveBucket
    ) throws(ChangeRejection) {
        guard !decision.isRemoval else { return }
        let rule = try reading { () throws(StoreError) in try store.noteRule(of: bucket.id) }
        guard rule != .none else { return }
        let known = before.flatMap { $0.isDeleted ? nil : $0 }
        try NoteRule.check(decision.state.value, before: known?.value)
        guard rule == .free, known == nil else { return }
        guard let count = bucket.noteCount else {
            // The operator has changed the rule since the bucket was loaded: it is dropped and counted when it is
            // loaded again.
            forgotten.append(bucket.id)
            throw ChangeRejection(.unavailable, "the notes must be counted first")
        }
        guard count < NoteRule.freeMax else {
            throw ChangeRejection(.tooLarge, "\(count) notes, the maximum without Pro is \(NoteRule.freeMax)")
        }
    }
}
