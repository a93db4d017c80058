/// Where operations of one local change belong.
package struct OperationQueueing: Sendable {
    /// Operations that must be confirmed first.
    package var after = Set<OperationID>()
    /// Among operations that are ready, greater ones first.
    package var priority: Int64 = 0
    /// Operations with the same number reach the server together or not at all.
    package var group: Int64?
    /// Each version of the content is sent, also when a newer one is made before.
    package var isKept = false

    package init() {}
}
