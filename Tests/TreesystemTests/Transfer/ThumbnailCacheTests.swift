import Synchronization
import Testing
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Thumbnail cache")
struct ThumbnailCacheTests {
    private static func read(_ stream: AsyncStream<ThumbnailStage<[UInt8]>>) async -> [String] {
        var stages = [String]()
        for await stage in stream {
            switch stage {
            case .before(let value): stages.append("before \(value?.count ?? -1)")
            case .after(let value): stages.append("after \(value?.count ?? -1)")
            case .failed(let error): stages.append("\(error)")
            }
        }
        return stages
    }

    @Test("D10: a reader receives what is cached, then the value; the older version is shown while the newer is loaded")
    func stages() async {
        let cache = ThumbnailCache<[UInt8]>(costMax: 1_000) { $0.count }
        let node = NodeID(1)
        func stages(_ version: Int64, _ load: @escaping @Sendable () -> [UInt8]?) async -> [String] {
            await Self.read(await cache.stages(of: node, version: version) { () async throws(ContentError) in load() })
        }
        #expect(await stages(1) { [1] } == ["before -1", "after 1"])
        #expect(await stages(1) { [] } == ["before 1", "after 1"], "not loaded again")
        #expect(await stages(2) { [1, 2] } == ["before 1", "after 2"])
        #expect(await stages(3) { nil } == ["before 2", "after -1"])
        #expect(await stages(3) { [1] } == ["before -1", "after -1"], "that there is none is remembered")
        await cache.remove(node)
        #expect(await cache.totalCost == 0)
    }

    @Test("D10: 200 readers of one node share one load, and a load that fails is made again by the next reader")
    func shared() async {
        let cache = ThumbnailCache<[UInt8]>(costMax: 1_000) { $0.count }
        let gate = TestGate()
        let loads = Atomic(0)
        var streams = [AsyncStream<ThumbnailStage<[UInt8]>>]()
        for _ in 0..<200 {
            streams.append(
                await cache.stages(of: NodeID(1), version: 1) { () async throws(ContentError) in
                    loads.add(1, ordering: .relaxed)
                    await gate.pass()
                    throw .unreachable
                })
        }
        gate.open()
        for stream in streams { #expect(await Self.read(stream) == ["before -1", "\(ContentError.unreachable)"]) }
        #expect(loads.load(ordering: .relaxed) == 1)
        let again = await cache.stages(of: NodeID(1), version: 1) { () async throws(ContentError) in [7] }
        #expect(await Self.read(again) == ["before -1", "after 1"])
    }

    @Test("D10: the least recently used value is evicted, and the cost is never above its bound")
    func bound() async {
        let cache = ThumbnailCache<[UInt8]>(costMax: 100) { $0.count }
        let seed = ContentSeed(2)
        var order = [(node: Int, cost: Int)]()
        for _ in 0..<2_000 {
            let (node, size) = (seed.below(12), 1 + seed.below(120))
            let known = order.first { $0.node == node }
            let stages = await Self.read(
                await cache.stages(of: NodeID(UInt128(node)), version: 1) { () async throws(ContentError) in
                    [UInt8](repeating: 0, count: size)
                })
            #expect(stages == ["before \(known?.cost ?? -1)", "after \(known?.cost ?? size)"])
            order.removeAll { $0.node == node }
            if known != nil || size <= 100 { order.append((node, known?.cost ?? size)) }
            while order.reduce(0, { $0 + $1.cost }) > 100 { order.removeFirst() }
            let (cost, count) = (await cache.totalCost, await cache.count)
            #expect(cost == order.reduce(0) { $0 + $1.cost } && cost <= 100 && count == order.count)
        }
    }
}
