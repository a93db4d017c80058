import Synchronization

/// A cache, shared by all readers, of index scans, catch-up positions and segments that were recently built or read.
/// Evicted entries are built or read again.
///
/// Any free reader answers the pages of a scan. With one cache per reader, each reader would read the same segments
/// again, in pieces of 4 KiB.
final class ReaderCache: Sendable {
    struct ScanPlace: Hashable {
        let bucket: BucketRow
        let current: GlobalID
    }

    struct CatchUpPlace: Hashable {
        let bucket: BucketRow
        let upTo: GlobalID
    }

    /// A bucket's changes above a position, ascending. A page may begin at any element, because the bytes sent decide
    /// where a page ends.
    struct CatchUp: Sendable {
        let after: GlobalID
        let positions: [GlobalID]

        /// The positions above a later position; nil when the cache does not cover all of them.
        func positions(after place: GlobalID) -> ArraySlice<GlobalID>? {
            guard place >= after else { return nil }
            var (low, high) = (0, positions.count)
            while low < high {
                let middle = (low + high) / 2
                if positions[middle] <= place { low = middle + 1 } else { high = middle }
            }
            return positions[low...]
        }
    }

    /// A replacing segment may reuse the row, but then has another `high`; the key therefore contains both.
    struct SegmentPlace: Hashable {
        let row: Int64
        /// The newest change that the segment covers.
        let high: GlobalID
    }

    private struct State {
        var scans = RecencyMap<ScanPlace, IndexScan>()
        var catchUps = RecencyMap<CatchUpPlace, CatchUp>()
        var segments = RecencyMap<SegmentPlace, Segment>()
    }

    private let state = Mutex<State>(State())
    private let scanEntriesMax: Int
    private let scansMax: Int
    private let catchUpEntriesMax: Int
    private let segmentBytesMax: Int
    /// Maximum number of cached segments, in addition to the bound in bytes.
    private static let segmentsMax = 256

    init(_ settings: StoreSettings) {
        scanEntriesMax = settings.scanEntriesMax
        scansMax = settings.scansMax
        catchUpEntriesMax = settings.catchUpEntriesMax
        segmentBytesMax = settings.segmentBytesMax
    }

    /// Bytes of all cached data.
    var memory: StoreMemory {
        state.withLock {
            StoreMemory(
                segments: $0.segments.weight, scans: $0.scans.weight * IndexScan.bytesPerObject,
                catchUps: $0.catchUps.weight * MemoryLayout<GlobalID>.size)
        }
    }

    func scan(_ place: ScanPlace) -> IndexScan? { state.withLock { $0.scans[place] } }

    /// The newest cached scan of the bucket that is older than the requested one; it can be updated by the changes
    /// since.
    func scan(before place: ScanPlace) -> (current: GlobalID, scan: IndexScan)? {
        state.withLock { (state: inout State) in
            let older = state.scans.keys
                .filter { $0.bucket == place.bucket && $0.current < place.current }
                .max { $0.current < $1.current }
            guard let older, let scan = state.scans[older] else { return nil }
            return (older.current, scan)
        }
    }

    func keep(_ scan: IndexScan, at place: ScanPlace) {
        state.withLock {
            $0.scans.set(place, scan, weight: scan.count)
            $0.scans.shrink(toWeight: scanEntriesMax, count: scansMax)
        }
    }

    func segment(_ place: SegmentPlace) -> Segment? { state.withLock { $0.segments[place] } }

    func keep(_ segment: Segment, at place: SegmentPlace) {
        state.withLock {
            $0.segments.set(place, segment, weight: segment.byteCount)
            $0.segments.shrink(toWeight: segmentBytesMax, count: Self.segmentsMax)
        }
    }

    /// The cached changes of a catch-up above `after`; another client that catches up to the same position may have
    /// loaded them.
    func catchUp(_ place: CatchUpPlace, after: GlobalID) -> ArraySlice<GlobalID>? {
        state.withLock { $0.catchUps[place] }?.positions(after: after)
    }

    func keep(_ catchUp: CatchUp, at place: CatchUpPlace) {
        state.withLock {
            $0.catchUps.set(place, catchUp, weight: catchUp.positions.count)
            $0.catchUps.shrink(toWeight: catchUpEntriesMax, count: scansMax)
        }
    }

    /// Called when a client has reached the end of the catch-up.
    func forgetCatchUp(_ place: CatchUpPlace) { state.withLock { _ = $0.catchUps.remove(place) } }
}
