import CThicketAllocations

/// Blocks that the test's own thread takes from the heap.
enum AllocationCount {
    /// False under a sanitizer, which has a heap of its own.
    static var isPossible: Bool { thicket_allocations_are_counted() != 0 }

    static func during(_ body: () throws -> Void) rethrows -> Int {
        thicket_allocations_begin()
        defer { _ = thicket_allocations_end() }
        try body()
        return Int(thicket_allocations_end())
    }

    /// The middle one: now and then a table grows.
    static func median(_ counts: [Int]) -> Int { counts.sorted()[counts.count / 2] }
}
