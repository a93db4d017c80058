import Synchronization
import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// A blob at a server, and a manager with an empty store.
struct DownloadCase {
    let disk: DiskCase
    let server = FakeBlobServer()
    let clock: JumpingClock
    let store: DiskStore
    let manager: DownloadManager
    let content: NodeContent
    let reference: BlobReference
    let sealed: [UInt8]

    static let chunk = ContentLayout.sealedChunkBytes

    init(_ seed: UInt64, data: Int = 3_000_000, metadata: Int = 1_000, thumbnail: Int = 90_000) throws {
        disk = DiskCase(seed)
        clock = JumpingClock(seed)
        store = try disk.open()
        manager = try DownloadManager(disk: store, transport: server, clock: clock.clock)
        content = disk.content(data: data, metadata: metadata, thumbnail: thumbnail)
        let made = try disk.sealed(content)
        (reference, sealed) = made
        server.set { $0.blobs[made.0.blob] = made.1 }
    }

    func download(_ components: ContentComponents, _ options: DownloadOptions = DownloadOptions()) async throws
        -> DownloadTicket
    {
        try await manager.downloadNodeData(reference, components: components, options: options)
    }

    /// What a download of everything throws.
    func fault() async throws -> ContentError? {
        let ticket = try await download(.all)
        do throws(ContentError) {
            _ = try await ticket.value()
            return nil
        } catch { return error }
    }

    var rangeBytes: Int { server.state.withLock { $0.ranges.reduce(0) { $0 + $1.count } } }
}

@Suite("Downloads", .nonceWatch)
struct DownloadTests {
    @Test("D1: the data is downloaded as a sealed file, in requests of at most 16 chunks, one in memory")
    func data() async throws {
        let test = try DownloadCase(1)
        let file = try #require(try await test.download(.all).value()).file
        #expect(ContentFolder.bytes(file.path) == test.sealed)
        #expect(try file.read(.data) == test.content.data)
        let ranges = test.server.state.withLock(\.ranges)
        #expect(ranges.allSatisfy { $0.count <= 16 * DownloadCase.chunk } && test.rangeBytes == test.sealed.count)
        #expect(test.manager.buffers.value.most == 1 && test.manager.buffers.value.now == 0)
        let figures = await test.manager.figures
        #expect(figures.requests == ranges.count && figures.bytes == UInt64(test.sealed.count))
        _ = try await test.download(.data).value()
        #expect(test.server.count("read") == ranges.count, "from the store")
    }

    @Test("C3: a thumbnail is fetched with at most two chunks beyond the header's, wherever it is")
    func thumbnail() async throws {
        for (metadata, thumbnail) in [(1_000, 60_000), (64_000, 64_000), (200_000, 65_536), (1_000_000, 100)] {
            let test = try DownloadCase(2, data: 200_000, metadata: metadata, thumbnail: thumbnail)
            let file = try #require(try await test.download(.thumbnail).value()).file
            #expect(try file.read(.thumbnail) == test.content.thumbnail)
            #expect(test.rangeBytes <= 3 * DownloadCase.chunk)
            let metadata = try await test.download(.metadata).value()
            #expect(try metadata?.file.read(.metadata) == test.content.metadata)
        }
    }

    @Test("empty sections need no request")
    func absent() async throws {
        let test = try DownloadCase(3, data: 20_000, metadata: 0, thumbnail: 0)
        #expect(try await test.download(.thumbnail).value() == nil)
        #expect(try await test.download([.metadata, .thumbnail]).value() == nil)
        #expect(test.server.requestCount == 0)
    }

    @Test("D2: 1,000 callers of one content make one request, and all have the file")
    func manyCallers() async throws {
        let test = try DownloadCase(4, data: 200_000)
        let gate = TestGate()
        test.server.set { $0.before = { _ in await gate.pass() } }
        var tickets = [DownloadTicket]()
        for _ in 0..<1_000 { tickets.append(try await test.download(.all)) }
        #expect(await test.manager.transferCount == 1)
        gate.open()
        for ticket in tickets { #expect(try await ticket.value()?.file.map == test.reference.map) }
        #expect(test.server.count("read") == 1)
        #expect(await test.manager.figures.completed == 1)
    }

    @Test("D3: requests with one key have one ticket until it is over; others and other sections have their own")
    func coalesce() async throws {
        let test = try DownloadCase(5, data: 100_000)
        let gate = TestGate()
        test.server.set { $0.before = { _ in await gate.pass() } }
        let key = DownloadOptions(coalesceKey: "cell 7")
        let first = try await test.download(.all, key)
        for _ in 0..<5 { #expect(try await test.download(.all, key) === first) }
        let other = try await test.download(.all, DownloadOptions(coalesceKey: "cell 8"))
        let section = try await test.download(.metadata, key)
        #expect(other !== first && section !== first)
        first.cancel()
        let again = try await test.download(.all, key)
        #expect(again !== first)
        gate.open()
        for ticket in [other, section, again] { #expect(try await ticket.value() != nil) }
        await #expect(throws: ContentError.cancelled) { try await first.value() }
    }

    enum Leaving: CaseIterable {
        case stays, cancels, detaches, taskEnds
    }

    @Test(
        "D4: two callers that stay, cancel, detach or end their task: the transfer stops when both cancelled only",
        arguments: Leaving.allCases, Leaving.allCases)
    func matrix(first: Leaving, second: Leaving) async throws {
        let test = try DownloadCase(6, data: 100_000)
        let gate = TestGate()
        test.server.set { $0.before = { _ in await gate.pass() } }
        let tickets = [try await test.download(.all), try await test.download(.all)]
        await gate.arrivals(1)
        var waits = [Task<RetainedFile?, any Error>]()
        for (ticket, leaving) in zip(tickets, [first, second]) {
            let task = Task { try await ticket.value() }
            waits.append(task)
            switch leaving {
            case .stays: break
            case .cancels: ticket.cancel()
            case .detaches: ticket.detach()
            case .taskEnds: task.cancel()
            }
        }
        let isStopped = [first, second].allSatisfy { $0 == .cancels || $0 == .taskEnds }
        for (wait, leaving) in zip(waits, [first, second]) where leaving != .stays {
            await #expect(throws: ContentError.cancelled) { try await wait.value }
        }
        if isStopped { while await test.manager.figures.cancelled == 0 { await pauseBetweenLooks() } }
        gate.open()
        for (wait, leaving) in zip(waits, [first, second]) where leaving == .stays {
            #expect(try await wait.value != nil)
        }
        while await test.manager.transferCount > 0 { await pauseBetweenLooks() }
        #expect(await test.manager.figures.completed == (isStopped ? 0 : 1))
        let again = try #require(try await test.download(.all).value())
        #expect(try again.file.read(.data) == test.content.data)
        // The answer of the cancelled request was received: its chunks are kept or not, but nothing is damaged.
        #expect(test.server.count("read") <= 2)
    }

    @Test(
        "D5: 40 seeds of lost, cut, repeated and refused answers: equal content, verified chunks are not fetched again")
    func faults() async throws {
        var faults = 0
        for seed in UInt64(0)..<40 {
            let test = try DownloadCase(100 + seed, data: 2_500_000)
            let random = ContentSeed(seed)
            test.server.set { state in
                state.fate = { name in
                    switch random.below(10) {
                    case 0: .dropped
                    case 1: .busy
                    case 2, 3: name == "cut" ? .cut : .repeated
                    default: .fine
                    }
                }
            }
            let file = try #require(try await test.download(.all).value()).file
            #expect(ContentFolder.bytes(file.path) == test.sealed)
            let state = test.server.state.withLock { $0 }
            faults += state.faults
            let pieces = (Int(test.reference.map.layout.chunks) + 15) / 16
            #expect(state.ranges.count <= pieces + state.faults, "no storm: seed \(seed)")
            #expect(await test.manager.figures.bytes == UInt64(test.sealed.count), "no chunk was counted twice")
        }
        #expect(faults > 40, "\(faults)")
    }

    @Test(
        "D5, Q21: a cancelled download and one whose program ended go on behind their last verified chunk",
        arguments: [false, true])
    func resume(isRestarted: Bool) async throws {
        let (disk, server) = (DiskCase(7), FakeBlobServer())
        let content = disk.content(data: 5_000_000)
        let (reference, sealed) = try disk.sealed(content)
        let (gate, clock) = (TestGate(), JumpingClock(7).clock)
        server.set { state in
            state.blobs[reference.blob] = sealed
            state.before = { _ in if server.count("read") == 3 { await gate.pass() } }
        }
        var store: DiskStore? = try disk.open()
        var manager: DownloadManager? = try store.map {
            try DownloadManager(disk: $0, transport: server, clock: clock)
        }
        let ticket = try #require(try await manager?.downloadNodeData(reference, components: .all))
        await gate.arrivals(1)
        ticket.cancel()
        await #expect(throws: ContentError.cancelled) { try await ticket.value() }
        while await manager?.figures.cancelled == 0 { await pauseBetweenLooks() }
        gate.open()
        let before = server.state.withLock(\.ranges).count
        if isRestarted {
            await store?.close()
            store = try disk.open()
            manager = try store.map { try DownloadManager(disk: $0, transport: server, clock: clock) }
        }
        let again = try await manager?.downloadNodeData(reference, components: .all).value()
        #expect(try again?.file.read(.data) == content.data)
        let ranges = server.state.withLock(\.ranges)
        try #require(before == 3 && ranges.count > 3)
        #expect(ranges[3].lowerBound >= ranges[1].upperBound, "what was verified is not fetched again")
        #expect(ranges.reduce(0) { $0 + $1.count } <= sealed.count + 16 * DownloadCase.chunk)
    }

    @Test("a transfer waits for its turn behind three others, and the number of waiting ones is bounded")
    func turns() async throws {
        let test = try DownloadCase(8, data: 100_000)
        let gate = TestGate()
        test.server.set { $0.before = { _ in await gate.pass() } }
        var tickets = [DownloadTicket]()
        for number in 0..<UInt128(TransferLimits.waitingMax) {
            let node = BlobReference(
                owner: test.reference.owner, node: NodeID(number), blob: BlobID(number), key: test.reference.key,
                map: test.reference.map, version: 1)
            test.server.set { $0.blobs[BlobID(number)] = test.sealed }
            let components: ContentComponents = number < 6 ? ContentComponents(rawValue: UInt8(number) + 1) : .all
            tickets.append(try await test.manager.downloadNodeData(node, components: components))
        }
        await #expect(throws: ContentError.tooManyCallers) { try await test.download(.all) }
        await gate.arrivals(TransferLimits.downloadsMax)
        #expect(test.server.state.withLock(\.inFlight) == TransferLimits.downloadsMax)
        for ticket in tickets[6...] { ticket.cancel() }
        gate.open()
        for ticket in tickets[..<6] { #expect(try await ticket.value() != nil) }
        #expect(test.server.state.withLock(\.inFlightMost) <= TransferLimits.downloadsMax)
    }

    @Test("cancelled transfers leave the queue at once, so that asking and cancelling again and again does not fill it")
    func cancelledTurns() async throws {
        let test = try DownloadCase(12, data: 100_000)
        let gate = TestGate()
        test.server.set { $0.before = { _ in await gate.pass() } }
        func ask(_ number: UInt128) async throws -> DownloadTicket {
            let node = BlobReference(
                owner: test.reference.owner, node: NodeID(number), blob: BlobID(number), key: test.reference.key,
                map: test.reference.map, version: 1)
            return try await test.manager.downloadNodeData(
                node, components: ContentComponents(rawValue: UInt8(1 + number % 7)))
        }
        let running = [try await ask(1), try await ask(2), try await ask(3)]
        await gate.arrivals(3)
        for number in UInt128(10)..<200 {
            let ticket = try await ask(number)
            if number % 2 == 0 { while await test.manager.turnCount == 0 { await pauseBetweenLooks() } }
            ticket.cancel()
            while await test.manager.transferCount > 3 { await pauseBetweenLooks() }
            #expect(await test.manager.turnCount == 0)
        }
        for ticket in running { ticket.cancel() }
        gate.open()
        while await test.manager.transferCount > 0 { await pauseBetweenLooks() }
        #expect(test.server.count("read") == 3)
    }

    @Test("a content that is asked for while its cancelled request is in flight starts when that one is over")
    func askedAgain() async throws {
        let test = try DownloadCase(13, data: 2_000_000)
        let gate = TestGate()
        test.server.set { $0.before = { _ in await gate.pass() } }
        let first = try await test.download(.all)
        await gate.arrivals(1)
        for _ in 0..<50 {
            first.cancel()
            let ticket = try await test.download(.all)
            ticket.cancel()
            while await test.manager.transferCount > 0 { await pauseBetweenLooks() }
        }
        let last = try await test.download(.all)
        #expect(test.server.count("read") == 1, "two transfers never write to one file")
        gate.open()
        let file = try #require(try await last.value()).file
        #expect(try file.read(.data) == test.content.data)
    }

    @Test("Q19: progress of a download grows and ends at its total, and the stream ends with it")
    func progress() async throws {
        let test = try DownloadCase(9)
        let ticket = try await test.download(.all)
        let reader = Task {
            var values = [TransferProgress]()
            for await value in ticket.progress { values.append(value) }
            return values
        }
        _ = try await ticket.value()
        let values = await reader.value
        #expect(zip(values, values.dropFirst()).allSatisfy { $0.bytes <= $1.bytes })
        #expect(values.last.map { $0.bytes == $0.total } ?? false)
    }

    @Test("a full disk ends the download with diskFull, and the next try goes on")
    func full() async throws {
        let test = try DownloadCase(10)
        test.disk.files.set { $0.fullAt = $0.steps + 3 }
        #expect(try await test.fault() == .diskFull)
        test.disk.files.set { $0.fullAt = nil }
        #expect(try await test.fault() == nil)
    }

    @Test("a blob that the server has lost is the error of its content after one request, without a pause")
    func lostBlob() async throws {
        let test = try DownloadCase(14)
        test.server.set { $0.lost = [test.reference.blob] }
        #expect(try await test.fault() == .lost)
        #expect(test.server.count("read") == 1 && test.clock.pauses.isEmpty)
        #expect(TreeError(ContentError.lost).code == .contentLost)
        var stream = test.manager.stream(test.reference).makeAsyncIterator()
        await #expect(throws: ContentError.lost) { _ = try await stream.next() }
        #expect(test.server.count("read") == 2 && test.clock.pauses.isEmpty)
        test.server.set { $0.lost = [] }
        #expect(try await test.fault() == nil, "an operator may bring it back")
    }

    @Test("a file is persistent if one of its callers asks for that, also when it was in the cache before")
    func persistent() async throws {
        let test = try DownloadCase(11, data: 100_000)
        _ = try await test.download(.all).value()
        #expect(await test.store.usage.persistent == 0)
        _ = try await test.download(.all, DownloadOptions(disk: .persistent)).value()
        #expect(await test.store.usage.persistent == UInt64(test.sealed.count))
    }

    @Test("an interrupted download can be given up: its file is gone at once, and that of another one stays")
    func givenUp() async throws {
        let test = try DownloadCase(13)
        let whole = try #require(try await test.download(.thumbnail).value())
        test.disk.files.set { $0.fullAt = $0.steps + 3 }
        #expect(try await test.fault() == .diskFull)
        // The disk is still full.
        try await test.store.removePartial(test.reference.id)
        let names = try SystemFiles().names(in: test.disk.folder.path).filter { !$0.hasPrefix("index") }
        #expect(names.count == 1)
        #expect(try whole.file.read(.thumbnail) == test.content.thumbnail)
    }
}
