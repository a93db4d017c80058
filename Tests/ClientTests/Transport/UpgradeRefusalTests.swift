import Testing
import ThicketProtocol

@testable import ThicketClient

/// The messages for an answer to the upgrade that is not a WebSocket.
@Suite("Refused upgrades")
struct UpgradeRefusalTests {
    private func head(_ status: Int, _ fields: [String] = []) throws -> HTTPResponseHead {
        let text = (["HTTP/1.1 \(status) X"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
        var reader = HTTPResponseHeadReader()
        return try Array(text.utf8).withUnsafeBytes { bytes in
            var input = bytes
            return try #require(try reader.next(&input))
        }
    }

    @Test(
        "the status of the answer is reported with its likely sender",
        arguments: [
            (502, "does not reach it"), (504, "does not reach it"), (503, "does not accept connections now"),
            (429, "too many requests"), (403, "the login was not checked"), (401, "the login was not checked"),
            (407, "user name and password"), (200, "removes the header 'Upgrade'"),
            (404, "removes the header 'Upgrade'"),
            (426, "removes the header 'Upgrade'"), (500, "failed"), (302, "names another address"),
        ])
    func reported(status: Int, words: String) throws {
        let refusal = UpgradeRefusal(try head(status))
        #expect(refusal.detail.hasPrefix("HTTP \(status) in place of a WebSocket: "), "\(refusal.detail)")
        #expect(refusal.detail.contains(words), "\(refusal.detail)")
        #expect(refusal.retryAfter == nil)
    }

    @Test("retry-after is reported and is the minimum delay of the next attempt; a redirect's target is reported")
    func details() throws {
        let busy = UpgradeRefusal(try head(429, ["retry-after: 17"]))
        #expect(busy.retryAfter == 17_000 && busy.detail.contains("try again in 17 s"))
        #expect(UpgradeRefusal(try head(503, ["retry-after: 999999"])).retryAfter == 600_000)
        for odd in ["-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            #expect(UpgradeRefusal(try head(503, ["retry-after: \(odd)"])).retryAfter == nil)
        }
        let moved = UpgradeRefusal(try head(302, ["location: https://elsewhere.example/"]))
        #expect(moved.detail.contains("https://elsewhere.example/"))
    }

    @Test(
        "no attempt is made before the time that the answer names; goOnline does not wait",
        arguments: BucketKind.allCases)
    func pause(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.connect()
        _ = talk.machine.closed(LinkClosure(detail: "busy", retryAfter: 17_000), now: talk.now)
        #expect(try #require(talk.machine.deadline) >= talk.now + 17_000)
        #expect(talk.machine.goOnline(now: talk.now).contains(.connect))
    }
}
