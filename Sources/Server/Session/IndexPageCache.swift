import Synchronization
import ThicketProtocol

/// Index pages that were written lately, shared by all readers: the same pages are asked for by every new client of a
/// bucket that has not changed since, such as each web page that is opened without a store of its own.
///
/// A page depends on nothing but its key, because a walk shows the bucket as it stood at `current`.
public final class IndexPageCache: Sendable {
    /// What a page was asked for by.
    struct Place: Hashable {
        let query: IndexQuery
        let channel: ChannelNumber
    }

    struct Page: Sendable {
        let frame: SharedFrame
        let isLast: Bool
    }

    /// Smaller pages are made as quickly as they are found.
    static let pageBytesMin: Int = 16 << 10
    /// Pages kept, besides the bound in bytes.
    static let pagesMax: Int = 1_024

    private let pages: Mutex<RecentlyUsed<Place, Page>> = .init(.init())
    private let bytesMax: Int

    /// - Parameter bytesMax: bytes of all pages; 0 keeps none.
    public init(bytesMax: Int) { self.bytesMax = bytesMax }

    func page(_ place: Place) -> Page? { pages.withLock { $0[place] } }

    func keep(_ page: Page, at place: Place) {
        let bytes: Int = page.frame.bytes.count
        // Half, so that no single page throws out all others.
        guard bytes >= Self.pageBytesMin, bytes <= bytesMax / 2 else { return }
        pages.withLock {
            $0.set(place, page, weight: bytes)
            $0.shrink(toWeight: bytesMax, count: Self.pagesMax)
        }
    }
}
