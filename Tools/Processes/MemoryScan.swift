import Glibc

/// Searches for bytes in the memory of a process, from outside of it (`/proc/PID/mem`), or of this one.
public enum MemoryScan {
    /// The bytes to find, masked so that the search does not find itself.
    public struct Needle: Sendable {
        private static let mask: UInt8 = 0xA5
        private let masked: [UInt8]

        /// - Parameter bytes: at most a page. The caller has to erase its own copy.
        public init(_ bytes: some Sequence<UInt8>) { masked = bytes.map { $0 ^ Self.mask } }

        public var count: Int { masked.count }

        /// The number of occurrences. Plain loops: in a debug build anything else needs minutes for the memory of all
        /// tests.
        fileprivate func hits(in bytes: UnsafeRawBufferPointer) -> Int {
            masked.withUnsafeBufferPointer { (masked: UnsafeBufferPointer<UInt8>) in
                // The first byte that is not zero, since zeros are frequent in memory.
                guard let start = bytes.baseAddress, bytes.count >= masked.count,
                    let anchor: Int = masked.firstIndex(where: { $0 != Self.mask }) ?? masked.indices.first
                else { return 0 }
                var (hits, place): (Int, Int) = (0, anchor)
                let end = bytes.count - masked.count + anchor
                while place <= end,
                    let found = memchr(
                        start + place, Int32(masked[anchor] ^ Self.mask), end - place + 1)
                {
                    place = start.distance(to: UnsafeRawPointer(found))
                    var same = 0
                    while same < masked.count, bytes[place - anchor + same] ^ Self.mask == masked[same] { same += 1 }
                    if same == masked.count { hits += 1 }
                    place += 1
                }
                return hits
            }
        }
    }

    /// Bytes read at once.
    private static let chunkBytes = 1 << 20

    /// The number of occurrences of each needle in the process' writable memory: its heap, stacks and private mappings.
    /// - Returns: nil if the system denies access (another user, or a process that refuses it).
    public static func hits(of needles: [Needle], in process: pid_t) -> [Int]? {
        guard let maps = fopen("/proc/\(process)/maps", "r") else { return nil }
        defer { fclose(maps) }
        let memory = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { return nil }
        defer { close(memory) }
        // The buffer is outside of the searched memory: otherwise this process would find its contents again.
        guard
            let room = mmap(
                nil, chunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), room != MAP_FAILED
        else { return nil }
        defer { munmap(room, chunkBytes) }
        var hits = needles.map { _ in 0 }
        var line = [CChar](repeating: 0, count: 512)
        while fgets(&line, Int32(line.count), maps) != nil {
            let words: [Substring] = String(
                decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self
            )
            .split(separator: " ")
            let ends: [Substring] = words.first?.split(separator: "-") ?? []
            guard words.count >= 2, ends.count == 2, words[1].hasPrefix("rw"), words[1].hasSuffix("p"),
                let start = UInt64(ends[0], radix: 16), let end = UInt64(ends[1], radix: 16)
            else { continue }
            add(&hits, needles, memory, start..<end, room)
        }
        return hits
    }

    private static func add(
        _ hits: inout [Int], _ needles: [Needle], _ memory: Int32, _ range: Range<UInt64>,
        _ room: UnsafeMutableRawPointer
    ) {
        let longest = needles.map(\.count).max() ?? 0
        var place = range.lowerBound
        while place < range.upperBound {
            let wanted = Int(min(UInt64(chunkBytes), range.upperBound - place))
            let count = pread(memory, room, wanted, off_t(truncatingIfNeeded: place))
            guard count > 0 else { return }
            for (index, needle) in needles.enumerated() {
                hits[index] += needle.hits(in: UnsafeRawBufferPointer(start: room, count: count))
            }
            // A hit across two chunks is whole in the next one, and may therefore count twice.
            let isLast = place + UInt64(count) >= range.upperBound
            place += UInt64(isLast || count <= longest ? count : count - longest)
        }
    }
}
