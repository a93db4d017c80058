import Glibc

/// Looks for bytes in the memory of a process, from outside of it (`/proc/PID/mem`), or of this one.
public enum MemoryScan {
    /// What is looked for, kept so that the search does not find itself.
    public struct Needle: Sendable {
        private static let mask: UInt8 = 0xA5
        private let masked: [UInt8]

        /// - Parameter bytes: not more than a page. Whoever made them sees to it that they go from there.
        public init(_ bytes: some Sequence<UInt8>) { masked = bytes.map { $0 ^ Self.mask } }

        public var count: Int { masked.count }

        /// How often it stands there. Plain loops: in a debug build anything else takes minutes for the memory of all tests.
        fileprivate func hits(in bytes: UnsafeRawBufferPointer) -> Int {
            masked.withUnsafeBufferPointer { (masked: UnsafeBufferPointer<UInt8>) in
                // A byte that is not everywhere.
                guard let start: UnsafeRawPointer = bytes.baseAddress, bytes.count >= masked.count,
                    let anchor: Int = masked.firstIndex(where: { $0 != Self.mask }) ?? masked.indices.first
                else { return 0 }
                var (hits, place): (Int, Int) = (0, anchor)
                let end: Int = bytes.count - masked.count + anchor
                while place <= end,
                    let found: UnsafeMutableRawPointer = memchr(
                        start + place, Int32(masked[anchor] ^ Self.mask), end - place + 1)
                {
                    place = start.distance(to: UnsafeRawPointer(found))
                    var same: Int = 0
                    while same < masked.count, bytes[place - anchor + same] ^ Self.mask == masked[same] { same += 1 }
                    if same == masked.count { hits += 1 }
                    place += 1
                }
                return hits
            }
        }
    }

    /// Bytes read at once.
    private static let chunkBytes: Int = 1 << 20

    /// How often each of the needles stands in what the process may write to: its heap, stacks and mappings of its own.
    /// - Returns: nil when the system does not let us look (another user, or a process that refuses it).
    public static func hits(of needles: [Needle], in process: pid_t) -> [Int]? {
        guard let maps: UnsafeMutablePointer<FILE> = fopen("/proc/\(process)/maps", "r") else { return nil }
        defer { fclose(maps) }
        let memory: Int32 = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { return nil }
        defer { close(memory) }
        // What is read lies outside of all that is searched: it would be found again in this process.
        guard
            let room: UnsafeMutableRawPointer = mmap(
                nil, chunkBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), room != MAP_FAILED
        else { return nil }
        defer { munmap(room, chunkBytes) }
        var hits: [Int] = needles.map { _ in 0 }
        var line: [CChar] = .init(repeating: 0, count: 512)
        while fgets(&line, Int32(line.count), maps) != nil {
            let words: [Substring] = String(
                decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self
            )
            .split(separator: " ")
            let ends: [Substring] = words.first?.split(separator: "-") ?? []
            guard words.count >= 2, ends.count == 2, words[1].hasPrefix("rw"), words[1].hasSuffix("p"),
                let start: UInt64 = UInt64(ends[0], radix: 16), let end: UInt64 = UInt64(ends[1], radix: 16)
            else { continue }
            add(&hits, needles, memory, start..<end, room)
        }
        return hits
    }

    private static func add(
        _ hits: inout [Int], _ needles: [Needle], _ memory: Int32, _ range: Range<UInt64>,
        _ room: UnsafeMutableRawPointer
    ) {
        let longest: Int = needles.map(\.count).max() ?? 0
        var place: UInt64 = range.lowerBound
        while place < range.upperBound {
            let wanted: Int = Int(min(UInt64(chunkBytes), range.upperBound - place))
            let count: Int = pread(memory, room, wanted, off_t(truncatingIfNeeded: place))
            guard count > 0 else { return }
            for (index, needle): (Int, Needle) in needles.enumerated() {
                hits[index] += needle.hits(in: UnsafeRawBufferPointer(start: room, count: count))
            }
            // What lies across two chunks is in the next one as a whole, and so may count twice.
            let isLast: Bool = place + UInt64(count) >= range.upperBound
            place += UInt64(isLast || count <= longest ? count : count - longest)
        }
    }
}
