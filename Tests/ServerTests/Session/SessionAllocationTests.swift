import Testing
import ThicketProtocol

@testable import ThicketServer

/// Heap allocations of a change on its way through the sessions, beside `AllocationTests`: counted exactly.
@Suite("Allocations of sessions") struct SessionAllocationTests {
    /// Blocks for an incoming change, up to the request to the shard, and for its delivery to all listeners; medians.
    private func steps(listeners: Int) throws -> (receiving: Int, telling: Int) {
        let harness = try HubHarness()
        let writer: Peer = harness.client("writer")
        let all: [Peer] = [writer] + (0..<listeners).map { harness.client("listener-\($0)") }
        for peer in all { #expect(peer.ask("0:cv:\(try harness.cv(0))") == ["0:c:[]"]) }
        harness.holdsCommits = true
        var counts: (receiving: [Int], telling: [Int]) = ([], [])
        for number: Int in 0..<150 {
            let digits = String(number, radix: 16)
            let ccid: String = String(repeating: "0", count: 32 - digits.count) + digits
            let message: [UInt8] = Array(edit("k", ccid, sv: number == 0 ? nil : number, to: "v\(1_000 + number)").utf8)
            let receiving: Int = AllocationCount.during { harness.hub.received(writer.id, message, now: harness.now) }
            harness.settle()
            let group: (outcome: CommitOutcome, requests: Int) = harness.decide()
            #expect(group.outcome.appliedCount == 1)
            let telling: Int = AllocationCount.during { harness.hub.committed(group.outcome, now: harness.now) }
            harness.settle()
            for peer in all { #expect(peer.take().count == 1) }
            // No client reaches its rate.
            harness.pass(seconds: 1)
            guard number >= 80 else { continue }
            counts.receiving.append(receiving)
            counts.telling.append(telling)
        }
        return (AllocationCount.median(counts.receiving), AllocationCount.median(counts.telling))
    }

    // Release builds allocate fewer: the two blocks of each listener are for the search of the frame that all share.
    #if DEBUG
        @Test(
            "a change allocates exactly 19 blocks on its way in, and an exact number for delivery to all listeners",
            .enabled(if: AllocationCount.isPossible, "a sanitizer has its own heap"),
            arguments: [(0, 16), (1, 19), (9, 38), (99, 221)])
        func perChange(listeners: Int, telling: Int) throws {
            let found: (receiving: Int, telling: Int) = try steps(listeners: listeners)
            #expect(found == (19, telling), "receiving, telling")
        }
    #endif

    /// The message stays in the buffer that the socket was read into.
    @Test(
        "a whole frame that came in one piece allocates nothing",
        .enabled(if: AllocationCount.isPossible, "a sanitizer has its own heap"))
    func frame() throws {
        var reader = WebSocketReader(role: .server, messageBytesMax: 1 << 20)
        var bytes: [UInt8] = WebSocketWriter.frame(.text, Array(edit("k", "x1", to: "a").utf8), mask: 7)
        let whole: [UInt8] = bytes
        for round: Int in 0..<10 {
            bytes = whole
            var isMessage = false
            let blocks: Int = try bytes.withUnsafeMutableBytes { buffer in
                var input: UnsafeMutableRawBufferPointer = buffer
                return try AllocationCount.during {
                    if case .text? = try reader.next(&input) { isMessage = true }
                }
            }
            #expect(isMessage)
            // The first frame of a process may allocate what all of them use.
            if round > 0 { #expect(blocks == 0) }
        }
    }
}
