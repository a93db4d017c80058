import Testing

@testable import ThicketClient

@Suite("Streams of events and who reads them")
struct EventHubTests {
    @Test("what nobody has got is known to be unheard: without a reader, and when the last one has gone")
    func unheard() {
        var hub: EventHub<Int> = EventHub(overrun: { -$0 })
        let isHeardByNobody: Bool = hub.yield(1)
        #expect(!isHeardByNobody)
        let (_, first) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(first)
        first.finish()
        let isHeardByTheGone: Bool = hub.yield(2)
        #expect(!isHeardByTheGone && hub.isEmpty)
    }

    @Test("a reader that is too slow is told how much it missed: nothing of that waits for another")
    func slow() async {
        var hub: EventHub<Int> = EventHub(overrun: { -$0 })
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingOldest(1))
        hub.add(continuation)
        for number: Int in 1...3 {
            let isHeard: Bool = hub.yield(number)
            #expect(isHeard)
        }
        #expect(hub.hasOverrun)
        var iterator: AsyncStream<Int>.Iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        hub.settle()
        #expect(await iterator.next() == -2)
    }
}
