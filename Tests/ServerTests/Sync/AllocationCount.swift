import CThicketAllocations

/// Heap blocks that the test's own thread allocates.
enum AllocationCount {
    /// False under a sanitizer, which has its own heap.
    static var isPossible: Bool { thicket_allocations_are_counted() != 0 }

    static func during(_ body: () throws -> Void) rethrows -> Int {
        thicket_allocations_begin()
        defer { _ = thicket_allocations_end() }
        try body()
        return Int(thicket_allocations_end())
    }

    /// The median, because a table grows now and then.
    static func median(_ counts: [Int]) -> Int { counts.sorted()[counts.count / 2] }
}
