import ThicketClient

/// Decides the requests of one download. Pure: the caller fetches, verifies and stores chunks, and reports how many.
package struct DownloadMachine: Sendable {
    /// One request: chunks that follow each other in the content.
    package struct Fetch: Sendable, Hashable {
        /// The place of the first chunk in the span.
        package let place: UInt64
        package let chunks: Range<UInt64>
        /// The bytes of the blob.
        package let bytes: Range<UInt64>
    }

    package enum Event: Sendable, Hashable {
        /// Whole chunks that were verified and stored; fewer than asked for when the answer was cut.
        case stored(UInt64)
        /// Chunks before the first that did not open were stored; `fault` says what the bytes are.
        case wrong(stored: UInt64, fault: ContentError)
        case failed(BlobFailure)
        /// The store failed.
        case broken(ContentError)
    }

    package enum Outcome: Sendable, Hashable {
        case complete
        case failed(ContentError)
    }

    package let span: ChunkSpan
    /// Chunks that are verified and stored.
    package private(set) var verified: UInt64
    /// No request is made before.
    package private(set) var notBefore: Int64 = .min
    package private(set) var outcome: Outcome?
    private var inFlight: Fetch?
    private var backoff = Backoff(shortest: TransferLimits.pauseMin, longest: TransferLimits.pauseMax)
    private var wrongs = 0

    /// - Parameter verified: chunks that an earlier run stored.
    package init(_ span: ChunkSpan, verified: UInt64) {
        (self.span, self.verified) = (span, verified)
        if verified >= span.count { outcome = .complete }
    }

    /// The bytes of verified chunks.
    var bytes: UInt64 { min(span.bytes, ChunkSpan.offset(ofPlace: verified)) }

    /// The request to make now; nil while one is in flight, during a pause, and at the end.
    package mutating func next(now: Int64) -> Fetch? {
        guard outcome == nil, inFlight == nil, now >= notBefore,
            let run = span.run(from: verified, atMost: TransferLimits.pieceChunks)
        else { return nil }
        let fetch = Fetch(place: verified, chunks: run, bytes: span.sealedRange(run))
        inFlight = fetch
        return fetch
    }

    /// - Parameter random: for the jitter of a pause.
    package mutating func handle(_ event: Event, now: Int64, random: UInt64) {
        guard outcome == nil, let fetch = inFlight else { return }
        inFlight = nil
        switch event {
        case .stored(let count):
            verified += count
            if count > 0 { backoff.reset() }
            if count < UInt64(fetch.chunks.count) { pause(now, random, asked: 0) }
        case .wrong(let count, let fault):
            verified += count
            wrongs += 1
            guard wrongs <= TransferLimits.wrongBytesMax else {
                outcome = .failed(fault)
                return
            }
            pause(now, random, asked: 0)
        case .failed(let failure): fail(failure, now, random)
        case .broken(let error): outcome = .failed(error)
        }
        if outcome == nil, verified >= span.count { outcome = .complete }
    }

    private mutating func fail(_ failure: BlobFailure, _ now: Int64, _ random: UInt64) {
        switch failure {
        case .gone: outcome = .failed(.notFound)
        case .bytesLost: outcome = .failed(.lost)
        // The blob ends before the range: it is another one.
        case .refused(416): outcome = .failed(.contentMismatch)
        case .refused(let status): outcome = .failed(.refused(status))
        case .busy(let after), .full(let after):
            pause(now, random, asked: min(after ?? 0, TransferLimits.askedPauseMax))
        case .lost, .badAnswer, .otherPart, .partsMissing: pause(now, random, asked: 0)
        }
    }

    private mutating func pause(_ now: Int64, _ random: UInt64, asked: Int64) {
        let pause = max(asked, backoff.next(random))
        guard backoff.failures <= TransferLimits.failuresMax else {
            outcome = .failed(.unreachable)
            return
        }
        notBefore = now + pause
    }
}
