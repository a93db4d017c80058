import Testing
import ThicketProtocol
@testable import ThicketScheduling

@testable import ThicketServer

/// When the network loop commits by itself.
struct InlineGateTests {
    private static func gate(microseconds: Int = 500) -> InlineGate {
        var limits = ServerLimits()
        limits.inlineCommitMicroseconds = microseconds
        return InlineGate(microseconds: limits.inlineCommitMicroseconds)
    }

    private static func record(_ gate: inout InlineGate, times: Int, changes: Int = 1, microseconds: Int64) {
        for _ in 0..<times { gate.record(changes: changes, nanoseconds: microseconds * 1_000) }
    }

    @Test("the gate is closed until some commits were quick")
    func start() {
        var gate: InlineGate = Self.gate()
        #expect(!gate.isOpen)
        Self.record(&gate, times: 4, microseconds: 150)
        #expect(!gate.isOpen)
        Self.record(&gate, times: 8, microseconds: 150)
        #expect(gate.isOpen)
    }

    @Test("a slow disk closes the gate and a fast one opens it again; a single slow commit does neither")
    func slowDisk() {
        var gate: InlineGate = Self.gate()
        Self.record(&gate, times: 100, microseconds: 150)
        Self.record(&gate, times: 1, microseconds: 60_000_000)
        #expect(gate.isOpen, "a single commit of a minute is an outlier")
        Self.record(&gate, times: 1, microseconds: 5_000)
        #expect(!gate.isOpen, "two slow commits are not")
        Self.record(&gate, times: 100, microseconds: 5_000)
        #expect(!gate.isOpen)
        Self.record(&gate, times: 30, microseconds: 150)
        #expect(gate.isOpen)
        Self.record(&gate, times: 100, microseconds: 501)
        #expect(!gate.isOpen, "a microsecond above the limit is too slow")
    }

    @Test("large groups close the gate: many changes are decided while others are received")
    func largeGroups() {
        var gate: InlineGate = Self.gate()
        Self.record(&gate, times: 100, changes: InlineGate.changesMax, microseconds: 150)
        #expect(gate.isOpen)
        Self.record(&gate, times: 1, changes: 64, microseconds: 150)
        #expect(!gate.isOpen)
        Self.record(&gate, times: 40, microseconds: 150)
        #expect(gate.isOpen)
    }

    @Test("a limit of 0 keeps the gate closed")
    func never() {
        var gate: InlineGate = Self.gate(microseconds: 0)
        Self.record(&gate, times: 100, microseconds: 0)
        #expect(!gate.isOpen)
    }

    @Test("the gate admits few small changes, but not many, large ones, an EMPTY or other work")
    func admission() throws {
        let shard = try TestShard()
        func change(bytes: Int, _ operation: ChangeRequest.Operation = .modify) throws -> ShardRequest {
            var reservation = QuotaReservation()
            reservation.bytes = bytes
            let plain: SubmittedChange = try shard.submission("k", operation)
            return .change(
                SubmittedChange(
                    origin: plain.origin, bucket: plain.bucket, clientID: plain.clientID, library: plain.library,
                    canWrite: true, request: plain.request, now: plain.now, reservation: reservation))
        }
        let small: ShardRequest = try change(bytes: 100)
        #expect(!InlineGate.admits([]))
        for count: Int in 1...6 {
            let isFew: Bool = count <= InlineGate.changesMax
            #expect(InlineGate.admits(Array(repeating: small, count: count)) == isFew)
        }
        #expect(InlineGate.admits([try change(bytes: InlineGate.bytesMax - 100), small]))
        #expect(!InlineGate.admits([try change(bytes: InlineGate.bytesMax - 99), small]))
        #expect(!InlineGate.admits([try change(bytes: 10, .empty)]))
        #expect(!InlineGate.admits([.forget(shard.bucket)]))
    }
}
