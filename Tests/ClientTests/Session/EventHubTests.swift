import Testing

@testable import ThicketClient

@Suite("Event streams and their readers")
struct EventHubTests {
    @Test("an event without a reader, or after the last reader has gone, counts as undelivered")
    func undelivered() {
        var hub = EventHub(overrun: { -$0 })
        let isEnqueuedWithoutReader = hub.yield(1)
        #expect(!isEnqueuedWithoutReader)
        let (_, first) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(first)
        first.finish()
        let isEnqueuedAfterReader = hub.yield(2)
        #expect(!isEnqueuedAfterReader && hub.isEmpty)
    }

    @Test("a slow reader is told how many events it missed, and each missed event counts as undelivered")
    func slow() async {
        var hub = EventHub(overrun: { -$0 })
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(continuation)
        for number in 1...3 {
            let isEnqueued = hub.yield(number)
            #expect(isEnqueued == (number == 1))
        }
        #expect(hub.hasOverrun && !hub.canOffer)
        var iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        hub.reportMissed()
        #expect(await iterator.next() == -2)
    }

    @Test("an event that one of two readers has room for counts as delivered")
    func two() async {
        var hub = EventHub(overrun: { -$0 })
        let (slow, first) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        let (fast, second) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(8))
        hub.add(first)
        hub.add(second)
        for number in 1...3 {
            let isEnqueued = hub.yield(number)
            #expect(isEnqueued)
        }
        second.finish()
        let isEnqueuedForSlowReader = hub.yield(4)
        #expect(!isEnqueuedForSlowReader && !hub.isEmpty)
        var received = [Int]()
        for await number in fast { received.append(number) }
        #expect(received == [1, 2, 3])
        var iterator = slow.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        hub.reportMissed()
        #expect(await iterator.next() == -3)
    }

    @Test("an offer waits until the reader has room after its overrun notice, and is not counted as missed again")
    func offers() async {
        var hub = EventHub(overrun: { -$0 })
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(continuation)
        for number in 1...2 { hub.yield(number) }
        var isEnqueued = hub.offer(2)
        #expect(!isEnqueued, "it does not know yet that it missed something")
        var iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        hub.reportMissed()
        for _ in 0..<3 {
            isEnqueued = hub.offer(2)
            #expect(!isEnqueued, "the only place is taken by the word of what was missed")
        }
        #expect(!hub.hasOverrun && hub.canOffer)
        #expect(await iterator.next() == -1)
        isEnqueued = hub.offer(2)
        #expect(isEnqueued)
        #expect(await iterator.next() == 2)
        continuation.finish()
        isEnqueued = hub.offer(3)
        #expect(!isEnqueued && hub.isEmpty)
    }
}
