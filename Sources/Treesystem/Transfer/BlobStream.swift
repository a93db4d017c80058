import ThicketCrypto
import ThicketTree
import ThicketTreeShape

/// The clear bytes of a section while its blob is downloaded: each chunk is handed out when it is verified, and nothing
/// is kept on this device.
///
/// The next request is made when its bytes are asked for, so a reader that stops early ends the download.
public struct BlobStream: AsyncSequence, Sendable {
    let reference: BlobReference
    let section: ContentSection
    let transport: any BlobTransport
    let clock: TransferClock

    /// Starts at the beginning of the section.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Reads on.
    public struct Iterator: AsyncIteratorProtocol {
        private let stream: BlobStream
        /// Of the plain stream.
        private let wanted: Range<UInt64>
        private var machine: DownloadMachine
        private var check: ChunkCheck?
        /// Clear bytes of one request at most: 1 MiB.
        private var ready = [[UInt8]]()

        init(_ stream: BlobStream) {
            self.stream = stream
            let map = stream.reference.map
            wanted = map.sizes.range(of: stream.section)
            machine = DownloadMachine(ChunkSpan(ContentComponents(stream.section), of: map), verified: 0)
        }

        /// The next bytes, 65,536 at most; nil at the end.
        ///
        /// - Throws: `contentDamaged`, `contentMismatch`, `newerFormat`, `notFound`, `refused`, `unreachable`,
        ///   `cancelled`.
        public mutating func next() async throws(ContentError) -> [UInt8]? { try await next(isolation: nil) }

        /// The next bytes; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ContentError) -> [UInt8]? {
            while ready.isEmpty {
                switch machine.outcome {
                case .complete: return nil
                case .failed(let error): throw error
                case nil: break
                }
                if Task.isCancelled { throw .cancelled }
                guard let fetch = machine.next(now: stream.clock.now()) else {
                    do { try await stream.clock.sleep(Swift.max(1, machine.notBefore - stream.clock.now())) } catch {
                        throw .cancelled
                    }
                    continue
                }
                let answer = await Self.fetch(fetch.bytes, stream)
                machine.handle(try event(answer, fetch), now: stream.clock.now(), random: stream.clock.random())
            }
            return ready.removeFirst()
        }

        private static func fetch(
            _ range: Range<UInt64>, _ stream: BlobStream
        ) async -> Result<BlobPiece, BlobFailure> {
            let reference = stream.reference
            do throws(BlobFailure) {
                return .success(
                    try await stream.transport.read(
                        reference.blob, owner: reference.owner, node: reference.node, range: range))
            } catch { return .failure(error) }
        }

        private mutating func event(
            _ answer: Result<BlobPiece, BlobFailure>, _ fetch: DownloadMachine.Fetch
        ) throws(ContentError) -> DownloadMachine.Event {
            switch answer {
            case .failure(let failure): return .failed(failure)
            case .success(let piece):
                guard piece.total == stream.reference.sealedLength else {
                    return .wrong(stored: 0, fault: .contentMismatch)
                }
                return try open(piece.bytes, fetch)
            }
        }

        /// Opens the whole chunks of an answer, up to the first that does not open.
        private mutating func open(
            _ bytes: [UInt8], _ fetch: DownloadMachine.Fetch
        ) throws(ContentError) -> DownloadMachine.Event {
            let (layout, check) = (stream.reference.map.layout, try chunkCheck())
            var count: UInt64 = 0
            for chunk in fetch.chunks {
                let sealed = layout.sealedRange(of: chunk)
                let start = Int(sealed.lowerBound - fetch.bytes.lowerBound)
                guard start + sealed.count <= bytes.count else { break }
                guard let clear = check.clear(chunk, bytes[start..<start + sealed.count]) else {
                    // If another chunk of the content opens, foreign bytes are damage.
                    let isForeign = fetch.place + count == 0 && !opensOther(bytes, fetch, check)
                    return .wrong(stored: count, fault: isForeign ? .contentMismatch : .contentDamaged)
                }
                if chunk == 0 { try checkHeader(clear) }
                let range = layout.clearRange(of: chunk)
                let part = range.clamped(to: wanted)
                if !part.isEmpty {
                    ready.append(
                        Array(clear[Int(part.lowerBound - range.lowerBound)..<Int(part.upperBound - range.lowerBound)]))
                }
                count += 1
            }
            return .stored(count)
        }

        /// Whether any chunk behind the first one opens.
        private func opensOther(_ bytes: [UInt8], _ fetch: DownloadMachine.Fetch, _ check: ChunkCheck) -> Bool {
            fetch.chunks.dropFirst().contains { chunk in
                let sealed = stream.reference.map.layout.sealedRange(of: chunk)
                let start = Int(sealed.lowerBound - fetch.bytes.lowerBound)
                return start + sealed.count <= bytes.count && check.opens(chunk, bytes[start..<start + sealed.count])
            }
        }

        private mutating func chunkCheck() throws(ContentError) -> ChunkCheck {
            if let check { return check }
            let made = try ChunkCheck(stream.reference)
            check = made
            return made
        }

        private func checkHeader(_ clear: [UInt8]) throws(ContentError) {
            try stream.reference.map.checkHeader(Array(clear.prefix(TreeLimits.contentHeaderBytes)))
        }
    }
}
