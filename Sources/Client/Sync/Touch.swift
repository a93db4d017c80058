import ThicketProtocol

/// What one turn did to an object, as its store has to know it.
struct Touch {
    private var parts: EntityParts = []
    /// nil: more happened than steps tell.
    private var ghostSteps: [GhostStep]? = []
    private var laterSteps: [ObjectDiff]? = []

    /// Steps of one object in one turn; a turn that does more writes the whole.
    private static let stepsMax = 1_024

    mutating func add(_ more: EntityParts, _ ghostStep: GhostStep?, _ laterStep: ObjectDiff?) {
        parts.formUnion(more)
        if more.contains(.ghost) { Self.append(ghostStep, to: &ghostSteps) }
        if more.contains(.edits) { Self.append(laterStep, to: &laterSteps) }
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
