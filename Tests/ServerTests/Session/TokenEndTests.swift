import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Channels opened with a partner's token: their start, lapse, renewal and end.
struct TokenEndTests {
    private static let expired: String = #"0:auth:{"msg":"Token expired","code":401}"#
    private static let invalid: String = #"0:auth:{"msg":"Token invalid","code":401}"#
    private static let entity = "403c1677-4917-2fcb-b788-c6b4e5c85237"

    /// A harness with one partner channel on ann's bucket, beside a client of hers that writes.
    fileprivate final class Stage {
        let harness: HubHarness
        let writer: Peer
        var peer: Peer
        private var tokens = 0

        init(limits: ServerLimits = .init()) throws {
            harness = try HubHarness(limits: limits)
            harness.hub.knowsPartners = true
            try harness.grant("writer", user: TokenEndTests.entity)
            writer = harness.client("w", token: "writer")
            peer = harness.connect()
        }

        var seconds: Double { Double(harness.now.unix) / 1_000 }

        /// A text that looks like a partner's token, different each time.
        func token() -> String {
            tokens += 1
            return "h\(tokens).p." + String(repeating: "s", count: 86)
        }

        func pass(_ seconds: Double, entity: String = TokenEndTests.entity, device: String = "d") -> PartnerPass {
            PartnerPass(
                partner: "12", entity: entity, device: device, token: [UInt8(truncatingIfNeeded: tokens)],
                ends: self.seconds + seconds)
        }

        func sendInit(
            channel: Int = 0, client: String = "c", bucket: String = "notes", extra: String = "", token: String? = nil
        ) {
            peer.send(
                "\(channel):init:{\"clientid\":\"\(client)\",\"api\":\"1.1\",\"token\":\"\(token ?? self.token())\","
                    + "\"app_id\":\"app\",\"name\":\"\(bucket)\",\"device_id\":\"d\"\(extra)}")
        }

        /// Opens the channel for that many seconds.
        func open(_ seconds: Double, channel: Int = 0, bucket: String = "notes", extra: String = "") -> [String] {
            sendInit(channel: channel, bucket: bucket, extra: extra)
            harness.admit(.admitted(pass(seconds)))
            return peer.take()
        }

        func follow() throws { #expect(peer.ask("0:cv:\(try cv(0))").count == 1) }

        func cv(_ gid: GlobalID) throws -> String { try harness.cv(gid, user: TokenEndTests.entity) }

        /// ccids of the changes received.
        func changes() -> [String] { TokenEndTests.ccids(peer.take()) }
    }

    private static func ccids(_ messages: [String]) -> [String] {
        messages.filter { $0.hasPrefix("0:c:[") }.flatMap { $0.allBetween(#""ccids":[""#, and: "\"") }
    }

    @Test("a token that no operator made is sent for admission, with its device, if it looks like a partner's")
    func asked() throws {
        let stage = try Stage()
        let token: String = stage.token()
        stage.sendInit(token: token)
        #expect(stage.harness.admissions.map(\.token) == [token])
        #expect(stage.harness.admissions.first?.device == "d")
        #expect(stage.harness.admissions.first?.app.text == "app")
        stage.harness.admit(.admitted(stage.pass(60)))
        #expect(stage.peer.take() == ["0:auth:\(Self.entity)"])
        for token: String in ["a.b.c", "ann", "a.b." + String(repeating: "s", count: 85)] {
            stage.sendInit(token: token)
            #expect(stage.peer.take() == [Self.invalid])
        }
        stage.sendInit(token: String(repeating: "x", count: 8_105) + ".p." + String(repeating: "s", count: 86))
        #expect(stage.peer.take() == [#"0:auth:{"msg":"Token malformed","code":400}"#])
        #expect(stage.harness.admissions.isEmpty)
    }

    @Test("a server without partners sends no token for admission")
    func withoutPartners() throws {
        let stage = try Stage()
        stage.harness.hub.knowsPartners = false
        stage.sendInit()
        #expect(stage.peer.take() == [Self.invalid])
        #expect(stage.harness.admissions.isEmpty)
    }

    @Test("the fault decides the answer, and the channel may try again")
    func refusals() throws {
        let stage = try Stage()
        for (answer, text): (AdmissionAnswer, String) in [
            (.refused(.denied(.device)), Self.invalid), (.refused(.denied(.signature)), Self.invalid),
            (.refused(.expired), Self.expired),
            (.tooMany(seconds: 7), #"0:auth:{"msg":"Too many failed tokens, try again later","code":500}"#),
            (.unavailable, #"0:auth:{"msg":"The store cannot be read","code":500}"#),
        ] {
            stage.sendInit()
            stage.harness.admit(answer)
            #expect(stage.peer.take() == [text])
        }
        stage.sendInit()
        stage.harness.admit(.admitted(stage.pass(0)))
        #expect(stage.peer.take() == [Self.expired], "the token ended before its admission")
        #expect(stage.open(1) == ["0:auth:\(Self.entity)"])
        stage.sendInit(channel: 1)
        stage.harness.admit(.busy)
        #expect(stage.harness.closed[stage.peer.id] == .tryAgainLater)
    }

    @Test("commands sent after the init wait for its answer; an answer to an init that was replaced is dropped")
    func waiting() throws {
        let stage = try Stage()
        stage.sendInit()
        stage.peer.send("0:cv:\(try stage.cv(0))")
        #expect(stage.peer.take().isEmpty)
        stage.sendInit()
        stage.harness.admit(.refused(.denied(.signature)))
        #expect(stage.peer.take().isEmpty)
        stage.harness.admit(.admitted(stage.pass(60)))
        #expect(stage.peer.take() == ["0:auth:\(Self.entity)"])
    }

    @Test("a token delivers up to its end; from that moment nothing is delivered or accepted, without any tick")
    func exactEnd() throws {
        let stage = try Stage()
        _ = stage.open(30)
        try stage.follow()
        stage.harness.now.monotonic += 29_999_000_000
        stage.harness.now.unix += 29_999
        stage.writer.send(edit("k", "x1", to: "a"))
        #expect(stage.changes() == ["x1"])
        stage.harness.now.monotonic += 1_000_000
        stage.harness.now.unix += 1
        stage.writer.send(edit("k", "x2", sv: 1, to: "b"))
        #expect(stage.peer.take() == [Self.expired])
        #expect(stage.peer.ask(edit("k", "mine", sv: 1, to: "c")) == ["0:?"])
        #expect(stage.peer.ask("0:cv:\(try stage.cv(0))") == ["0:?"])
        #expect(stage.peer.ask("0:i:1:::10") == ["0:?"])
        #expect(stage.peer.ask("0:e:k.1") == ["0:?"])
        #expect(stage.peer.ask("h:1") == ["h:2"])
        #expect(stage.harness.requests.isEmpty)
    }

    @Test("clients that know only 'expired' get it when a token ends")
    func oldClients() throws {
        let stage = try Stage()
        stage.peer.send(
            #"0:init:{"clientid":"c","token":"\#(stage.token())","app_id":"app","name":"notes","device_id":"d"}"#)
        stage.harness.admit(.admitted(stage.pass(5)))
        _ = stage.peer.take()
        stage.harness.pass(seconds: 5)
        #expect(stage.peer.take() == ["0:auth:expired", Self.expired])
    }

    @Test("another token within a minute first gets the missed changes, once and in order, then new ones")
    func renewal() throws {
        let stage = try Stage()
        _ = stage.open(30)
        try stage.follow()
        stage.writer.send(edit("a", "x1", to: "1"))
        #expect(stage.changes() == ["x1"])
        stage.harness.pass(seconds: 30)
        stage.writer.send(edit("b", "x2", to: "1"), edit("c", "x3", to: "1"))
        #expect(stage.peer.take() == [Self.expired])
        stage.harness.pass(seconds: 59)
        #expect(stage.open(30) == ["0:auth:\(Self.entity)"] + stage.missed("x2", "x3", from: 2))
        stage.writer.send(edit("d", "x4", to: "1"))
        #expect(stage.changes() == ["x4"])
        stage.harness.pass(seconds: 30)
        #expect(stage.peer.take() == [Self.expired])
    }

    @Test("missed changes are read from disk when memory does not reach back; when disk does not either, cv:? is sent")
    func renewalFromDisk() throws {
        var limits = ServerLimits()
        limits.tailChangesMax = 1
        let stage = try Stage(limits: limits)
        _ = stage.open(30)
        try stage.follow()
        for round: Int in 0..<2 {
            stage.harness.pass(seconds: 30)
            for number: Int in 0..<3 { stage.writer.send(edit("k\(round)\(number)", "x\(round)\(number)", to: "1")) }
            #expect(stage.peer.take() == [Self.expired])
            if round == 1 { try stage.harness.cutLog(to: 1) }
            let answers: [String] = stage.open(30)
            if round == 0 { #expect(Self.ccids(answers) == ["x00", "x01", "x02"]) }
            if round == 1 { #expect(answers == ["0:auth:\(Self.entity)", "0:cv:?"]) }
        }
    }

    @Test("a bad token does not change the time of grace, which ends a minute after the end of the first token")
    func grace() throws {
        let stage = try Stage()
        _ = stage.open(30)
        stage.harness.pass(seconds: 30)
        _ = stage.peer.take()
        for answer: AdmissionAnswer in [.refused(.denied(.owner)), .refused(.expired), .unavailable] {
            stage.sendInit()
            stage.peer.send("0:cv:\(try stage.cv(0))")
            stage.harness.admit(answer)
            #expect(stage.peer.take().last == "0:?")
        }
        stage.sendInit(token: "two words")
        #expect(stage.peer.take() == [#"0:auth:{"msg":"Token malformed","code":400}"#])
        stage.harness.pass(seconds: 59)
        #expect(stage.harness.closed.isEmpty)
        stage.harness.pass(seconds: 1)
        #expect(stage.harness.closed[stage.peer.id] == .policyViolation)
        #expect(stage.peer.take().isEmpty)
    }

    @Test("a channel that lapses before the others of its connection ends alone")
    func otherChannels() throws {
        let stage = try Stage()
        _ = stage.open(30)
        #expect(stage.open(300, channel: 1, bucket: "tags") == ["1:auth:\(Self.entity)"])
        stage.harness.pass(seconds: 90)
        stage.harness.pass(seconds: 60)
        #expect(stage.harness.closed.isEmpty)
        #expect(stage.peer.take() == [Self.expired])
        #expect(stage.peer.ask("1:cv:\(try stage.harness.cv(0, bucket: "tags", user: Self.entity))") == ["1:c:[]"])
        #expect(stage.open(30) == ["0:auth:\(Self.entity)"], "a new channel of the same number is a new one")
        stage.harness.pass(seconds: 400)
        stage.harness.pass(seconds: 61)
        #expect(stage.harness.closed[stage.peer.id] == .policyViolation)
    }

    @Test("when the time of grace ends while a token is checked, the answer is awaited")
    func endWhileAsking() throws {
        let stage = try Stage()
        _ = stage.open(30)
        stage.harness.pass(seconds: 30)
        stage.harness.pass(seconds: 59)
        stage.sendInit()
        stage.harness.pass(seconds: 30)
        #expect(stage.harness.closed.isEmpty)
        stage.harness.admit(.refused(.denied(.signature)))
        stage.harness.pass(seconds: 2)
        #expect(stage.harness.closed[stage.peer.id] == .policyViolation)
    }

    @Test("a client may renew under another name: delivery continues, and its changes carry the new name")
    func renamed() throws {
        let stage = try Stage()
        _ = stage.open(30)
        try stage.follow()
        stage.harness.pass(seconds: 30)
        stage.writer.send(edit("a", "x1", to: "1"))
        #expect(stage.peer.take() == [Self.expired])
        stage.sendInit(client: "other")
        stage.harness.admit(.admitted(stage.pass(30)))
        let answers: [String] = stage.peer.take()
        #expect(answers.first == "0:auth:\(Self.entity)" && Self.ccids(answers) == ["x1"])
        let own: [String] = stage.peer.ask(edit("b", "x2", to: "1"))
        #expect(own.count == 1 && own[0].contains(#""clientid":"other""#), "\(own)")
    }

    @Test("an init with a command, of another bucket or user, or before the end, starts the channel from the start")
    func freshStarts() throws {
        for change: Int in [0, 2, 3, 4] {
            let stage = try Stage()
            _ = stage.open(30)
            try stage.follow()
            if change < 4 { stage.harness.pass(seconds: 30) }
            stage.writer.send(edit("a", "x1", to: "1"))
            _ = stage.peer.take()
            switch change {
            case 0: stage.sendInit(extra: #","cmd":"cv:\#(try stage.cv(0))""#)
            case 2: stage.sendInit(bucket: "tags")
            default: stage.sendInit()
            }
            let other = "32eef65f-4118-b629-2974-c2ca371bfe39"
            stage.harness.admit(.admitted(stage.pass(30, entity: change == 3 ? other : Self.entity)))
            let answers: [String] = stage.peer.take()
            #expect(answers.first == "0:auth:\(change == 3 ? other : Self.entity)")
            #expect(Self.ccids(answers) == (change == 0 ? ["x1"] : []), "\(change)")
            stage.writer.send(edit("b", "x2", to: "1"))
            #expect(stage.changes() == (change == 0 ? ["x2"] : []), "it has not asked yet: \(change)")
            #expect(stage.harness.metrics.channels.value == 2)
        }
    }

    @Test("T17: a clock that is set back an hour revives nothing; one that is set forward ends tokens at once")
    func clocks() throws {
        let stage = try Stage()
        _ = stage.open(30)
        try stage.follow()
        stage.harness.now.unix -= 3_600_000
        stage.harness.pass(seconds: 30)
        stage.writer.send(edit("a", "x1", to: "1"))
        #expect(stage.peer.take() == [Self.expired])
        stage.harness.now.unix -= 3_600_000
        #expect(stage.peer.ask("0:cv:\(try stage.cv(0))") == ["0:?"])
        stage.harness.pass(seconds: 60)
        #expect(stage.harness.closed[stage.peer.id] == .policyViolation)

        stage.peer = stage.harness.connect()
        _ = stage.open(1_800)
        stage.harness.now.unix += 3_600_000
        #expect(stage.peer.ask("0:cv:\(try stage.cv(0))") == [Self.expired, "0:?"])
    }

    @Test(
        "T17: whatever the clock does, a token never outlives its stated time, and a jump forward only shortens tokens")
    func jumps() throws {
        let stage = try Stage()
        _ = stage.open(1_000)
        stage.harness.now.unix -= 3_600_000
        _ = stage.open(2_000, channel: 1, bucket: "tags")
        stage.harness.now.unix += 1_800_000
        stage.harness.pass(seconds: 199)
        #expect(stage.peer.take() == [])
        stage.harness.pass(seconds: 1)
        #expect(stage.peer.take() == ["1" + Self.expired.dropFirst()], "the jump took 1,800 s from it")
        stage.harness.pass(seconds: 799)
        #expect(stage.peer.take() == [])
        stage.harness.pass(seconds: 1)
        #expect(stage.peer.take() == [Self.expired], "and gave nothing to the other")
    }

    @Test("T18: a sign-out ends every channel of that device, with its tokens; other devices and users stay")
    func signOut() throws {
        let stage = try Stage()
        let first: Peer = stage.peer
        _ = stage.open(30)
        _ = stage.open(60, channel: 1, bucket: "tags")
        stage.peer = stage.harness.connect()
        stage.sendInit()
        stage.harness.admit(.admitted(stage.pass(60, device: "D")))
        _ = stage.peer.take()
        let other: Peer = stage.peer
        stage.peer = stage.harness.connect()
        _ = stage.open(10)
        let lapsed: Peer = stage.peer
        stage.harness.pass(seconds: 10)
        _ = lapsed.take()
        stage.sendInit()
        #expect(stage.harness.revoke(.device("d", of: "nobody")).isEmpty)
        let denied: [DeniedToken] = stage.harness.revoke(.device("d", of: Self.entity))
        #expect(Set(denied.map(\.hash)) == [[1], [2], [4]])
        let signedOut: String = #"auth:{"msg":"Signed out","code":401}"#
        #expect(first.take() == ["0:" + signedOut, "1:" + signedOut])
        #expect(lapsed.take() == ["0:" + signedOut])
        #expect(stage.harness.closed == [first.id: .policyViolation, lapsed.id: .policyViolation])
        stage.harness.admit(.admitted(stage.pass(60)))
        #expect(lapsed.take().isEmpty, "the renewal in progress has no channel any more")
        #expect(other.ask("0:cv:\(try stage.cv(0))") == ["0:c:[]"])
        #expect(stage.harness.hub.partnerChannels.values.map(\.count) == [1])
        #expect(stage.harness.revoke(.partner("13")).isEmpty)
        #expect(stage.harness.revoke(.partner("12")).count == 1)
        #expect(stage.harness.closed[other.id] == .policyViolation)
        #expect(stage.harness.hub.partnerChannels.isEmpty && stage.harness.hub.ends.isEmpty)
    }

    @Test("a sign-out and a token's end also reach a channel whose bucket is still being opened")
    func whileOpening() throws {
        let stage = try Stage()
        for round: Int in 0..<2 {
            stage.harness.holdsReads = true
            stage.sendInit(bucket: "fresh\(round)")
            stage.harness.answerRead()
            stage.harness.admit(.admitted(stage.pass(5)))
            #expect(stage.harness.reads.count == 1, "the bucket is being looked up")
            stage.peer.send("0:cv:0")
            if round == 0 {
                stage.harness.pass(seconds: 5)
                #expect(stage.peer.take() == [Self.expired, "0:?"])
            } else {
                #expect(stage.harness.revoke(.device("d", of: Self.entity)).count == 1)
                #expect(stage.harness.closed[stage.peer.id] == .policyViolation)
            }
            stage.harness.holdsReads = false
            stage.harness.answerRead()
            #expect(stage.peer.take().filter { !$0.contains("Signed out") }.isEmpty)
        }
    }

    @Test("a connection that sends too many tokens for its channels is closed with 1013")
    func flood() throws {
        var limits = ServerLimits()
        limits.channelsPerConnectionMax = 2
        let stage = try Stage(limits: limits)
        for _ in 0..<5 { stage.sendInit() }
        #expect(stage.harness.admissions.count == 4)
        #expect(stage.harness.closed[stage.peer.id] == .tryAgainLater)
    }
}

extension TokenEndTests.Stage {
    /// The message that carries changes to keys b, c … that were made while the channel had no token.
    fileprivate func missed(_ ccids: String..., from gid: GlobalID) -> [String] {
        let keys: [String] = ["b", "c"]
        let elements: [String] = ccids.enumerated().map { place, ccid in
            let cv: String = (try? cv(gid + GlobalID(place))) ?? ""
            return #"{"clientid":"w","cv":"\#(cv)","id":"\#(keys[place])","o":"M","#
                + #""v":{"t":{"o":"+","v":"1"}},"ev":1,"ccids":["\#(ccid)"]}"#
        }
        return ["0:c:[" + elements.joined(separator: ",") + "]"]
    }
}
