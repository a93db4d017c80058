import Testing
import ThicketProtocol

@testable import ThicketServer

/// `init` and `auth` (wire contract, section 4).
struct InitTests {
    private static let fields: String = #""clientid":"c1","token":"ann-token","app_id":"app","name":"notes""#
    private static let invalid: String = #"0:auth:{"msg":"Token invalid","code":401}"#

    @Test("a valid token is answered by the user's name and nothing else")
    func good() throws {
        let peer: Peer = try HubHarness().connect()
        #expect(peer.ask(#"0:init:{"api":"1.1",\#(Self.fields)}"#) == ["0:auth:ann@example.com"])
    }

    @Test(
        "an api of 1.1 or more in any spelling is the new API",
        arguments: [#""1.1""#, "1.1", "1.1000000238", "1.2", "2", #""1.10""#])
    func newAPI(api: String) throws {
        let peer: Peer = try HubHarness().connect()
        let request: String = #"0:init:{"api":\#(api),"clientid":"c","token":"no","app_id":"app","name":"notes"}"#
        #expect(peer.ask(request) == [Self.invalid])
    }

    @Test(
        "clients without api or below 1.1 get 'expired' first",
        arguments: ["", #""api":1,"#, #""api":"1","#, #""api":"x","#, #""api":null,"#])
    func oldAPI(api: String) throws {
        let peer: Peer = try HubHarness().connect()
        let request: String = #"0:init:{\#(api)"clientid":"c","token":"no","app_id":"app","name":"notes"}"#
        #expect(peer.ask(request) == ["0:auth:expired", Self.invalid])
    }

    @Test("the fault decides the code of a refused init")
    func codes() throws {
        let harness = try HubHarness()
        try harness.grant("other-token", app: "other", user: "ann@example.com")
        let peer: Peer = harness.connect()
        let table: [(fields: String, code: Int)] = [
            (#""clientid":"c","app_id":"app","name":"notes""#, 400),
            (#""clientid":"c","token":"","app_id":"app","name":"notes""#, 400),
            (#""clientid":"c","token":"a b","app_id":"app","name":"notes""#, 400),
            (#""clientid":"c","token":"\#(String(repeating: "x", count: 1_025))","app_id":"app","name":"notes""#, 400),
            (#""clientid":"c","token":"unknown","app_id":"app","name":"notes""#, 401),
            (#""clientid":"c","token":"other-token","app_id":"app","name":"notes""#, 401),
            (#""clientid":"c","token":"ann-token","app_id":"other","name":"notes""#, 500),
            (#""clientid":"c","token":"ann-token","name":"notes""#, 500),
            (#""clientid":"c","token":"ann-token","app_id":"app""#, 500),
            (#""clientid":"c","token":"ann-token","app_id":"app","name":"a b""#, 500),
            (#""clientid":"c","token":"ann-token","app_id":"app","name":"\#(String(repeating: "b", count: 65))""#, 500),
            (#""token":"ann-token","app_id":"app","name":"notes""#, 500),
        ]
        for (fields, code) in table {
            let answer: [String] = peer.ask(#"0:init:{"api":"1.1",\#(fields)}"#)
            #expect(answer.count == 1 && answer[0].hasSuffix(",\"code\":\(code)}"), "\(fields): \(answer)")
        }
        #expect(
            peer.ask("0:init:no json") == [
                "0:auth:expired", #"0:auth:{"msg":"Token malformed","code":400}"#,
            ])
        #expect(peer.ask(#"0:init:{"api":"1.1",\#(Self.fields)}"#) == ["0:auth:ann@example.com"])
    }

    @Test(
        "a refused init reports what is wrong with the name of app, bucket or client, and which character it is",
        arguments: [
            (#""clientid":"c","name":"notes""#, "App id invalid: it is missing"),
            (
                #""clientid":"c","app_id":"a b","name":"notes""#,
                "App id invalid: it holds a blank (character 2), which is not admitted"
            ),
            (
                #""clientid":"c","app_id":"other","name":"notes""#,
                "App id invalid: it is not the app of the connection's path"
            ),
            (#""clientid":"c","app_id":"app""#, "Bucket name invalid: it is missing"),
            (#""clientid":"c","app_id":"app","name":"""#, "Bucket name invalid: it is empty"),
            (
                #""clientid":"c","app_id":"app","name":"ab/c""#,
                "Bucket name invalid: it holds '/' (character 3), which is not admitted"
            ),
            (
                #""clientid":"c","app_id":"app","name":"\#(String(repeating: "b", count: 65))""#,
                "Bucket name invalid: it is 65 bytes long, the maximum is 64"
            ),
            (#""app_id":"app","name":"notes""#, "Client id invalid: it is missing"),
            (
                #""clientid":"c\u001b[2J","app_id":"app","name":"notes""#,
                "Client id invalid: it holds U+001B (character 2), which is not admitted"
            ),
        ])
    func reasons(fields: String, message: String) throws {
        let peer: Peer = try HubHarness().connect()
        #expect(
            peer.ask(#"0:init:{"api":"1.1","token":"ann-token",\#(fields)}"#) == [
                #"0:auth:{"msg":"\#(message)","code":500}"#
            ])
    }

    @Test("the app's name is case-insensitive, and client_id is accepted for clientid")
    func lenient() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect(app: "APP")
        let request: String = #"0:init:{"api":1.1,"client_id":"c","token":"ann-token","app_id":"App","name":"notes"}"#
        #expect(peer.ask(request) == ["0:auth:ann@example.com"])
    }

    @Test(
        "a user name that a client would misread is prefixed with user:",
        arguments: ["12345", "true", "null", #""x""#, #"{"a":1}"#, "{x", "[1]", "expired", "1e5", "-1"])
    func misleadingNames(name: String) throws {
        let harness = try HubHarness()
        try harness.grant("odd", user: name)
        let peer: Peer = harness.connect()
        let request: String = #"0:init:{"api":"1.1","clientid":"c","token":"odd","app_id":"app","name":"notes"}"#
        #expect(peer.ask(request) == ["0:auth:user:\(name)"])
    }

    @Test("a refused channel does not affect the other channels")
    func independence() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c1")
        #expect(
            peer.ask(#"1:init:{"api":"1.1","clientid":"c","token":"no","app_id":"app","name":"notes"}"#)
                == [#"1:auth:{"msg":"Token invalid","code":401}"#])
        #expect(peer.ask("1:cv:x") == ["1:?"])
        #expect(peer.ask("0:cv:\(try harness.cv(0))") == ["0:c:[]"])
        #expect(harness.closed.isEmpty)
    }

    @Test("a second init on a channel starts it again, on whatever bucket it names")
    func restart() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("w")
        let peer: Peer = harness.client("c1")
        #expect(peer.ask("0:cv:\(try harness.cv(0))") == ["0:c:[]"])
        #expect(
            peer.ask(#"0:init:{"api":"1.1","clientid":"c1","token":"ann-token","app_id":"app","name":"tags"}"#)
                == ["0:auth:ann@example.com"])
        writer.send(edit("k", "x1", to: "a"))
        #expect(peer.take().isEmpty)
        #expect(peer.ask("0:cv:\(try harness.cv(0, bucket: "tags"))") == ["0:c:[]"])
    }

    @Test("an init during another one replaces it: one answer")
    func replacedInit() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        harness.holdsReads = true
        peer.send(#"0:init:{"api":"1.1","clientid":"c","token":"no","app_id":"app","name":"notes"}"#)
        peer.send(#"0:init:{"api":"1.1",\#(Self.fields)}"#)
        while !harness.reads.isEmpty { harness.answerRead() }
        #expect(peer.take() == ["0:auth:ann@example.com"])
    }

    @Test("the command of an init runs after auth")
    func command() throws {
        let harness = try HubHarness()
        let empty: String = try harness.cv(0)
        let table: [(command: String, answer: String)] = [
            ("i::::50", #"0:i:{"current":"\#(empty)","index":[]}"#), ("cv:\(empty)", "0:c:[]"), ("cv:zz", "0:cv:?"),
            ("what", "0:?"), ("init:{}", "0:?"), ("e:k.1", "0:?"), ("c:{}", "0:?"), ("index:{}", "0:?"),
        ]
        for (command, answer) in table {
            let peer: Peer = harness.connect()
            #expect(
                peer.ask(#"0:init:{"api":"1.1",\#(Self.fields),"cmd":"\#(command)"}"#)
                    == ["0:auth:ann@example.com", answer])
        }
    }

    @Test("the command of an init counts towards the bytes that are kept for a client that has shown no token")
    func largeCommand() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        let large: String = "cv:" + String(repeating: "v", count: Channel.queuedBytesMax)
        #expect(
            peer.ask(#"0:init:{"api":"1.1",\#(Self.fields),"cmd":"\#(large)"}"#) == ["0:?", "0:auth:ann@example.com"])
    }

    @Test("commands before an init are answered by a question mark and have no effect")
    func beforeInit() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        for text: String in ["0:cv:x", "0:i::::10", "0:e:k.1", edit("k", "x", to: "a"), "0:index:{}", "0:what"] {
            #expect(peer.ask(text) == ["0:?"])
        }
        #expect(peer.ask(#"0:init:{"api":"1.1",\#(Self.fields)}"#) == ["0:auth:ann@example.com"])
    }

    @Test("commands sent after an init without waiting run once it is authorized")
    func pipelined() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        harness.holdsReads = true
        peer.send(#"0:init:{"api":"1.1",\#(Self.fields)}"#, "0:cv:\(try harness.cv(0))", "0:e:none.1")
        for _ in 0..<Channel.queuedMax { peer.send("0:e:none.2") }
        #expect(peer.take() == ["0:?", "0:?"])
        while !harness.reads.isEmpty { harness.answerRead() }
        let answers: [String] = peer.take()
        #expect(answers.prefix(3) == ["0:auth:ann@example.com", "0:c:[]", "0:e:none.1\n?"])
        #expect(answers.count == 1 + Channel.queuedMax)
    }

    @Test("commands after an init that is refused are answered by a question mark")
    func pipelinedRefused() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        harness.holdsReads = true
        peer.send(#"0:init:{"api":"1.1","clientid":"c","token":"no","app_id":"app","name":"notes"}"#, "0:cv:x")
        harness.answerRead()
        #expect(peer.take() == [Self.invalid, "0:?"])
    }

    @Test("a store that cannot be read refuses the init with 500, and the next one works")
    func storeFailure() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        harness.holdsReads = true
        let refusal: String = #"0:auth:{"msg":"The store cannot be read","code":500}"#
        peer.send(#"0:init:{"api":"1.1",\#(Self.fields)}"#)
        harness.failRead()
        #expect(peer.take() == [refusal])
        peer.send(#"0:init:{"api":"1.1",\#(Self.fields)}"#)
        harness.answerRead()
        harness.failRead()
        #expect(peer.take() == [refusal])
        harness.holdsReads = false
        #expect(peer.ask(#"0:init:{"api":"1.1",\#(Self.fields)}"#) == ["0:auth:ann@example.com"])
    }

    @Test("channels, buckets and clients of a bucket above their limits are refused with 500")
    func limits() throws {
        var limits = ServerLimits()
        limits.channelsPerConnectionMax = 2
        limits.bucketsPerUserMax = 1
        limits.subscribersPerBucketMax = 2
        let harness = try HubHarness(limits: limits)
        let peer: Peer = harness.client("c1")
        peer.send(edit("k", "x1", to: "a"))
        #expect(peer.take().count == 1)
        #expect(
            peer.ask(#"1:init:{"api":"1.1","clientid":"c1","token":"ann-token","app_id":"app","name":"second"}"#)
                == [#"1:auth:{"msg":"Bucket limit reached","code":500}"#])
        #expect(peer.ask(#"1:init:{"api":"1.1",\#(Self.fields)}"#) == ["1:auth:ann@example.com"])
        #expect(
            peer.ask(#"2:init:{"api":"1.1",\#(Self.fields)}"#) == [#"2:auth:{"msg":"Too many channels","code":500}"#])
        #expect(
            harness.connect().ask(#"0:init:{"api":"1.1",\#(Self.fields)}"#)
                == [#"0:auth:{"msg":"Too many clients on this bucket","code":500}"#])
        #expect(harness.metrics.limitHits.value(.channels) == 1)
        #expect(harness.metrics.limitHits.value(.subscribers) == 1)
        #expect(harness.metrics.limitHits.value(.buckets) == 1)
    }

    @Test(
        "closing a connection for too many reads during its inits does not affect a client that waits with it")
    func closedWhileAdmitted() throws {
        var limits = ServerLimits()
        limits.readsPerConnectionMax = 8
        let harness = try HubHarness(limits: limits)
        let writer: Peer = harness.client("w")
        writer.send(edit("k", "w1", to: "a"))
        writer.close()
        #expect(harness.hub.feeds.isEmpty)

        harness.holdsReads = true
        let greedy: Peer = harness.connect()
        let modest: Peer = harness.connect()
        for number: Int in 0..<6 {
            greedy.send("\(number):init:{\"api\":\"1.1\",\(Self.fields)}")
            for _ in 0..<10 { greedy.send("\(number):e:k.1") }
        }
        modest.send("0:init:{\"api\":\"1.1\",\(Self.fields)}")
        // Tokens first, so that all wait for the bucket together.
        while let index: Int = harness.reads.firstIndex(where: { if case .grant = $0.question { true } else { false } })
        {
            harness.answerRead(at: index)
        }
        harness.holdsReads = false
        harness.answerRead()
        #expect(harness.closed == [greedy.id: .tryAgainLater])
        #expect(modest.take() == ["0:auth:ann@example.com"])
        #expect(harness.hub.feeds.values.map(\.subscribers.count) == [1])
        #expect(harness.hub.feeds.values.map(\.waiters.count) == [0])
        #expect(harness.hub.readCount == 0)

        greedy.close()
        let late: Peer = harness.client("late")
        #expect(modest.ask(edit("k", "m1", sv: 1, to: "b")).first?.contains("\"m1\"") == true)
        #expect(late.ask(edit("k", "l1", sv: 2, to: "c")).contains { $0.contains("\"l1\"") })
        harness.ask(
            RemoteQuestion(
                bucket: BucketID(
                    app: try AppID("app"), user: try UserID("ann@example.com"), name: try BucketName("notes")),
                kind: .index, seconds: 1))
        #expect(harness.takeReports() == [.asked(2)])
    }

    @Test("a connection that ends during an init leaves nothing behind")
    func closedDuringInit() throws {
        let harness = try HubHarness()
        harness.holdsReads = true
        let peer: Peer = harness.connect()
        peer.send(#"0:init:{"api":"1.1",\#(Self.fields)}"#)
        harness.answerRead()
        peer.close()
        harness.answerRead()
        #expect(harness.hub.connectionCount == 0)
        #expect(harness.hub.feeds.isEmpty)
        #expect(harness.hub.readCount == 0)
    }
}
