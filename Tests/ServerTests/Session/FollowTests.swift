import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Following the log: no change is delivered twice or missed, whatever coincides.
struct FollowTests {
    private func ccids(_ messages: [String]) -> [String] {
        messages.filter { $0.hasPrefix("0:c:[") }.flatMap { $0.allBetween(#""ccids":[""#, and: "\"") }
    }

    @Test("a change that is committed while a cv is being read is delivered once, after the answer")
    func commitDuringCatchUp() throws {
        var limits = ServerLimits()
        limits.tailChangesMax = 1
        let harness = try HubHarness(limits: limits)
        let writer: Peer = harness.client("w")
        writer.send(edit("k1", "x1", to: "a"), edit("k2", "x2", to: "a"))
        let reader: Peer = harness.client("r")
        harness.holdsReads = true
        reader.send("0:cv:\(try harness.cv(0))")
        writer.send(edit("k3", "x3", to: "a"), edit("k4", "x4", to: "a"), edit("k5", "x5", to: "a"))
        #expect(reader.take().isEmpty)
        while !harness.reads.isEmpty { harness.answerRead() }
        #expect(ccids(reader.take()) == ["x1", "x2", "x3", "x4", "x5"])
        writer.send(edit("k6", "x6", to: "a"))
        #expect(ccids(reader.take()) == ["x6"])
    }

    @Test("a channel that asks for nothing gets nothing for a second, then all changes since its auth, once")
    func silence() throws {
        let harness = try HubHarness()
        let writer = harness.client("w")
        writer.send(edit("k0", "x0", to: "a"))
        let silent = harness.client("s")
        writer.send(edit("k1", "x1", to: "a"))
        harness.pass(seconds: 0.9)
        #expect(silent.take().isEmpty)
        harness.pass(seconds: 0.2)
        #expect(ccids(silent.take()) == ["x1"])
        writer.send(edit("k2", "x2", to: "a"))
        #expect(ccids(silent.take()) == ["x2"])
        // A later cv and i are answered as usual.
        #expect(ccids(silent.ask("0:cv:\(try harness.cv(1))")) == ["x1", "x2"])
        #expect(silent.ask("0:i:::").first?.hasPrefix("0:i:") == true)
        #expect(harness.hub.silent.isEmpty)
    }

    @Test("a channel's own first change ends its silence; earlier changes are delivered before it")
    func ownChangeEndsSilence() throws {
        let harness = try HubHarness()
        let writer = harness.client("w")
        let silent = harness.client("s")
        writer.send(edit("k1", "x1", to: "a"))
        silent.send(edit("k2", "x2", to: "a"))
        #expect(ccids(silent.take()) == ["x1", "x2"])
        writer.send(edit("k3", "x3", to: "a"))
        #expect(ccids(silent.take()) == ["x3"])
        harness.pass(seconds: 2)
        #expect(silent.take().isEmpty)
    }

    @Test(
        "the time that passes does not start delivery after cv:?, nor repeat changes for a channel that asked in time")
    func noSilence() throws {
        let harness = try HubHarness()
        let writer = harness.client("w")
        let lost = harness.client("l")
        #expect(lost.ask("0:cv:nonsense") == ["0:cv:?"])
        // The same as the command of an init, which one client sends.
        let early = harness.connect()
        early.send(
            #"0:init:{"clientid":"e","api":"1.1","token":"ann-token","app_id":"app","name":"notes","cmd":"cv:nonsense"}"#
        )
        #expect(early.take().last == "0:cv:?")
        let asking = harness.client("r")
        writer.send(edit("k1", "x1", to: "a"))
        #expect(ccids(asking.ask("0:cv:\(try harness.cv(0))")) == ["x1"])
        harness.pass(seconds: 2)
        #expect(lost.take().isEmpty && asking.take().isEmpty && early.take().isEmpty)
        writer.send(edit("k2", "x2", to: "a"))
        #expect(lost.take().isEmpty && ccids(asking.take()) == ["x2"])
    }

    @Test("two cv requests at once are answered one after the other, each in full")
    func twoCatchUps() throws {
        var limits = ServerLimits()
        limits.tailChangesMax = 0
        let harness = try HubHarness(limits: limits)
        let writer: Peer = harness.client("w")
        writer.send(edit("k1", "x1", to: "a"), edit("k2", "x2", to: "a"))
        let reader: Peer = harness.client("r")
        harness.holdsReads = true
        reader.send("0:cv:\(try harness.cv(0))", "0:cv:\(try harness.cv(1))")
        while !harness.reads.isEmpty { harness.answerRead() }
        #expect(ccids(reader.take()) == ["x1", "x2", "x2"])
    }

    @Test("changes during an index scan are delivered after the last page")
    func heldDuringScan() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("w")
        for number: Int in 1...4 { writer.send(edit("k\(number)", "x\(number)", to: "a")) }
        let reader: Peer = harness.client("r", library: "node-simperium")
        let first: String = try #require(reader.ask("0:i:1:::2").first)
        let mark: String = try #require(first.components(between: #""mark":""#, and: "\""))
        writer.send(edit("k1", "y1", sv: 1, to: "b"))
        #expect(reader.take().isEmpty)
        let rest: [String] = reader.ask("0:i:1:\(mark)::2")
        #expect(rest.count == 2)
        #expect(rest[0].hasPrefix("0:i:") && ccids(rest) == ["y1"])
        writer.send(edit("k1", "y2", sv: 2, to: "c"))
        #expect(ccids(reader.take()) == ["y2"])
    }

    @Test(
        "clients that send cv after each index get the changes that the scan held back in that answer, once",
        arguments: ["ios", "osx", "thicket"])
    func askAfterIndex(library: String) throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("w")
        writer.send(edit("k1", "x1", to: "a"))
        let reader: Peer = harness.client("r", library: library)
        harness.holdsReads = true
        reader.send("0:i::::500")
        writer.send(edit("k2", "x2", to: "a"))
        harness.answerRead()
        #expect(ccids(reader.take()).isEmpty)
        writer.send(edit("k3", "x3", to: "a"))
        #expect(reader.take().isEmpty)
        #expect(ccids(reader.ask("0:cv:\(try harness.cv(1))")) == ["x2", "x3"])
        writer.send(edit("k4", "x4", to: "a"))
        #expect(ccids(reader.take()) == ["x4"])
    }

    @Test("a request for one index entry without its object is a head probe: changes are delivered at once")
    func glance() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("w")
        for number: Int in 1...3 { writer.send(edit("k\(number)", "x\(number)", to: "a")) }
        let reader: Peer = harness.client("r", library: "bench")
        let first: String = try #require(reader.ask("0:i::::1").first)
        #expect(first.contains(#""mark":""#), "the client could continue the scan")
        writer.send(edit("k1", "y1", sv: 1, to: "b"))
        #expect(ccids(reader.take()) == ["y1"])
    }

    @Test("a scan that is idle for a minute, or whose client sends a change, gets the changes that were held back")
    func scanEnds() throws {
        for writes: Bool in [true, false] {
            let harness = try HubHarness()
            let writer: Peer = harness.client("w")
            for number: Int in 1...3 { writer.send(edit("k\(number)", "x\(number)", to: "a")) }
            let reader: Peer = harness.client("r")
            _ = reader.ask("0:i::::2")
            writer.send(edit("k4", "x4", to: "a"))
            harness.pass(seconds: 59)
            #expect(reader.take().isEmpty)
            if writes { reader.send(edit("k5", "x5", to: "a")) } else { harness.pass(seconds: 2) }
            #expect(ccids(reader.take()) == (writes ? ["x4", "x5"] : ["x4"]))
        }
    }

    @Test("a channel that scans the index again and again is watched once")
    func scanningChannelsAreListedOnce() throws {
        let harness = try HubHarness()
        let reader: Peer = harness.client("r")
        for _ in 0..<100 { _ = reader.ask("0:i::::10") }
        #expect(harness.hub.scanningChannels.count == 1)
        harness.pass(seconds: 2)
        #expect(harness.hub.scanningChannels.isEmpty)
        #expect(harness.hub.tickMilliseconds == nil)
    }

    @Test("a bucket that is opened while its newest change is being published loses nothing")
    func openDuringCommit() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("w")
        writer.send(edit("k1", "x1", to: "a"))
        harness.holdsCommits = true
        harness.holdsReads = true
        writer.send(edit("k2", "x2", to: "a"))
        writer.close()
        #expect(harness.hub.feeds.isEmpty)
        let reader: Peer = harness.connect()
        reader.send(
            #"0:init:{"api":"1.1","clientid":"r","token":"ann-token","app_id":"app","name":"notes","#
                + #""cmd":"cv:\#(try harness.cv(1))"}"#)
        harness.answerRead()
        harness.commit()
        while !harness.reads.isEmpty { harness.answerRead() }
        #expect(ccids(reader.take()) == ["x2"])
    }

    @Test("any order of edits, commits, reads, reconnects and scans gives each follower each change once, in order")
    func anyOrder() throws {
        for seed: UInt64 in 1...150 {
            try FollowRun(seed: seed).run()
        }
    }
}

/// One random run; reports its seed when something is wrong.
private final class FollowRun {
    private let seed: UInt64
    private var random: SeededRandom
    private let harness: HubHarness
    private var writers: [Peer] = []
    private var followers: [Follower] = []
    private var written = 0
    private var groups: [(outcome: CommitOutcome, requests: Int)] = []

    private struct Follower {
        var peer: Peer
        /// Positions received since the last `cv` or index.
        var received: [String] = []
        /// Where the follower began: it knows changes up to here from its index or its cv.
        var start: GlobalID = 0
        var mark: String?
        var isScanning = false
    }

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededRandom(seed: seed)
        var limits = ServerLimits()
        limits.tailChangesMax = [0, 1, 3, 100].randomElement(using: &random) ?? 0
        limits.catchUpPageChanges = [1, 2, 1_000].randomElement(using: &random) ?? 1
        harness = try HubHarness(limits: limits)
        writers = [harness.client("w1"), harness.client("w2")]
        for number: Int in 0..<3 { followers.append(Follower(peer: harness.client("f\(number)"))) }
        harness.holdsReads = true
        harness.holdsCommits = true
    }

    func run() throws {
        for place in followers.indices { try follow(place) }
        for _ in 0..<60 { try step() }
        settleAll()
        try followers.indices.forEach(finish)
    }

    private func step() throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2: write()
        case 3: groups.append(harness.decide(Int.random(in: 1...4, using: &random)))
        case 4...5: if !groups.isEmpty { harness.publish(groups.removeFirst()) }
        case 6...7: harness.answerRead(at: Int.random(in: 0..<max(1, harness.reads.count), using: &random))
        case 8: try goOn(Int.random(in: 0..<followers.count, using: &random))
        default: try come(again: Int.random(in: 0..<followers.count, using: &random))
        }
        followers.indices.forEach(hear)
    }

    private func write() {
        written += 1
        let peer: Peer = writers.randomElement(using: &random) ?? writers[0]
        peer.send(edit("k\(written)", "x\(written)", to: "v"))
    }

    /// Asks for an index or a cv on a new channel.
    private func follow(_ place: Int) throws {
        followers[place].received = []
        if Bool.random(using: &random) {
            followers[place].isScanning = true
            followers[place].start = -1
            followers[place].peer.send("0:i::::2")
        } else {
            followers[place].isScanning = false
            followers[place].start = 0
            followers[place].peer.send("0:cv:\(try harness.cv(0))")
        }
    }

    /// Asks for the next page of a scan.
    private func goOn(_ place: Int) throws {
        guard let mark: String = followers[place].mark else { return }
        followers[place].mark = nil
        followers[place].peer.send("0:i::\(mark)::2")
    }

    /// Drops the connection and reconnects.
    private func come(again place: Int) throws {
        followers[place].peer.close()
        _ = followers[place].peer.take()
        let peer: Peer = harness.connect()
        peer.send(#"0:init:{"api":"1.1","clientid":"f","token":"ann-token","app_id":"app","name":"notes"}"#)
        followers[place] = Follower(peer: peer)
        try follow(place)
    }

    private func hear(_ place: Int) {
        for message in followers[place].peer.take() {
            if message.hasPrefix("0:i:") {
                if let current: String = message.components(between: #""current":""#, and: "\"") {
                    followers[place].start = position(current)
                }
                followers[place].mark = message.components(between: #""mark":""#, and: "\"")
                #expect(followers[place].received.isEmpty, "seed \(seed): a change came before the scan was over")
            } else if message.hasPrefix("0:c:[") {
                followers[place].received += message.allBetween(#""cv":""#, and: "\"")
            } else {
                #expect(message.hasPrefix("0:auth:ann"), "seed \(seed): \(message)")
            }
        }
    }

    private func position(_ text: String) -> GlobalID {
        (0...GlobalID(written)).first { (try? harness.cv($0)) == text } ?? -1
    }

    /// Lets everything finish.
    private func settleAll() {
        for _ in 0..<500 {
            while !groups.isEmpty { harness.publish(groups.removeFirst()) }
            while !harness.reads.isEmpty { harness.answerRead() }
            if !harness.requests.isEmpty { groups.append(harness.decide()) }
            followers.indices.forEach(hear)
            for place in followers.indices { try? goOn(place) }
            if groups.isEmpty && harness.reads.isEmpty && harness.requests.isEmpty { break }
        }
        followers.indices.forEach(hear)
    }

    private func finish(_ place: Int) throws {
        let follower: Follower = followers[place]
        try #require(follower.start >= 0, "seed \(seed): no answer")
        let expected: [String] = try (0..<GlobalID(written)).filter { $0 >= follower.start }.map {
            try harness.cv($0 + 1)
        }
        #expect(follower.received == expected, "seed \(seed), follower \(place), from \(follower.start)")
    }
}
