import ThicketTreeShape

/// The plans of waiting operations, and how many operations have each content.
struct SpoolRecords {
    private var byOperation = [OperationID: SpoolRecord]()
    private var holders = [DataID: Int]()

    init() {}

    /// Reads what is stored beside operations.
    init(_ store: TreeStore, _ ids: [OperationID]) throws(TreeError) {
        for id in ids { self[id] = try store.plan(of: id) }
    }

    subscript(id: OperationID) -> SpoolRecord? {
        get { byOperation[id] }
        set {
            if let old = byOperation[id]?.plan.id {
                holders[old, default: 0] -= 1
                if holders[old] == 0 { holders[old] = nil }
            }
            if let new = newValue?.plan.id { holders[new, default: 0] += 1 }
            byOperation[id] = newValue
        }
    }

    /// In no order.
    var records: some Sequence<SpoolRecord> { byOperation.values }

    /// Whether an operation has this content.
    func has(_ id: DataID) -> Bool { holders[id] != nil }
}
