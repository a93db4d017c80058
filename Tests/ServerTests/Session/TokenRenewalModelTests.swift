import Glibc
import Testing
import ThicketAuth
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// A channel whose tokens end again and again receives what a channel with a lasting token receives: each change once,
/// in order; and the outcomes of its own changes.
struct TokenRenewalModelTests {
    private static let entity = "e-1"

    @Test("tokens that end at any moment neither lose nor duplicate a change", arguments: 0..<24)
    func churn(round: Int) throws {
        let seed: UInt64 = UInt64(round) + (getenv("THICKET_SEED").flatMap { UInt64(String(cString: $0)) } ?? 40_000)
        var random = SeededRandom(seed: seed)
        var limits = ServerLimits()
        limits.tailChangesMax = round % 3 == 0 ? 1 : 50
        limits.catchUpPageChanges = round % 2 == 0 ? 2 : 20_000
        let harness = try HubHarness(limits: limits)
        harness.hub.knowsPartners = true
        try harness.grant("lasting", user: Self.entity)
        let other: Peer = harness.client("w", token: "lasting")
        let guest: Peer = harness.connect()
        var (received, own): ([String], [String]) = ([], [])
        var isOpen = false
        var (passed, renewals): (Int, Int) = (0, 0)

        func below(_ limit: UInt64) -> Int { Int(random.next() % limit) }
        func record(_ messages: [String]) {
            for message in messages {
                if message.hasPrefix("0:auth:\(Self.entity)") {
                    isOpen = true
                    renewals += 1
                }
                if message.hasPrefix("0:auth:{") { isOpen = false }
                guard message.hasPrefix("0:c:[") else { continue }
                #expect(isOpen, "nothing is delivered without a token (seed \(seed))")
                for ccid in message.allBetween(#""ccids":[""#, and: "\"") {
                    if message.contains("\"error\"") { own.append(ccid) } else { received.append(ccid) }
                }
            }
        }
        func open() {
            guest.send(
                #"0:init:{"clientid":"c","api":"1.1","token":"h.p.\#(String(repeating: "s", count: 86))","#
                    + #""app_id":"app","name":"notes","device_id":"d"}"#)
            while harness.admissions.isEmpty, !harness.reads.isEmpty { harness.answerRead() }
            harness.admit(
                .admitted(
                    PartnerPass(
                        partner: "1", entity: Self.entity, device: "d", token: [],
                        ends: Double(harness.now.unix) / 1_000 + 1 + Double(below(20)))))
        }

        open()
        guest.send("0:cv:\(try harness.cv(0, user: Self.entity))")
        record(guest.take())
        var (sent, refused): ([String], [String]) = ([], [])
        for step: Int in 0..<120 {
            harness.holdsReads = below(3) == 0
            harness.holdsCommits = below(3) == 0
            switch below(6) {
            case 0, 1:
                other.send(edit("k\(step)", "o\(step)", to: "1"))
                sent.append("o\(step)")
            case 2 where isOpen:
                let before: [String] = guest.take()
                record(before)
                guard isOpen else { break }
                guest.send(edit("g\(step)", "g\(step)", to: "1"))
                let answer: [String] = guest.take()
                if !answer.contains("0:?") { sent.append("g\(step)") }
                record(answer)
            case 3 where isOpen:
                // 404: an edit of an object that does not exist.
                guest.send(edit("none\(step)", "bad\(step)", sv: 7, to: "1"))
                let answer: [String] = guest.take()
                if !answer.contains("0:?") { refused.append("bad\(step)") }
                record(answer)
            case 4:
                // It never waits as long as a minute for another token.
                if !isOpen {
                    harness.holdsReads = false
                    while !harness.reads.isEmpty { harness.answerRead() }
                    open()
                }
                harness.pass(seconds: Double(below(15)))
                passed += 1
            default:
                if harness.holdsReads { break }
                while !harness.reads.isEmpty { harness.answerRead() }
                record(guest.take())
                if !isOpen { open() }
            }
            if !harness.holdsCommits, !harness.requests.isEmpty { harness.commit() }
            record(guest.take())
            #expect(harness.closed[guest.id] == nil)
        }
        (harness.holdsReads, harness.holdsCommits) = (false, false)
        harness.commit()
        while !harness.reads.isEmpty { harness.answerRead() }
        record(guest.take())
        if !isOpen { open() }
        record(guest.take())
        #expect(passed > 5 && received.count > 20 && renewals > 1, "seed \(seed)")
        #expect(received.sorted() == sent.sorted(), "seed \(seed)")
        #expect(Set(received).count == received.count)
        #expect(own == refused, "seed \(seed)")
        var cvs: [String: Int] = [:]
        for (place, ccid) in received.enumerated() { cvs[ccid] = place }
        let mine: [Int] = sent.filter { $0.hasPrefix("o") }.compactMap { cvs[$0] }
        #expect(mine == mine.sorted(), "in the order of the log (seed \(seed))")
    }
}
