// Linux only: MADV_DONTDUMP; on Apple platforms: mmap and mlock alone, since there are no core files by default.
#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif
import Synchronization

/// Pages that hold secrets and nothing else: locked where the system allows it, so that they are not swapped out, and
/// left out of core files.
///
/// A secret has 32 bytes as a rule and a page 4,096, of which a process may lock some megabytes only (RLIMIT_MEMLOCK)
/// and map 65,530. So small secrets share regions, in places of a power of two; large ones have mappings of their own.
/// A place that is free holds zeros. Regions stay with the process: as many as the most secrets at one time have
/// needed.
enum SecureMemory {
    /// Smallest place.
    private static let placeBytesMin = 32
    /// Largest place inside a region; above it a secret gets pages of its own.
    private static let placeBytesMax = 4_096
    /// Pages that are mapped at once for places of one size.
    private static let regionBytes = 65_536

    /// Addresses of free places, by size: 32, 64, … 4,096.
    private static let free = Mutex<[[UInt]]>(.init(repeating: [], count: 8))

    /// - Parameter count: 0 or more; the place has room for at least one byte.
    /// - Returns: zeros.
    static func take(_ count: Int) -> UnsafeMutableRawPointer {
        precondition(count >= 0, "a secret has 0 bytes or more")
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
    ///   - place: what `take` has given for this count; it holds zeros again.
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
            preconditionFailure("there is no memory for a secret of \(count) bytes")
        }
        // More than a process may lock is not locked: a secret that may be swapped is better than none.
        mlock(pages, count)
        #if !canImport(Darwin)
            madvise(pages, count, Int32(MADV_DONTDUMP))
        #endif
        return pages
    }
}
