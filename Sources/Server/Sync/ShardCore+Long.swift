import ThicketProtocol

/// Decides whether a change is decided on this thread or, when it takes long, on another one (decision 0019).
extension ShardCore {
    /// The state of a change after consideration.
    enum Consideration {
        case decided(ChangeEngine.Outcome, of: ActiveEntity?, keyframe: [UInt8]?)
        case offloaded(DeferredChange)
    }

    /// Decides a valid, new change, or uses the result from another thread if the object is unchanged since.
    /// - Parameter mayTakeLong: decides on this thread regardless of the cost.
    func consider(
        _ change: CheckedChange, _ shape: ChangeShape, _ submitted: SubmittedChange, in bucket: ActiveBucket,
        _ result: DeferredChange.Result?, mayTakeLong: Bool
    ) throws(ChangeRejection) -> Consideration {
        // The bucket may have got its mode since.
        let result = shape.mayTakeLong ? result : nil
        let mayGiveOut =
            !mayTakeLong && shape.mayTakeLong && settings.decidedHereMax < .max
            && result?.tries ?? 0 < DeferredChange.triesMax
        let object: DeferredChange.Object
        var known = result
        if let result, case .stored(let record)? = result.basis {
            try adopt(result, in: bucket)
            if bucket.entities[change.key]?.isAs(record) != true { known = nil }
        } else if mayGiveOut, bucket.large.contains(change.key), let row = bucket.record?.row {
            object = .stored(row, history: historyBounds)
            return .offloaded(deferredChange(on: change, submitted, object, nil, after: result))
        }
        let entity = try foundEntity(change.key, in: bucket)
        try submitted.terms?.condition?.check(entity?.state)
        let basis = entity?.basis ?? .nothing
        if known?.head == nil, known?.basis != basis { known = nil }
        if known == nil, mayGiveOut, DeferredChange.work(change, on: entity?.state) > settings.decidedHereMax {
            object = entity.map { .inMemory(knowing($0)) } ?? .none
            return .offloaded(deferredChange(on: change, submitted, object, basis, after: result))
        }
        if let state = known?.state { entity?.adopt(made: state) }
        if let outcome = known?.outcome {
            return .decided(outcome, of: entity, keyframe: known?.keyframe)
        }
        return .decided(
            try decideHere(change, shape, on: entity, in: bucket, now: submitted.now), of: entity, keyframe: nil)
    }

    private func decideHere(
        _ change: CheckedChange, _ shape: ChangeShape, on entity: ActiveEntity?, in bucket: ActiveBucket, now: Int64
    ) throws(ChangeRejection) -> ChangeEngine.Outcome {
        if let entity { make(entity) }
        switch shape {
        case .open, .sealed(.removal): break
        case .sealed(let sealed): return try decide(sealed, change, on: entity)
        case .tree(let tree): return try decide(tree, change, on: entity, in: bucket, now: now)
        }
        return try engine.decide(change, state: entity?.state) { version throws(ChangeRejection) in
            guard let entity else { return nil }
            return try laterChanges(of: entity, after: version)
        }
    }

    private func deferredChange(
        on change: CheckedChange, _ submitted: SubmittedChange, _ object: DeferredChange.Object,
        _ basis: DeferredChange.Basis?, after result: DeferredChange.Result?
    ) -> DeferredChange {
        DeferredChange(
            submitted: submitted, change: change, tries: result?.tries ?? 0, engine: engine,
            keyframes: settings.keyframes, object: object, basis: basis)
    }

    private func knowing(_ entity: ActiveEntity) -> DeferredChange.Known {
        DeferredChange.Known(
            state: entity.state, history: history(of: entity), diffsSinceKeyframe: entity.diffsSinceKeyframe,
            diffBytesSinceKeyframe: entity.diffBytesSinceKeyframe)
    }
}
