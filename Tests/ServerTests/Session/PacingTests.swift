import Testing
@testable import ThicketNet
import ThicketProtocol
@testable import ThicketScheduling

@testable import ThicketServer

/// Rates, bounds and backpressure; and the questions of an administrator to clients.
struct PacingTests {
    @Test("a sender above its rate is read more slowly, and refused only after another whole burst")
    func meter() {
        var meter = RateMeter(perSecond: 10, burst: 3)
        let second: Int64 = 1_000_000_000
        for _ in 0..<3 { #expect(meter.admit(at: 0) == .admit) }
        #expect(meter.admit(at: 0) == .slow(until: second / 10))
        #expect(meter.admit(at: 0) == .slow(until: second / 5))
        #expect(meter.admit(at: 0) == .slow(until: second / 10 * 3))
        #expect(meter.admit(at: 0) == .refuse)
        #expect(meter.admit(at: second / 10 * 4) == .admit)
        for _ in 0..<3 { #expect(meter.admit(at: 10 * second) == .admit) }
    }

    @Test("messages above the rate pause the connection until the rate allows them")
    func messageRate() throws {
        var limits = ServerLimits()
        limits.messagesPerSecond = 10
        limits.messagesBurst = 5
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.connect()
        for _ in 0..<6 { peer.send("h:1") }
        #expect(peer.take().count == 6, "messages that were already read are answered")
        #expect(harness.paused == [peer.id])
        harness.pass(seconds: 1)
        #expect(harness.paused.isEmpty)
        #expect(harness.metrics.limitHits.value(.messageRate) == 1)
    }

    @Test("a throttled user that reconnects is the same tenant and stays throttled; another user is not throttled")
    func comesBack() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        let tenant: TenantID = harness.hub.tenant(of: peer.id)
        harness.hub.throttle(peer.id, until: harness.now.monotonic + 2_000_000_000)
        harness.close(peer.id)
        let again: Peer = harness.client("c")
        let other: Peer = harness.client("d", token: "bob-token")
        #expect(harness.hub.tenant(of: again.id) == tenant && harness.hub.tenant(of: other.id) != tenant)
        #expect(harness.paused.contains(again.id) && !harness.paused.contains(other.id))
        harness.pass(seconds: 2.1)
        #expect(!harness.paused.contains(again.id))
        harness.close(again.id)
        #expect(!harness.paused.contains(harness.client("c").id), "the throttle is over")
    }

    @Test("the last 1,024 disconnected users are remembered; a user that comes and goes is remembered once")
    func left() throws {
        let harness = try HubHarness()
        func visit(_ user: Int) throws -> TenantID {
            try harness.grant("token-\(user)", user: "user\(user)@example.com")
            let peer: Peer = harness.client("c", token: "token-\(user)")
            defer { harness.close(peer.id) }
            return harness.hub.tenant(of: peer.id)
        }
        let first: TenantID = try visit(0)
        for _ in 0..<2_000 { #expect(try visit(1) == TenantID(first.rawValue + 1)) }
        #expect(try visit(0) == first)
        for user: Int in 2...RecentlyDisconnected.countMax + 1 { _ = try visit(user) }
        #expect(harness.hub.tenants.count == RecentlyDisconnected.countMax)
        #expect(harness.hub.tenantsByID.count == RecentlyDisconnected.countMax)
        #expect(try visit(0).rawValue > first.rawValue + 1_024)
    }

    @Test("changes far above the rate are refused with 503, other messages with a question mark")
    func changeRate() throws {
        var limits = ServerLimits()
        limits.changesPerSecond = 1
        limits.changesBurst = 1
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c")
        peer.send(edit("a", "x1", to: "1"), edit("b", "x2", to: "2"))
        #expect(peer.take().count == 2)
        #expect(harness.paused == [peer.id])
        #expect(
            peer.ask(edit("d", "x3", to: "3")) == [#"0:c:[{"clientid":"c","id":"d","error":503,"ccids":["x3"]}]"#])
        harness.pass(seconds: 3)
        #expect(harness.paused.isEmpty)
        #expect(peer.ask(edit("d", "x3", to: "3")).first?.contains("\"ev\":1") == true)

        limits.messagesPerSecond = 1
        limits.messagesBurst = 1
        let other = try HubHarness(limits: limits)
        let hasty: Peer = other.client("c")
        _ = hasty.ask("h:1")
        #expect(hasty.ask("0:cv:x") == ["0:?"])
        #expect(
            hasty.ask(edit("d", "x3", to: "3")) == [#"0:c:[{"clientid":"c","id":"d","error":503,"ccids":["x3"]}]"#])
    }

    @Test("an array of changes above the rate is refused by one message; on a channel without auth by a question mark")
    func arrayAboveRate() throws {
        var limits = ServerLimits()
        limits.messagesPerSecond = 1
        limits.messagesBurst = 1
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c")
        _ = peer.ask("h:1")
        let changes: [String] = [edit("a", "x1", to: "1"), edit("b", "x2", to: "2")].map { String($0.dropFirst(4)) }
        let answers: [String] = peer.ask("0:c:[\(changes.joined(separator: ","))]")
        #expect(answers.count == 1)
        #expect(answers.first?.countOf("\"error\":503") == 2)
        #expect(peer.ask("1:c:[\(changes.joined(separator: ","))]") == ["1:?"])
    }

    @Test("while too many changes are queued, their senders are not read; above the bound they are refused with 503")
    func changeQueue() throws {
        var limits = ServerLimits()
        limits.changesQueuedMax = 4
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c")
        harness.holdsCommits = true
        for number: Int in 0..<2 { peer.send(edit("k\(number)", "x\(number)", to: "v")) }
        #expect(harness.paused == [peer.id])
        #expect(harness.metrics.limitHits.value(.queueHighWater) == 1)
        for number: Int in 2..<4 { peer.send(edit("k\(number)", "x\(number)", to: "v")) }
        #expect(peer.take().isEmpty)
        #expect(peer.ask(edit("k", "x", to: "v")).first?.contains("\"error\":503") == true)
        harness.commit()
        #expect(harness.paused.isEmpty)
        #expect(peer.take().count == 1)
        #expect(harness.hub.changeCount == 0)
        #expect(harness.metrics.limitHits.value(.queueHighWater) == 1, "one pause is counted once")
        #expect(harness.metrics.limitHits.value(.queue) == 1)
    }

    @Test("a connection with too many open reads is not read further, and closed with 1013 at four times that number")
    func readBound() throws {
        var limits = ServerLimits()
        limits.readsPerConnectionMax = 4
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c")
        peer.send(edit("k", "x", to: "v"))
        _ = peer.take()
        harness.holdsReads = true
        for _ in 0..<4 { peer.send("0:e:k.1") }
        #expect(harness.paused == [peer.id])
        #expect(harness.metrics.limitHits.value(.connectionReads) == 1)
        for _ in 0..<3 { harness.answerRead() }
        #expect(harness.paused.isEmpty)
        #expect(peer.take().count == 3)
        for _ in 0..<20 { peer.send("0:e:k.1") }
        #expect(harness.closed[peer.id] == .tryAgainLater)
        while !harness.reads.isEmpty { harness.answerRead() }
        #expect(peer.take().isEmpty, "nothing follows a close")
        #expect(harness.hub.readCount == 0)
    }

    @Test("a client that asks for 300 objects at once is served a few at a time, all of them, in order")
    func manyEntities() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        peer.send(edit("k", "x", to: "v"))
        _ = peer.take()
        harness.holdsReads = true
        for version: Int in 1...300 { peer.send("0:e:k.\(version)") }
        #expect(harness.reads.count == Session.readsAtWorkMax)
        #expect(harness.hub.readCount == 300)
        while !harness.reads.isEmpty {
            #expect(harness.reads.count <= Session.readsAtWorkMax)
            harness.answerRead()
        }
        #expect(peer.take().map { String($0.prefix { $0 != "\n" }) } == (1...300).map { "0:e:k.\($0)" })
        #expect(harness.hub.readCount == 0)
        for _ in 0..<50 { peer.send("0:e:k.1") }
        peer.close()
        #expect(harness.hub.readCount == Session.readsAtWorkMax)
        while !harness.reads.isEmpty { harness.answerRead() }
        #expect(harness.hub.readCount == 0)
    }

    @Test("the bytes that are kept for a client that has shown no token yet are bounded")
    func queuedBytes() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        harness.holdsReads = true
        peer.send(#"0:init:{"api":"1.1","clientid":"c","token":"ann-token","app_id":"app","name":"notes"}"#)
        let large: String = edit("k", "x", to: String(repeating: "v", count: 600_000))
        #expect(peer.ask(large).isEmpty)
        #expect(peer.ask(large) == ["0:?"])
    }

    @Test("readers behind by more than the bound pause every client that asks for a read")
    func allReads() throws {
        var limits = ServerLimits()
        limits.readsQueuedMax = 3
        let harness = try HubHarness(limits: limits)
        let peers: [Peer] = (0..<3).map { harness.client("c\($0)") }
        peers[0].send(edit("k", "x", to: "v"))
        harness.holdsReads = true
        for peer in peers { peer.send("0:e:k.1") }
        #expect(harness.paused == [peers[2].id])
        #expect(harness.metrics.limitHits.value(.queuedReads) == 1)
        while !harness.reads.isEmpty { harness.answerRead() }
        #expect(harness.paused.isEmpty)
    }

    @Test("the memory for tails is bounded over all buckets")
    func tailTotal() throws {
        var limits = ServerLimits()
        limits.tailBytesTotalMax = 400
        let harness = try HubHarness(limits: limits)
        let peers: [Peer] = ["a", "b", "c"].map { harness.client("c", bucket: $0) }
        for number: Int in 0..<20 { peers[number % 3].send(edit("k\(number)", "x\(number)", to: "v")) }
        #expect(harness.hub.tailBytes <= 400)
        #expect(harness.hub.tailBytes == harness.hub.feeds.values.reduce(0) { $0 + $1.tailBytes })
        _ = peers[0].take()
        let answer: [String] = peers[0].ask("0:cv:\(try harness.cv(0, bucket: "a"))")
        #expect(answer.first?.countOf("\"ccids\"") == 7)
    }

    @Test("when the server stops, every connection is closed with 1001")
    func stop() throws {
        let harness = try HubHarness()
        let peers: [Peer] = [harness.client("a"), harness.connect()]
        harness.hub.closeAll()
        _ = peers[0].ask("h:1")
        #expect(peers.allSatisfy { harness.closed[$0.id] == .goingAway })
        #expect(peers[0].take().isEmpty)
    }

    @Test("a slot that is used again is another connection")
    func slots() throws {
        let harness = try HubHarness()
        let old = ConnectionID(slot: 9, serial: 1)
        let new = ConnectionID(slot: 9, serial: 2)
        harness.hub.opened(old, app: "app")
        harness.close(old)
        harness.hub.opened(new, app: "app")
        harness.receive(old, "h:1")
        harness.receive(new, "h:1")
        #expect(harness.take(old).isEmpty)
        #expect(harness.take(new) == ["h:2"])
    }

    // MARK: Asking clients

    private func question(_ kind: RemoteQuestion.Kind, bucket: String = "notes") throws -> RemoteQuestion {
        RemoteQuestion(
            bucket: BucketID(
                app: try AppID("app"), user: try UserID("ann@example.com"), name: try BucketName(bucket)),
            kind: kind, seconds: 5)
    }

    @Test("an index question goes to every channel on the bucket, and answers go to the asker")
    func askIndex() throws {
        let harness = try HubHarness()
        let first: Peer = harness.client("one")
        let second: Peer = harness.client("two")
        let other: Peer = harness.client("three", bucket: "tags")
        harness.ask(try question(.index))
        #expect(first.take() == ["0:index"])
        #expect(second.take() == ["0:index"])
        #expect(other.take().isEmpty)
        #expect(harness.takeReports() == [.asked(2)])
        first.send(#"0:index:{"current":"c","index":[{"id":"k","v":1}],"pendings":[]}"#)
        other.send(#"0:index:{"current":"c","index":[]}"#)
        let reported: [RemoteReply] = harness.takeReports()
        guard case .answer(let client, let json)? = reported.first, reported.count == 1 else {
            Issue.record("no answer: \(reported)")
            return
        }
        #expect(client == "one")
        #expect(String(decoding: json, as: UTF8.self).contains(#""index":[{"id":"k","v":1}]"#))
        harness.pass(seconds: 6)
        #expect(harness.takeReports() == [.ended])
        second.send(#"0:index:{"current":"c","index":[]}"#)
        #expect(harness.takeReports().isEmpty)
    }

    @Test("a log question goes once to each connection, without a channel")
    func askLog() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("one")
        _ = peer.ask(#"1:init:{"api":"1.1","clientid":"one","token":"ann-token","app_id":"app","name":"notes"}"#)
        harness.ask(try question(.log(2)))
        #expect(peer.take() == ["log:2"])
        #expect(harness.takeReports() == [.asked(1)])
        peer.send(#"log:{"log":"hello"}"#, #"log:{"log":"again"}"#)
        #expect(
            harness.takeReports() == [
                .answer(client: "one", json: Array(#"{"log":"hello"}"#.utf8)),
                .answer(client: "one", json: Array(#"{"log":"again"}"#.utf8)),
            ])
        harness.hub.cancelAsk(1)
        peer.send(#"log:{"log":"late"}"#)
        #expect(harness.takeReports().isEmpty)
    }

    @Test("a question about a bucket without open channels ends at once")
    func askNobody() throws {
        let harness = try HubHarness()
        harness.ask(try question(.index))
        #expect(harness.takeReports() == [.asked(0), .ended])
    }
}
