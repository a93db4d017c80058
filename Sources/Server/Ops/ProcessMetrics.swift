import Glibc

/// The kernel's figures about this process, under the names that Prometheus' own libraries use.
enum ProcessMetrics {
    /// Names on the page, for the test that compares them with the documentation.
    static let names = [
        "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "process_max_fds",
    ]

    static func render(to text: inout String) {
        if let pages = firstNumbers(of: "/proc/self/statm").dropFirst().first {
            let bytes = pages * sysconf(Int32(_SC_PAGESIZE))
            gauge("process_resident_memory_bytes", "Resident memory.", "\(bytes)", to: &text)
        }
        var usage = rusage()
        if getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
            let user = Double(usage.ru_utime.tv_sec) + Double(usage.ru_utime.tv_usec) / 1_000_000
            let system = Double(usage.ru_stime.tv_sec) + Double(usage.ru_stime.tv_usec) / 1_000_000
            text += "# HELP process_cpu_seconds_total Processor time spent, user and system.\n"
            text += "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total \(user + system)\n"
        }
        if let count = openDescriptors() {
            gauge("process_open_fds", "Open file descriptors.", "\(count)", to: &text)
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            gauge("process_max_fds", "Most file descriptors the process may open.", "\(limit.rlim_cur)", to: &text)
        }
    }

    private static func gauge(_ name: String, _ help: String, _ value: String, to text: inout String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n\(name) \(value)\n"
    }

    private static func firstNumbers(of path: String) -> [Int] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(file, &bytes, bytes.count)
        guard count > 0 else { return [] }
        return bytes[..<count].split(separator: 0x20).map { (word: ArraySlice<UInt8>) in
            Int(String(decoding: word, as: UTF8.self)) ?? 0
        }
    }

    private static func openDescriptors() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count - 3  // ".", ".." and the folder's own descriptor
    }
}
