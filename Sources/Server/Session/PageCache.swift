import Synchronization
import ThicketProtocol
import ThicketTreeShape

/// Pages of indexes and of children written lately, shared by all readers. Every new client of an unchanged bucket asks
/// for the same pages, for example each web page that is opened without a local store.
///
/// A page of an index depends only on its key, because a scan shows the bucket as it was at `current`. A page of
/// children shows the tree at its position in the log or later, and so does a cached one.
public final class PageCache: Sendable {
    /// What a page depends on.
    enum Place: Hashable {
        /// A query, and the channel number written into its page.
        case index(IndexQuery, ChannelNumber)
        /// A query, and the bucket at the position that is written into its page.
        case children(ChildrenQuery, BucketRow, tag: UInt32, upTo: GlobalID)
    }

    struct Page: Sendable {
        let frame: SharedFrame
        let isLast: Bool
        /// The changes whose bodies it holds, newest first.
        let gids: [GlobalID]
        fileprivate let places: [(start: UInt32, count: UInt32)]

        /// A page without places of bodies.
        init(_ frame: SharedFrame) { (self.frame, isLast, gids, places) = (frame, true, [], []) }

        /// - Parameter entries: newest first.
        init(_ frame: SharedFrame, isLast: Bool, entries: [IndexEntry], starts: [Int]) {
            (self.frame, self.isLast) = (frame, isLast)
            guard starts.count == entries.count, frame.bytes.count <= UInt32.max else {
                (gids, places) = ([], [])
                return
            }
            gids = entries.map(\.gid)
            places = zip(starts, entries).map { (UInt32($0), UInt32($1.body?.count ?? 0)) }
        }

        /// Bytes it takes.
        var weight: Int { frame.bytes.count + 16 * gids.count }

        fileprivate func body(_ place: Int) -> [UInt8] {
            let start = Int(places[place].start)
            return Array(frame.bytes[start..<start + Int(places[place].count)])
        }
    }

    /// Smaller pages are made as quickly as they are found.
    static let pageBytesMin = 16 << 10
    /// Pages kept, besides the bound in bytes.
    static let pagesMax = 1_024

    private let pages = Mutex<RecencyMap<Place, Page>>(.init())
    private let bytesMax: Int

    /// - Parameter bytesMax: bytes of all pages; 0 keeps none.
    public init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Bytes of all pages.
    var bytes: Int { pages.withLock { $0.weight } }

    func page(_ place: Place) -> Page? { pages.withLock { $0[place] } }

    func keep(_ page: Page, at place: Place) {
        let bytes = page.weight
        // Half, so that one page cannot evict all others.
        guard bytes >= Self.pageBytesMin, bytes <= bytesMax / 2 else { return }
        pages.withLock {
            $0.set(place, page, weight: bytes)
            $0.shrink(toWeight: bytesMax, count: Self.pagesMax)
        }
    }

    /// The bodies in pages of other scans of the bucket, for a new page: most objects have not changed since.
    func bodies(for query: IndexQuery) -> PageBodies? {
        guard query.withData else { return nil }
        let found = pages.withLock { (pages: inout RecencyMap<Place, Page>) in
            pages.values {
                guard case .index(let other, _) = $0 else { return false }
                return other.bucket == query.bucket && other.withData
            }.filter { !$0.gids.isEmpty }
        }
        return found.isEmpty ? nil : PageBodies(found)
    }
}

/// Bodies in index pages that were sent before. Belongs to the thread that makes a page.
final class PageBodies: BodyCache {
    private let pages: [PageCache.Page]
    /// Where the previous body was found: the next one most often follows it.
    private var page = 0
    private var place = -1

    fileprivate init(_ pages: [PageCache.Page]) { self.pages = pages }

    func body(of gid: GlobalID) -> [UInt8]? {
        let next = place + 1
        if next < pages[page].gids.count, pages[page].gids[next] == gid {
            place = next
            return pages[page].body(next)
        }
        for number in pages.indices {
            let gids = pages[number].gids
            guard let newest = gids.first, let oldest = gids.last, gid <= newest, gid >= oldest
            else { continue }
            var (low, high) = (0, gids.count)
            while low < high {
                let middle = (low + high) / 2
                if gids[middle] > gid { low = middle + 1 } else { high = middle }
            }
            guard low < gids.count, gids[low] == gid else { continue }
            (page, place) = (number, low)
            return pages[number].body(low)
        }
        return nil
    }
}
