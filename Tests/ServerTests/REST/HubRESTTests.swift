import Testing
@testable import ThicketNet
import ThicketProtocol

@testable import ThicketServer

/// Requests of the data API in the hub, with readers and shard held back where it matters.
@Suite("REST requests in the hub")
struct HubRESTTests {
    private static func id(_ number: UInt32 = 1) -> ConnectionID {
        ConnectionID(slot: 1_000 + Int32(number), serial: number)
    }

    private static func call(
        _ operation: RESTCall.Operation, token: String = "ann-token", device: String? = nil
    ) throws -> RESTCall {
        RESTCall(
            app: try AppID("app"), bucket: try BucketName("notes"), token: token, user: nil, deviceID: device,
            clientID: try ClientID("web"), operation: operation, bytes: 10)
    }

    private static func edit(_ key: String, _ ccid: String, _ json: String) throws -> RESTCall.Operation {
        let body: JSONNode = try JSONDocument(parsing: Array(json.utf8)).root
        return .write(
            ChangeRequest(key: key, ccid: ccid, operation: .modify, object: .node(body)),
            ChangeTerms(mergesObject: true, needsSource: true), wantsObject: false)
    }

    @Test("an acknowledgement waits for the commit, and an unpublished change is not readable")
    func order() throws {
        let harness = try HubHarness()
        let socket: Peer = harness.client("s")
        socket.send("0:cv:\(try harness.cv(0))")
        _ = socket.take()
        harness.holdsCommits = true
        harness.call(Self.id(), try Self.call(try Self.edit("a", "c1", #"{"n":1}"#)))
        #expect(harness.answers(Self.id()).isEmpty, "nothing is acknowledged before the commit")
        let group = harness.decide()
        // It is on disk now and not published yet.
        harness.call(Self.id(2), try Self.call(.object(try EntityKey("a"), nil, ReadTerms())))
        #expect(harness.answers(Self.id(2)).map(\.status) == [404])
        harness.publish(group)
        #expect(harness.answers(Self.id()).map(\.status) == [200])
        #expect(socket.take().count == 1)
        harness.holdsCommits = false
        harness.call(Self.id(3), try Self.call(.object(try EntityKey("a"), nil, ReadTerms())))
        #expect(harness.answers(Self.id(3)).map(\.status) == [200])
    }

    @Test("while a committed change is not published, a reader gets the version before it")
    func versionBefore() throws {
        let harness = try HubHarness()
        let socket: Peer = harness.client("s")
        harness.call(Self.id(), try Self.call(try Self.edit("a", "c1", #"{"n":1}"#)))
        harness.holdsCommits = true
        socket.send("0:c:{\"id\":\"a\",\"o\":\"-\",\"ccid\":\"c2\"}")
        let group = harness.decide()
        harness.call(Self.id(2), try Self.call(.object(try EntityKey("a"), nil, ReadTerms())))
        let answer: HTTPResponse? = harness.answers(Self.id(2)).first
        #expect(answer?.status == 200 && answer?.fields["x-simperium-version"] == "1")
        harness.publish(group)
        harness.call(Self.id(3), try Self.call(.object(try EntityKey("a"), nil, ReadTerms())))
        #expect(harness.answers(Self.id(3)).map(\.status) == [404])
    }

    @Test("a store failure is answered with 503, and the next request is served")
    func failures() throws {
        let harness = try HubHarness()
        harness.call(Self.id(), try Self.call(try Self.edit("a", "c1", "{}")))
        #expect(harness.answers(Self.id()).map(\.status) == [200])
        // The token, the bucket, the object.
        for good: Int in 0..<3 {
            harness.holdsReads = true
            harness.call(Self.id(), try Self.call(.object(try EntityKey("a"), nil, ReadTerms())))
            for _ in 0..<good { harness.answerRead() }
            harness.failRead()
            #expect(harness.answers(Self.id()).map(\.status) == [503], "after \(good) good reads")
            harness.holdsReads = false
        }
        harness.call(Self.id(), try Self.call(.user))
        #expect(harness.answers(Self.id()).map(\.status) == [200])
    }

    @Test("a late answer to an ended request is not used for the next request on the same connection")
    func stale() throws {
        let harness = try HubHarness()
        harness.holdsReads = true
        harness.call(Self.id(), try Self.call(.user))
        harness.close(Self.id())
        harness.call(Self.id(), try Self.call(.user, token: "bob-token"))
        #expect(harness.reads.count == 2)
        harness.answerRead()
        #expect(harness.answers(Self.id()).isEmpty)
        harness.answerRead()
        let body: [UInt8] = harness.answers(Self.id()).first?.body ?? []
        #expect(String(decoding: body, as: UTF8.self).contains("bob@example.com"))
        #expect(harness.hub.readCount == 0 && harness.hub.connectionCount == 0 && harness.hub.calls == 0)
    }

    @Test("a long poll ends with its time, with its client and with the server, and leaves no state behind")
    func polls() throws {
        var limits = ServerLimits()
        limits.changesWait = .seconds(30)
        let harness = try HubHarness(limits: limits)
        harness.call(Self.id(), try Self.call(.changes(since: nil)))
        #expect(harness.hub.waitingCount == 1 && harness.hub.tickMilliseconds == 1_000)
        harness.pass(seconds: 29)
        #expect(harness.answers(Self.id()).isEmpty)
        harness.pass(seconds: 2)
        #expect(harness.answers(Self.id()).map(\.body) == [Array("[]".utf8)])
        harness.call(Self.id(), try Self.call(.changes(since: nil)))
        harness.close(Self.id())
        #expect(harness.hub.waitingCount == 0 && harness.hub.calls == 0 && harness.hub.feeds.isEmpty)
        harness.call(Self.id(), try Self.call(.changes(since: nil)))
        harness.hub.endWaiting()
        harness.settle()
        #expect(harness.answers(Self.id()).map(\.status) == [200])
        #expect(
            harness.hub.waitingCount == 0 && harness.hub.tenants.values.allSatisfy(\.isIdle)
                && harness.hub.tickMilliseconds == nil)
    }

    @Test("a user with too many changes in progress gets 503, and other users are served")
    func crowd() throws {
        var limits = ServerLimits()
        limits.changesPerUserMax = 1
        let harness = try HubHarness(limits: limits)
        harness.holdsCommits = true
        harness.call(Self.id(), try Self.call(try Self.edit("a", "c1", "{}")))
        let (second, third): (ConnectionID, ConnectionID) = (Self.id(2), Self.id(3))
        harness.call(second, try Self.call(try Self.edit("b", "c2", "{}")))
        #expect(harness.answers(second).map(\.status) == [503])
        #expect(harness.metrics.limitHits.value(.userChanges) > 0)
        harness.call(third, try Self.call(try Self.edit("b", "c2", "{}"), token: "bob-token"))
        harness.holdsCommits = false
        harness.commit()
        #expect(harness.answers(Self.id()).map(\.status) == [200] && harness.answers(third).map(\.status) == [200])
    }

    @Test("too many failed tokens of a partner's app give 429 with the seconds to wait, not a server error")
    func attempts() throws {
        let harness = try HubHarness()
        harness.hub.knowsPartners = true
        let token: String = "h.p." + String(repeating: "s", count: 86)
        harness.call(Self.id(), try Self.call(.user, token: token, device: "d"))
        harness.admit(.tooMany(seconds: 41))
        let answer: HTTPResponse? = harness.answers(Self.id()).first
        #expect(answer?.status == 429 && answer?.fields["retry-after"] == "41")
        #expect(harness.metrics.limitHits.value(.attempts) == 1)
    }

    @Test("a user with too many buckets gets 403 for another bucket")
    func buckets() throws {
        var limits = ServerLimits()
        limits.bucketsPerUserMax = 1
        let harness = try HubHarness(limits: limits)
        harness.call(Self.id(), try Self.call(try Self.edit("a", "c1", "{}")))
        #expect(harness.answers(Self.id()).map(\.status) == [200])
        let other = RESTCall(
            app: try AppID("app"), bucket: try BucketName("other"), token: "ann-token", user: nil, deviceID: nil,
            clientID: try ClientID("web"), operation: try Self.edit("a", "c2", "{}"), bytes: 2)
        harness.call(Self.id(), other)
        #expect(harness.answers(Self.id()).map(\.status) == [403])
    }
}

extension HubHarness {
    func call(_ id: ConnectionID, _ call: RESTCall) {
        hub.call(id, call, now: now)
        settle()
    }

    /// The answers that a connection got since the last call.
    func answers(_ id: ConnectionID) -> [HTTPResponse] { responses.removeValue(forKey: id) ?? [] }
}
