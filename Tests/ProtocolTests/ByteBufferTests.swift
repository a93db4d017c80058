import Testing

@testable import ThicketProtocol

@Suite("Bytes that grow")
struct ByteBufferTests {
    @Test(
        "what is gathered is what was appended; from a megabyte on the rest of a known length is reserved at once",
        arguments: [100_000, 1_000_000, 3_000_001])
    func grows(total: Int) {
        var buffer: ByteBuffer = .init()
        var (capacities, expected): ([Int], [UInt8]) = ([], [])
        while expected.count < total {
            let count: Int = min(40_000, total - expected.count)
            let piece: [UInt8] = (0..<count).map { UInt8(truncatingIfNeeded: ($0 + expected.count) / 7) }
            piece.withUnsafeBytes { buffer.append($0, upTo: total) }
            expected += piece
            if capacities.last != buffer.capacity { capacities.append(buffer.capacity) }
            #expect(buffer.capacity <= total)
        }
        #expect(buffer.bytes.elementsEqual(expected))
        #expect(capacities.filter { $0 > 2 * ByteBuffer.wholeFrom }.count <= 1, "\(capacities)")
    }
}
