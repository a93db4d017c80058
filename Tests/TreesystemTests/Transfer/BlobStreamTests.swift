import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTree

@testable import ThicketTreesystem

@Suite("Streams of blobs", .nonceWatch)
struct BlobStreamTests {
    /// Everything that a stream hands out, and the error with which it ends.
    private func read(_ stream: BlobStream, upTo most: Int = .max) async -> (bytes: [UInt8], error: ContentError?) {
        var (bytes, iterator) = ([UInt8](), stream.makeAsyncIterator())
        do throws(ContentError) {
            while bytes.count < most, let piece = try await iterator.next(isolation: nil) {
                #expect(!piece.isEmpty && piece.count <= ContentLayout.chunkBytes)
                bytes += piece
            }
            return (bytes, nil)
        } catch { return (bytes, error) }
    }

    @Test("a stream gives each section in order, keeps no file, and makes the next request when it is asked for")
    func sections() async throws {
        let test = try DownloadCase(41)
        for (section, expected) in [
            (ContentSection.data, test.content.data), (.thumbnail, test.content.thumbnail),
            (.metadata, test.content.metadata),
        ] {
            let (bytes, error) = await read(test.manager.stream(test.reference, section))
            #expect(bytes == expected && error == nil)
        }
        #expect(try await test.store.has(test.reference) == false)
        let before = test.server.count("read")
        let (start, _) = await read(test.manager.stream(test.reference), upTo: 100_000)
        #expect(test.content.data.starts(with: start) && test.server.count("read") == before + 1)
    }

    @Test("A1, A2: a stream ends at the first chunk that does not open, and hands out nothing of it or behind it")
    func damaged() async throws {
        let test = try DownloadCase(42, metadata: 0, thumbnail: 0)
        for place in [0, 70, DownloadCase.chunk, 20 * DownloadCase.chunk + 5, test.sealed.count - 1] {
            test.server.set { state in
                state.swap = { bytes, range in
                    var bytes = bytes
                    if range.contains(UInt64(place)) { bytes[place - Int(range.lowerBound)] ^= 8 }
                    return bytes
                }
            }
            let (bytes, error) = await read(test.manager.stream(test.reference))
            #expect(error == .contentDamaged, "byte \(place)")
            let whole = place / DownloadCase.chunk
            let header = 64
            #expect(bytes == Array(test.content.data.prefix(max(0, whole * ContentLayout.chunkBytes - header))))
        }
        test.server.set { $0.swap = nil }
        #expect(await read(test.manager.stream(test.reference)).bytes == test.content.data)
    }

    @Test(
        "a stream goes on after lost, cut and busy answers without repeating a byte, and gives up after nine failures")
    func faults() async throws {
        let test = try DownloadCase(43)
        let fates: [FakeBlobServer.Fate] = [.dropped, .cut, .busy, .fine]
        let seed = ContentSeed(7)
        test.server.set { $0.fate = { _ in fates[seed.below(fates.count)] } }
        let (bytes, error) = await read(test.manager.stream(test.reference))
        #expect(bytes == test.content.data && error == nil)
        test.server.set { $0.fate = { _ in .dropped } }
        #expect(await read(test.manager.stream(test.reference)).error == .unreachable)
    }
}
