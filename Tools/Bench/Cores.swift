import CThicketCores

/// The cores, of the first 64, on which the calling thread runs. Threads and processes that it starts inherit them.
enum Cores {
    /// The cores that the thread may use, in order; empty if the kernel does not report them.
    static func allowed() -> [Int] {
        let mask: UInt64 = thicket_cores()
        return (0..<64).filter { mask >> UInt64($0) & 1 == 1 }
    }

    /// Restricts the thread to these cores.
    static func pin(_ cores: some Sequence<Int>) throws {
        let failure: Int32 = thicket_use_cores(cores.reduce(UInt64(0)) { $0 | 1 << UInt64($1) })
        guard failure == 0 else {
            throw BenchError("the kernel does not keep this process to cores \(Array(cores)): error \(failure)")
        }
    }
}
