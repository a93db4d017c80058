/// How a change is queued.
public struct ChangeOptions: Sendable {
    /// Operations that must be confirmed first. Ids of confirmed ones are ignored.
    public var after: Set<OperationID>
    /// Higher ones are sent first, as far as dependencies allow.
    public var priority: Int64
    /// Whether this version of the content is sent also when a newer one is made before.
    public var keepsVersion: Bool

    /// Options; by default none.
    public init(after: Set<OperationID> = [], priority: Int64 = 0, keepsVersion: Bool = false) {
        (self.after, self.priority, self.keepsVersion) = (after, priority, keepsVersion)
    }

    var queueing: TreeMachine.Queueing {
        var queueing = TreeMachine.Queueing()
        (queueing.after, queueing.priority, queueing.isKept) = (after, priority, keepsVersion)
        return queueing
    }
}
