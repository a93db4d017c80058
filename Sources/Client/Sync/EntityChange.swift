import ThicketProtocol

/// What one change did to an object.
struct EntityChange {
    var parts: EntityParts = []
    /// The only change of the ghost; nil: it changed in another way.
    var ghostStep: GhostStep?
    /// The only change of the edits; nil: they changed in another way.
    var laterStep: ObjectDiff?

    /// Makes a change in place, and marks whether the app sees the object.
    ///
    /// - Returns: the result, and the object's edits if they have changed.
    static func make<Result>(
        _ key: EntityKey, _ entity: inout LocalEntity, _ done: inout EntityChange,
        _ change: (inout LocalEntity, inout EntityChange) -> Result
    ) -> (Result, EditedKey?) {
        let result = change(&entity, &done)
        let isLive = entity.local != nil
        if entity.record.isLive != isLive {
            entity.record.isLive = isLive
            done.parts.insert(.marks)
        }
        return (result, done.parts.contains(.edits) ? EditedKey(key, entity.record.edits) : nil)
    }
}
