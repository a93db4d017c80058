import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTree

@testable import ThicketKeyLog
@testable import ThicketTreesystem

/// Heads of the key log that come with messages are compared behind the messages.
@Suite("Messages: comparisons of heads", .timeLimit(.minutes(2)))
struct HeadComparisonsTests {
    /// Holds every comparison until it is released.
    private final class People: PeopleLookUp {
        private struct State {
            var heard = [KeyLogHead]()
            var isHeld = true
            var waiting = [CheckedContinuation<Void, Never>]()
        }
        private let state = Mutex(State())
        let begun: AsyncStream<KeyLogHead>
        private let begin: AsyncStream<KeyLogHead>.Continuation

        init() { (begun, begin) = AsyncStream.makeStream(of: KeyLogHead.self) }

        var heard: [KeyLogHead] { state.withLock { $0.heard } }

        func answer(_ question: KeyQuestion) async -> KeyAnswer { .failed(.offline) }
        func renewed() async -> MessageIdentity? { nil }

        func heard(_ head: KeyLogHead, from user: UserID) async {
            await withCheckedContinuation { continuation in
                let isHeld = state.withLock { state in
                    state.heard.append(head)
                    if state.isHeld { state.waiting.append(continuation) }
                    return state.isHeld
                }
                begin.yield(head)
                if !isHeld { continuation.resume() }
            }
        }

        func release() {
            let waiting = state.withLock { state in
                defer { (state.isHeld, state.waiting) = (false, []) }
                return state.waiting
            }
            for each in waiting { each.resume() }
        }
    }

    private static func heads(_ count: Int) throws -> [KeyLogHead] {
        let key = Ed25519.SigningKey.random()
        return try (1...count).map { number in
            let root = Digest256.of([UInt8(number)])
            return try KeyLogHead(size: UInt64(2 * number), root: root, mapRoot: root, time: 1, key: key)
        }
    }

    @Test("a head that many messages name is compared once at a time, other heads beside it, and finish waits for all")
    func once() async throws {
        let (people, comparisons, heads) = (People(), HeadComparisons(), try Self.heads(2))
        let user = try UserID("ann-id")
        for _ in 0..<5 { for head in heads { comparisons.start(head, from: user, people) } }
        var begun = people.begun.makeAsyncIterator()
        let first = [await begun.next(), await begun.next()].compactMap(\.self)
        #expect(Set(first) == Set(heads))
        let isOver = Mutex(false)
        let finish = Task {
            await comparisons.finish()
            isOver.withLock { $0 = true }
        }
        #expect(!isOver.withLock { $0 })
        people.release()
        await finish.value
        #expect(people.heard.count == 2)
        // The head may have become the older one meanwhile: it is compared again when it is named again.
        comparisons.start(heads[0], from: user, people)
        await comparisons.finish()
        #expect(people.heard.count == 3 && people.heard.last == heads[0])
    }

    @Test("without comparisons finish returns at once")
    func none() async { await HeadComparisons().finish() }
}
