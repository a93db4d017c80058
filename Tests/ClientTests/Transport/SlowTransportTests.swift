import Glibc
import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

@testable import ThicketClient

/// The real transport and the real machine over a link that passes a few bytes a tick. The machine's clock is stepped:
/// a tick of the link is a time in which heartbeats are due and none can be answered.
@Suite("A slow link, through real sockets", .timeLimit(.minutes(15)))
struct SlowTransportTests {
    @Test("a first sync of minutes shows its progress and is never cut for lack of a heartbeat's answer")
    func firstSync() throws {
        let server = try TestServer(store: MemoryStore.forTests())
        defer { server.abort() }
        let writer = try server.client("w")
        let text = String(repeating: "0123456789", count: 10)
        for number in 0..<3_500 {
            try writer.send(
                #"0:c:{"id":"k\#(number)","o":"M","ccid":"x\#(number)","v":{"t":{"o":"+","v":"\#(text)"}}}"#
            )
        }
        while try !writer.receive().contains(#""x3499""#) {}

        let relay = try SlowRelay(to: server.port)
        defer { relay.stop() }
        let client = try SteppedClient(relay, seed: 1)
        let bucket = try BucketName("notes")
        try client.open(bucket)
        // A page of 1,000 objects is more than 100 KB: heartbeats fall due inside it many times over.
        try client.play(up: 4_000, down: 4_000) { $0.isSynced(bucket) }
        #expect(client.hangUps == 0 && relay.connectionCount == 1)
        #expect(client.clock > 100_000, "the link was not slow: \(client.clock) ms")
        let progress: [Int64] = client.statuses.compactMap { (status: SyncStatus) in
            guard case .indexing(let done, 3_500) = status else { return nil }
            return done
        }
        #expect(
            progress.count >= 3 && progress == progress.sorted() && progress.last ?? 0 >= 3_000,
            "\(client.statuses)")
        #expect(
            try client.machine.object(bucket, EntityKey("k7"))?["t"]?.stringValue?.utf8.count == text.utf8.count)
        client.close()
    }

    @Test("a large edit that takes minutes to send is not cut either")
    func largeEdit() throws {
        let server = try TestServer(store: MemoryStore.forTests())
        defer { server.abort() }
        let relay = try SlowRelay(to: server.port)
        defer { relay.stop() }
        let client = try SteppedClient(relay, seed: 2)
        let bucket = try BucketName("notes")
        try client.open(bucket)
        try client.play(up: 4_000, down: 4_000) { $0.isSynced(bucket) }
        let text = String(repeating: "0123456789", count: 90_000)
        let start = client.clock
        try client.set(bucket, "large", text)
        try client.play(up: 4_000, down: 4_000) { $0.isSynced(bucket) }
        #expect(client.hangUps == 0 && relay.connectionCount == 1)
        #expect(client.clock - start > 100_000, "the link was not slow: \(client.clock - start) ms")
        client.close()
    }
}
