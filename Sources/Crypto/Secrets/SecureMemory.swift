// Linux only: MADV_DONTDUMP; on Apple platforms: mmap and mlock alone, since there are no core files by default.
#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import Synchronization

/// Pages that contain only secrets: locked where the system permits it, so that they are not swapped out, and left out
/// of core files.
///
/// A secret usually has 32 bytes and a page 4,096; a process may lock only a few megabytes (RLIMIT_MEMLOCK) and have
/// 65,530 mappings. So small secrets share regions, in slots whose size is a power of two; large ones have separate
/// mappings. A free slot contains zeros. Regions are never unmapped: their number is determined by the most secrets
/// that existed at one time.
enum SecureMemory {
    /// Smallest slot in bytes.
    private static let placeBytesMin = 32
    /// Largest slot inside a region; a larger secret gets separate pages.
    private static let placeBytesMax = 4_096
    /// Bytes that are mapped at once for slots of one size.
    private static let regionBytes = 65_536

    /// Addresses of free slots, by size: 32, 64, … 4,096.
    private static let free = Mutex<[[UInt]]>(.init(repeating: [], count: 8))

    /// - Parameter count: 0 or more; the slot has space for at least one byte.
    /// - Returns: memory filled with zeros.
    static func allocate(_ count: Int) -> UnsafeMutableRawPointer {
        precondition(count >= 0, "a secret has at least 0 bytes")
        guard count <= placeBytesMax else { return map(wholePages(count)) }
        let size = sizeClass(count)
        let address = free.withLock { free in
            if free[size].isEmpty {
                let region = UInt(bitPattern: map(regionBytes))
                let step = placeBytesMin << size
                free[size] = stride(from: 0, to: regionBytes, by: step).reversed().map { region + UInt($0) }
            }
            return free[size].removeLast()
        }
        guard let place = UnsafeMutableRawPointer(bitPattern: address) else {
            preconditionFailure("a mapping has no address")
        }
        return place
    }

    /// - Parameters:
    ///   - place: the result of `allocate` for this count, filled with zeros again.
    static func give(_ place: UnsafeMutableRawPointer, _ count: Int) {
        guard count <= placeBytesMax else {
            munmap(place, wholePages(count))
            return
        }
        let address = UInt(bitPattern: place)
        free.withLock { $0[sizeClass(count)].append(address) }
    }

    private static func sizeClass(_ count: Int) -> Int {
        let places = max(1, (count + placeBytesMin - 1) / placeBytesMin)
        return Int.bitWidth - (places - 1).leadingZeroBitCount
    }

    private static func wholePages(_ count: Int) -> Int {
        let page = Int(getpagesize())
        return (count + page - 1) / page * page
    }

    private static func map(_ count: Int) -> UnsafeMutableRawPointer {
        let pages = mmap(
            nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let pages, pages != MAP_FAILED else {
            preconditionFailure("no memory for a secret of \(count) bytes")
        }
        // Locking fails beyond the limit of the process and is then left out: a secret that may be swapped out is
        // better than a failure.
        mlock(pages, count)
        #if !canImport(Darwin)
            madvise(pages, count, Int32(MADV_DONTDUMP))
        #endif
        return pages
    }
}
