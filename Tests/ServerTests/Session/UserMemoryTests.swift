import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// The memory that waiting changes of one user may use, on however many connections they come.
struct UserMemoryTests {
    private static let text = String(repeating: "x", count: Hub.largeFrom)
    /// Roughly what one change of `text` counts: room for one, not for two.
    private static let room: Int = Hub.largeFrom + 1

    private func harness(changeBytesPerUserMax: Int = Self.room) throws -> HubHarness {
        var limits = ServerLimits()
        limits.changeBytesPerUserMax = changeBytesPerUserMax
        return try HubHarness(limits: limits)
    }

    private func hello(_ name: String) -> String {
        "0:init:{\"clientid\":\"\(name)\",\"api\":\"1.1\",\"token\":\"ann-token\",\"app_id\":\"app\",\"name\":\"notes\"}"
    }

    @Test("when a user's changes use all their memory, none of its connections is read until they use half")
    func allWait() throws {
        let harness: HubHarness = try harness()
        let (first, second): (Peer, Peer) = (harness.client("a"), harness.client("b"))
        let bob: Peer = harness.client("c", token: "bob-token")
        harness.holdsCommits = true
        first.send(edit("k", "1", to: Self.text))
        #expect(harness.paused == [first.id, second.id])
        #expect(harness.metrics.limitHits.value(.userChanges) == 2)
        bob.send(edit("k", "2", to: "x"))
        #expect(harness.requests.count == 2, "another user is read")
        harness.commit()
        #expect(harness.paused.isEmpty)
        harness.holdsCommits = false
        #expect(second.ask(edit("l", "3", to: "x")).contains { $0.contains("\"3\"") })
    }

    @Test("a connection that shows the token of such a user is not read either")
    func newConnection() throws {
        let harness: HubHarness = try harness()
        let first: Peer = harness.client("a")
        harness.holdsCommits = true
        first.send(edit("k", "1", to: Self.text))
        let second: Peer = harness.client("b")
        #expect(harness.paused == [first.id, second.id])
        harness.commit()
        #expect(harness.paused.isEmpty)
    }

    @Test("connections that open and close while their user waits leave nothing behind")
    func comeAndGo() throws {
        let harness: HubHarness = try harness()
        let first: Peer = harness.client("a")
        harness.holdsCommits = true
        first.send(edit("k", "1", to: Self.text))
        for _ in 0..<20 { harness.client("b").close() }
        let tenant: Tenant = try #require(harness.hub.tenants.values.first)
        #expect(tenant.held == [first.id])
        #expect(tenant.sessions == [first.id])
        harness.commit()
        #expect(tenant.held.isEmpty)
    }

    @Test("a change that a reader parses counts as waiting, also when its connection ends")
    func beingRead() throws {
        let harness: HubHarness = try harness()
        let (first, second): (Peer, Peer) = (harness.client("a"), harness.client("b"))
        harness.holdsReads = true
        first.send(edit("k", "1", to: Self.text))
        #expect(harness.paused == [first.id, second.id])
        first.close()
        #expect(harness.paused.contains(second.id))
        harness.answerRead()
        #expect(!harness.paused.contains(second.id))
        #expect(harness.hub.bytesBeingRead == 0)
        // Nothing of the user remains.
        second.close()
        #expect(harness.hub.tenants.values.contains { $0.name.user.text == "ann@example.com" && $0.isIdle })
    }

    @Test("changes of new connections are accepted up to twice the bound; then small ones are answered 503")
    func overfullSmall() throws {
        let harness: HubHarness = try harness(changeBytesPerUserMax: Self.room / 2)
        let first: Peer = harness.client("a")
        harness.holdsCommits = true
        first.send(edit("k", "1", to: Self.text))
        let second: Peer = harness.connect()
        harness.holdsReads = true
        second.send(hello("b"), edit("l", "2", to: "x"))
        harness.holdsReads = false
        harness.settle()
        #expect(second.take().last == #"0:c:[{"clientid":"b","id":"l","error":503,"ccids":["2"]}]"#)
        #expect(harness.requests.count == 1)
        harness.commit()
        harness.holdsCommits = false
        #expect(second.ask(edit("l", "3", to: "x")).contains { $0.contains("\"3\"") })
    }

    @Test("a further large change closes its connection with 1013: to refuse it alone would mean to parse it")
    func overfullLarge() throws {
        let harness: HubHarness = try harness(changeBytesPerUserMax: Self.room / 2)
        let first: Peer = harness.client("a")
        harness.holdsCommits = true
        first.send(edit("k", "1", to: Self.text))
        let second: Peer = harness.connect()
        harness.holdsReads = true
        second.send(hello("b"), edit("l", "2", to: Self.text))
        let hits: Int = harness.metrics.limitHits.value(.userChanges)
        harness.holdsReads = false
        harness.settle()
        #expect(harness.closed[second.id] == .tryAgainLater)
        #expect(harness.metrics.limitHits.value(.userChanges) > hits)
        #expect(harness.requests.count == 1)
        harness.holdsCommits = false
        harness.commit()
        #expect(harness.client("d").ask(edit("m", "4", to: "x")).contains { $0.contains("\"4\"") })
    }

    @Test(
        "a change of many small members counts its size in memory, not its text alone", arguments: [100, 20_000])
    func members(count: Int) throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("a")
        harness.holdsCommits = true
        let list = String(repeating: "1,", count: count) + "1"
        let message: String =
            "0:c:{\"id\":\"k\",\"o\":\"M\",\"ccid\":\"1\",\"v\":{\"t\":{\"o\":\"+\",\"v\":[\(list)]}}}"
        peer.send(message)
        guard case .change(let submitted)? = harness.requests.first else {
            Issue.record("the change was not submitted")
            return
        }
        // One word for each element.
        #expect(submitted.reservation.bytes >= message.utf8.count + 8 * count)
        #expect(submitted.reservation.bytes < message.utf8.count + 8 * (count + 64))
        harness.commit()
        #expect(peer.take().contains { $0.contains("\"ccids\":[\"1\"]") })
    }

    @Test("several changes of one message share its size in memory")
    func array() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("a")
        harness.holdsCommits = true
        let changes: [String] = (0..<10).map { String(edit("k\($0)", "\($0)", to: "x").dropFirst(4)) }
        let message: String = "0:c:[\(changes.joined(separator: ","))]"
        peer.send(message)
        var bytes = 0
        for case .change(let submitted) in harness.requests { bytes += submitted.reservation.bytes }
        #expect(harness.requests.count == 10)
        #expect((message.utf8.count..<message.utf8.count * 5).contains(bytes))
        harness.commit()
    }
}
