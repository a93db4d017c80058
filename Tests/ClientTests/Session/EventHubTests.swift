import Testing

@testable import ThicketClient

@Suite("Streams of events and who reads them")
struct EventHubTests {
    @Test("what nobody has got is known to be unheard: without a reader, and when the last one has gone")
    func undelivered() {
        var hub: EventHub<Int> = EventHub(overrun: { -$0 })
        let isHeardByNobody: Bool = hub.yield(1)
        #expect(!isHeardByNobody)
        let (_, first) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(first)
        first.finish()
        let isHeardByTheGone: Bool = hub.yield(2)
        #expect(!isHeardByTheGone && hub.isEmpty)
    }

    @Test("a reader that is too slow is told how much it missed, and what it missed counts as unheard")
    func slow() async {
        var hub: EventHub<Int> = EventHub(overrun: { -$0 })
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(continuation)
        for number: Int in 1...3 {
            let isHeard: Bool = hub.yield(number)
            #expect(isHeard == (number == 1))
        }
        #expect(hub.hasOverrun && !hub.canOffer)
        var iterator: AsyncStream<Int>.Iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        hub.reportMissed()
        #expect(await iterator.next() == -2)
    }

    @Test("of two readers the one with room is enough")
    func two() async {
        var hub: EventHub<Int> = EventHub(overrun: { -$0 })
        let (slow, first) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        let (fast, second) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(8))
        hub.add(first)
        hub.add(second)
        for number: Int in 1...3 {
            let isHeard: Bool = hub.yield(number)
            #expect(isHeard)
        }
        second.finish()
        let isHeardByTheSlow: Bool = hub.yield(4)
        #expect(!isHeardByTheSlow && !hub.isEmpty)
        var heard: [Int] = []
        for await number: Int in fast { heard.append(number) }
        #expect(heard == [1, 2, 3])
        var iterator: AsyncStream<Int>.Iterator = slow.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        hub.reportMissed()
        #expect(await iterator.next() == -3)
    }

    @Test("what waits for room is offered behind what was missed, as often as it takes, and is not missed again")
    func offers() async {
        var hub: EventHub<Int> = EventHub(overrun: { -$0 })
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(continuation)
        for number: Int in 1...2 { hub.yield(number) }
        var isTaken: Bool = hub.offer(2)
        #expect(!isTaken, "it does not know yet that it missed something")
        var iterator: AsyncStream<Int>.Iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        hub.reportMissed()
        for _ in 0..<3 {
            isTaken = hub.offer(2)
            #expect(!isTaken, "the only place is taken by the word of what was missed")
        }
        #expect(!hub.hasOverrun && hub.canOffer)
        #expect(await iterator.next() == -1)
        isTaken = hub.offer(2)
        #expect(isTaken)
        #expect(await iterator.next() == 2)
        continuation.finish()
        isTaken = hub.offer(3)
        #expect(!isTaken && hub.isEmpty)
    }
}
