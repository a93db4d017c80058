internal import Synchronization
import ThicketClient

/// The readers of events of shared branches.
final class ShareEvents: Sendable {
    private struct State {
        var readers = [UInt64: AsyncStream<ShareEvent>.Continuation]()
        var counter: UInt64 = 0
        var isEnded = false
    }

    private let state = Mutex(State())

    func stream() -> AsyncStream<ShareEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ShareEvent.self, bufferingPolicy: .bufferingNewest(StreamLimits.eventsMax))
        let number = state.withLock { state -> UInt64? in
            guard !state.isEnded else { return nil }
            state.counter += 1
            state.readers[state.counter] = continuation
            return state.counter
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.remove(number) }
        return stream
    }

    private func remove(_ number: UInt64) { state.withLock { $0.readers[number] = nil } }

    func report(_ event: ShareEvent) {
        for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(event) }
    }

    /// The tree is closed.
    func finish() {
        let readers = state.withLock { state in
            state.isEnded = true
            return Array(state.readers.values)
        }
        for reader in readers { reader.finish() }
    }
}
