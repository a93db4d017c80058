import CThicketCores

/// Which cores the calling thread computes on, of the first 64. What it starts inherits them.
enum Cores {
    /// The cores that it may use, in order; none: the kernel does not say.
    static func allowed() -> [Int] {
        let mask: UInt64 = thicket_cores()
        return (0..<64).filter { mask >> UInt64($0) & 1 == 1 }
    }

    /// Keeps it to these.
    static func pin(_ cores: some Sequence<Int>) throws {
        let failure: Int32 = thicket_use_cores(cores.reduce(UInt64(0)) { $0 | 1 << UInt64($1) })
        guard failure == 0 else {
            throw BenchError("the kernel does not keep this process to cores \(Array(cores)): error \(failure)")
        }
    }
}
