import Testing
import ThicketTestSupport

@testable import ThicketClient

/// The buffer between frames and a socket that accepts only a part of them.
@Suite("Send buffer of frames")
struct SendBufferTests {
    /// A socket that accepts a random part, and that insists, as OpenSSL does, on the very same bytes at the very same
    /// place after it accepted nothing.
    private struct PickySocket {
        private(set) var taken = [UInt8]()
        private(set) var refusals = 0
        private(set) var moved = 0
        private var unaccepted: (place: UnsafeRawPointer?, bytes: [UInt8])?
        private var random: SeededRandom

        init(seed: UInt64) { random = SeededRandom(seed: seed) }

        mutating func offer(_ bytes: UnsafeRawBufferPointer) -> SendBuffer.Accepted {
            if let unaccepted, unaccepted.place != bytes.baseAddress || unaccepted.bytes != Array(bytes) { moved += 1 }
            unaccepted = nil
            guard Int.random(in: 0..<3, using: &random) > 0 else {
                refusals += 1
                unaccepted = (bytes.baseAddress, Array(bytes))
                return .nothing
            }
            let count = Int.random(in: 1...bytes.count, using: &random)
            taken += bytes.prefix(count)
            return .bytes(count)
        }
    }

    @Test("every byte is sent once and in order, and refused bytes are offered again unmoved", arguments: 1...40)
    func property(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var socket = PickySocket(seed: seed &* 977)
        var buffer = SendBuffer()
        var wanted = [UInt8]()
        for number in 0..<200 {
            let frame = [UInt8](
                repeating: UInt8(truncatingIfNeeded: number), count: Int.random(in: 0...5_000, using: &random))
            buffer.append(frame)
            wanted += frame
            if Bool.random(using: &random) {
                #expect(buffer.flush { socket.offer($0) }, "seed \(seed)")
            }
        }
        while !buffer.isEmpty { #expect(buffer.flush { socket.offer($0) }, "seed \(seed)") }
        #expect(socket.taken == wanted, "seed \(seed)")
        #expect(socket.moved == 0 && socket.refusals > 0, "seed \(seed): \(socket.moved) of \(socket.refusals)")
    }

    @Test("a broken socket is reported at once, and an emptied buffer offers nothing")
    func broken() {
        var buffer = SendBuffer()
        buffer.append([1, 2, 3])
        #expect(!buffer.flush { _ in .broken })
        buffer.clear()
        #expect(buffer.isEmpty)
        #expect(buffer.flush { _ in .broken })
    }
}
