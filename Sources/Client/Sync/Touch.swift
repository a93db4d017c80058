import ThicketProtocol

/// What one turn did to an object, in the form that the store needs.
struct Touch {
    private var parts: EntityParts = []
    /// nil: the change cannot be expressed as steps.
    private var ghostSteps: [GhostStep]? = []
    private var laterSteps: [ObjectDiff]? = []

    /// Most steps of one object in one turn; beyond that the whole value is written.
    private static let stepsMax = 1_024

    mutating func add(_ change: EntityChange) {
        parts.formUnion(change.parts)
        if change.parts.contains(.ghost) { Self.append(change.ghostStep, to: &ghostSteps) }
        if change.parts.contains(.edits) { Self.append(change.laterStep, to: &laterSteps) }
    }

    private static func append<Step>(_ step: Step?, to steps: inout [Step]?) {
        guard let step, let count = steps?.count, count < stepsMax else { return steps = nil }
        steps?.append(step)
    }

    func write(_ address: EntityAddress, _ record: EntityRecord) -> EntityWrite {
        EntityWrite(
            address, record, parts, ghostSteps: parts.contains(.ghost) ? ghostSteps : nil,
            laterSteps: parts.contains(.edits) ? laterSteps : nil)
    }
}
