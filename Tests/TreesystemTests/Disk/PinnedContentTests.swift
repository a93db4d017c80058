import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Contents that a user wants to have on this device, in every order with other wishes for the same content.
@Suite("Pinned contents", .nonceWatch)
struct PinnedContentTests {
    private static let day: Int64 = 86_400_000

    /// Ways to a pinned content.
    enum Way: CaseIterable {
        /// Downloaded for the cache, then pinned.
        case cached
        /// Downloaded for a time, then pinned.
        case timed
        /// Pinned, then wanted for a time.
        case pinnedFirst
        case twice
        case unpinnedBetween
        /// A download for a time was interrupted; another one for the cache ended after the content was pinned.
        case partial
    }

    @Test("a pinned content never expires, in whatever order it was cached, kept for a time, pinned and unpinned")
    func neverExpires() async throws {
        for way in Way.allCases {
            var test = DiskCase(21)
            test.limits.data.age = Self.day
            var store: DiskStore? = try test.open()
            let (reference, bytes) = try test.sealed(test.content(data: 100_000))
            let timed = DiskOptions(isPersistent: true, expires: test.clock.value + 7 * Self.day)
            try await Self.pin(way, #require(store), reference, bytes, timed)
            test.clock.step(400 * Self.day)
            try await store?.trim()
            #expect(try await store?.has(reference) == true, "\(way)")
            store = nil
            let again = try test.open()
            #expect(try await again.has(reference), "\(way), after a restart")
            let pinned = await again.pinned
            #expect(pinned.map(\.content) == [reference.id] && pinned.map(\.node) == [reference.node])
            try await again.setPersistent(false, reference.id)
            test.clock.step(Self.day)
            #expect(try await again.has(reference) == false, "\(way): an unpinned content is one of the cache")
        }
    }

    private static func pin(
        _ way: Way, _ store: DiskStore, _ reference: BlobReference, _ bytes: [UInt8], _ timed: DiskOptions
    ) async throws {
        switch way {
        case .cached:
            _ = try await store.fill(reference, bytes)
            try await store.setPersistent(true, reference.id)
        case .timed:
            _ = try await store.fill(reference, bytes, options: timed)
            try await store.setPersistent(true, reference.id)
        case .pinnedFirst:
            _ = try await store.fill(reference, bytes, options: .persistent)
            try await store.setPersistent(true, reference.id, until: timed.expires)
        case .twice:
            _ = try await store.fill(reference, bytes, options: timed)
            for _ in 0..<2 { try await store.setPersistent(true, reference.id) }
        case .unpinnedBetween:
            _ = try await store.fill(reference, bytes, options: timed)
            for isPersistent in [true, false, true] { try await store.setPersistent(isPersistent, reference.id) }
        case .partial:
            _ = try await store.begin(reference, .all, options: timed)
            try await store.setPersistent(true, reference.id)
            _ = try await store.fill(reference, bytes)
        }
    }

    @Test("a content that is kept for a time stays until then, and a later wish prolongs it, over restarts")
    func timed() async throws {
        var test = DiskCase(22)
        test.limits.data.bytes = 0
        var store: DiskStore? = try test.open()
        let (reference, bytes) = try test.sealed(test.content(data: 100_000))
        let first = DiskOptions(isPersistent: true, expires: test.clock.value + 7 * Self.day)
        _ = try await store?.begin(reference, .all, options: first)
        test.clock.step(6 * Self.day)
        let second = DiskOptions(isPersistent: true, expires: test.clock.value + 7 * Self.day)
        _ = try await store?.begin(reference, .all, options: second)
        store = nil
        test.clock.step(2 * Self.day)
        let again = try test.open()
        #expect(await again.usage.entries == 1, "the interrupted download is still there")
        _ = try await again.fill(reference, bytes)
        #expect(try await again.has(reference), "the end of a download for the cache does not make it evictable")
        test.clock.step(5 * Self.day)
        #expect(try await again.has(reference) == false)
    }

    @Test("a content that waits for its upload is not evicted when it is unpinned, and stays after it when pinned")
    func waiting() async throws {
        for isPinned in [true, false] {
            var test = DiskCase(23)
            test.limits.data.bytes = 0
            let store = try test.open()
            let blob = try #require(
                await store.spool(NodeSections(test.content(data: 100_000)), node: NodeID(1)).blob)
            let reference = try test.reference(blob.plan)
            try await store.setPersistent(true, blob.plan.id)
            if !isPinned { try await store.setPersistent(false, blob.plan.id) }
            #expect(try await store.has(reference))
            #expect(await store.waitingUploads == [blob.plan.id])
            try await store.uploaded(blob.plan.id)
            #expect(await store.waitingUploads.isEmpty)
            #expect(try await store.has(reference) == isPinned)
        }
    }

    @Test("of two callers of one download, the one that pins decides, whichever comes first")
    func callers() async throws {
        let timed = DiskOptions(isPersistent: true, expires: 2_000_000)
        for wishes in [[DiskOptions.persistent, timed, .cache], [.cache, timed, .persistent]] {
            let test = try DownloadCase(24, data: 100_000)
            let gate = TestGate()
            test.server.set { $0.before = { _ in await gate.pass() } }
            var tickets = [DownloadTicket]()
            for wish in wishes { tickets.append(try await test.download(.all, DownloadOptions(disk: wish))) }
            gate.open()
            for ticket in tickets { _ = try await ticket.value() }
            tickets = []
            test.disk.clock.step(7 * Self.day)
            try await test.store.trim()
            #expect(try await test.store.has(test.reference))
            #expect(test.server.count("read") == 1)
        }
    }
}
