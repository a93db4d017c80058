import Synchronization
import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Downloads from a hostile server", .nonceWatch)
struct DownloadAttackTests {
    private static let chunk = DownloadCase.chunk

    @Test("A1: a server that flips a bit in every answer is asked once more; no flipped chunk is stored or counted")
    func flips() async throws {
        for round in 0..<20 {
            let test = try DownloadCase(200 + UInt64(round), data: 400_000)
            let place = test.disk.seed.below(test.sealed.count)
            let damaged = UInt64(place / Self.chunk)
            test.server.set { state in
                state.swap = { bytes, range in
                    var bytes = bytes
                    if range.contains(UInt64(place)) { bytes[place - Int(range.lowerBound)] ^= 4 }
                    return bytes
                }
            }
            #expect(try await test.fault() == .contentDamaged)
            #expect(test.server.count("read") == 2)
            #expect(try await test.store.has(test.reference) == false)
            #expect(await test.manager.figures.bytes == damaged * UInt64(Self.chunk))
            test.server.set { $0.swap = nil }
            #expect(try await test.fault() == nil)
            #expect(await test.manager.figures.bytes == UInt64(test.sealed.count))
        }
    }

    @Test("A2: truncated, lengthened, swapped and repeated chunks and another last chunk are contentDamaged or foreign")
    func structure() async throws {
        let test = try DownloadCase(300, data: 400_000)
        let sealed = test.sealed
        let chunks = stride(from: 0, to: sealed.count, by: Self.chunk).map {
            Array(sealed[$0..<min(sealed.count, $0 + Self.chunk)])
        }
        let end = chunks.count - 1
        var swapped = chunks
        swapped.swapAt(1, 3)
        var repeated = chunks
        repeated[2] = chunks[1]
        var last = chunks
        last[end] = Array(chunks[1].prefix(chunks[end].count))
        let cases: [([UInt8], ContentError)] = [
            (Array(swapped.joined()), .contentDamaged), (Array(repeated.joined()), .contentDamaged),
            (Array(last.joined()), .contentDamaged),
            // Another length than the record's is another blob.
            (Array(chunks[..<end].joined()), .contentMismatch), (Array(sealed.dropLast()), .contentMismatch),
            (sealed + [0], .contentMismatch), (sealed + chunks[end], .contentMismatch),
            (Array(sealed[..<0]), .contentMismatch),
        ]
        for (bytes, expected) in cases {
            test.server.set { $0.blobs[test.reference.blob] = bytes }
            #expect(try await test.fault() == expected)
            #expect(try await test.store.has(test.reference) == false)
        }
        // The stated length is right, and bytes are missing: a cut answer, again and again.
        test.server.set { state in
            state.blobs[test.reference.blob] = Array(sealed.dropLast(100))
            state.total = UInt64(sealed.count)
        }
        #expect(try await test.fault() == .unreachable)
        #expect(try await test.store.has(test.reference) == false)
    }

    @Test("A3: another node's blob and an older blob of the node are contentMismatch, and nothing of them is kept")
    func foreign() async throws {
        let test = try DownloadCase(400, data: 400_000)
        let (_, other) = try test.disk.sealed(test.disk.content(data: 400_000, metadata: 1_000, thumbnail: 90_000))
        let (_, older) = try test.disk.sealed(test.content)
        let (_, longer) = try test.disk.sealed(test.disk.content(data: 700_000))
        #expect(other.count == test.sealed.count && older.count == test.sealed.count)
        for bytes in [other, older, longer] {
            test.server.set { $0.blobs[test.reference.blob] = bytes }
            #expect(try await test.fault() == .contentMismatch)
            #expect(!test.disk.folder.names.contains { $0.hasPrefix(test.reference.id.text) })
        }
        #expect(await test.manager.figures.bytes == 0)
    }

    @Test("a server that mixes two contents in one answer is contentDamaged from the first foreign chunk on")
    func mixed() async throws {
        let test = try DownloadCase(500, data: 400_000)
        let (_, older) = try test.disk.sealed(test.content)
        let mixed = Array(test.sealed[..<(2 * Self.chunk)]) + Array(older[(2 * Self.chunk)...])
        test.server.set { $0.blobs[test.reference.blob] = mixed }
        #expect(try await test.fault() == .contentDamaged)
        #expect(await test.manager.figures.bytes == UInt64(2 * Self.chunk))
    }

    @Test("a blob that the node does not refer to any more is notFound, at once")
    func gone() async throws {
        let test = try DownloadCase(600, data: 100_000)
        test.server.set { $0.blobs = [:] }
        #expect(try await test.fault() == .notFound)
        #expect(test.server.requestCount == 1)
    }

    @Test("a server that answers nothing, or empty answers, is given up after nine requests with growing pauses")
    func silent() async throws {
        for isEmpty in [false, true] {
            let test = try DownloadCase(700, data: 100_000)
            test.server.set { state in
                if isEmpty { state.swap = { _, _ in [] } } else { state.fate = { _ in .dropped } }
            }
            #expect(try await test.fault() == .unreachable)
            #expect(test.server.count("read") == TransferLimits.failuresMax + 1)
            let pauses = test.clock.pauses
            #expect(pauses.count == TransferLimits.failuresMax && pauses.reduce(0, +) > 30_000)
        }
    }
}
