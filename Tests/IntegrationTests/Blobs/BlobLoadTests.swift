import Synchronization
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport
import ThicketTreeShape

/// Uploads, downloads and large batches beside another tenant. Times are printed, not asserted.
@Suite("Load by blobs and batches", .blocking)
struct BlobLoadTests {
    private static let clock = ContinuousClock()

    /// A server that ends no connection of its own accord: beside other tests, the load may last longer than the time
    /// after which an idle connection or a slow upload is ended.
    private static func fixture() throws -> BlobFixture {
        try BlobFixture { config in
            (config.idleTimeout, config.requestTimeout) = (.seconds(900), .seconds(900))
            config.limits.blobTransfersPerUserMax = 32
        }
    }

    /// Whether each transfer was right; nil while they go on.
    private final class Results: Sendable {
        private let state = Mutex<[Bool]?>(nil)
        var all: [Bool]? { state.withLock { $0 } }
        func end(with results: [Bool]) { state.withLock { $0 = results } }

        /// Waits for the end: the load may have waited for other tests.
        var isOver: Bool { (0..<5).contains { _ in waitUntil { all != nil } } }
    }

    /// Most heartbeats of one measurement. Beside other tests the load may wait for minutes, and heartbeats without a
    /// pause would use a whole core.
    private static let pingsMax = 2_000

    /// Milliseconds of heartbeats, sorted.
    private static func pings(_ client: TestClient, from first: Int, until isOver: () -> Bool) throws -> [Double] {
        var times = [Double]()
        var number = first
        while times.count < 200 || (times.count < pingsMax && !isOver()) {
            let begin = clock.now
            let answer = try client.ask("h:\(number)")
            times.append((clock.now - begin) / .milliseconds(1))
            #expect(answer == "h:\(number + 1)")
            number += 2
        }
        return times.sorted()
    }

    private static func text(_ times: [Double]) -> String {
        func at(_ share: Double) -> Double { (times[Int(Double(times.count - 1) * share)] * 100).rounded() / 100 }
        return "p50 \(at(0.5)) ms, p99 \(at(0.99)) ms, longest \(at(1)) ms of \(times.count)"
    }

    @Test("batches of 1,000 changes leave another tenant's heartbeats answered, and their changes are sent")
    func batches() throws {
        let fixture = try Self.fixture()
        let bob = try fixture.socket("bob-token")
        let watcher = try fixture.socket()
        let idle = try Self.pings(bob, from: 0) { true }
        let bodies = try (0..<3).map { batch in
            let operations = try (0..<1_000).map { number in
                let node = batch * 1_000 + number + 1
                let record = try BlobText.record(node, blob: nil, length: 0)
                return try TreeOperation.put(NodeID(UInt128(node)), source: 0, NodeRecord(record, from: .device))
            }
            return JSONValue.object(TreeBatch(id: BatchID(UInt128(batch + 1)), operations).object).serialized()
        }
        let (results, server) = (Results(), fixture.server)
        Task.detached {
            results.end(
                with: try inParallel(1) { _ in
                    let http = try server.http()
                    return try bodies.allSatisfy { body in
                        try http.ask("POST", "tree/ann%40example.com/batch", bytes: body).status == 200
                    }
                })
        }
        let loaded = try Self.pings(bob, from: 100_000) { results.all != nil }
        print("heartbeats of another tenant: idle \(Self.text(idle)); beside 3 batches of 1,000 \(Self.text(loaded))")
        #expect(results.isOver)
        #expect(results.all == [true])
        #expect(try watcher.receive().hasPrefix("0:c:["))
    }

    @Test("8 uploads, 8 downloads and an upload that does not go on leave another tenant's heartbeats answered")
    func mixed() throws {
        let bytes = BlobText.bytes(4_000_000)
        let fixture = try Self.fixture()
        let blob = try #require(try fixture.peer().add(bytes).blob)
        let answer = try fixture.socket().ask(BlobText.change(1, blob: blob, length: bytes.count, ccid: "x1"))
        #expect(answer.contains(#""ev":1"#), "\(answer)")
        let bob = try fixture.socket("bob-token")
        let idle = try Self.pings(bob, from: 0) { true }
        let slow = try fixture.peer()
        try slow.send("POST", "", BlobText.hash(Hash.sha256(bytes)), length: bytes.count)
        try slow.send(raw: Array(bytes.prefix(1)))
        #expect(waitUntil { fixture.server.metrics.blobTransfers.value == 1 })
        let port = fixture.server.port
        let results = Results()
        Task.detached {
            results.end(
                with: try inParallel(16) { number in
                    let peer = try BlobPeer(port: port, token: "ann-token")
                    guard number % 2 == 0 else { return try peer.read(blob, 1).bytes == bytes }
                    return try peer.add(BlobText.bytes(4_000_000, seed: UInt64(number + 2))).status == 200
                })
        }
        let loaded = try Self.pings(bob, from: 100_000) { results.all != nil }
        print("heartbeats of another tenant: idle \(Self.text(idle)); beside 17 transfers \(Self.text(loaded))")
        #expect(results.isOver)
        #expect(results.all == Array(repeating: true, count: 16))
        #expect(fixture.server.metrics.blobTransfers.value == 1, "the slow upload is still open, and nothing else")
        slow.close(isReset: true)
    }
}
