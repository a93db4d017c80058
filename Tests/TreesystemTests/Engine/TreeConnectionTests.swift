import Testing
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketClient
@testable import ThicketTreesystem

@Suite("Answers to batches over HTTP")
struct TreeConnectionTests {
    private static let made = #"{"cv":"51c9bc01f4b2b2a0","ops":[{"ev":3}]}"#
    private static let refused = #"{"error":409,"reason":"stale","op":0,"ev":4}"#

    private func reply(_ status: Int, _ body: String, retryAfter: String? = nil) -> BatchReply {
        var fields = HTTPFields()
        if let retryAfter { fields.append("retry-after", retryAfter) }
        return TreeConnection.reply(HTTPAnswer(status: status, fields: fields, body: Array(body.utf8)))
    }

    private func pause(_ reply: BatchReply) -> Int64? {
        guard case .unknown(_, let pause) = reply else { return nil }
        return pause
    }

    @Test("a success and a refusal of the batch are answers")
    func answers() throws {
        guard case .answer(.made(_, let results)) = reply(200, Self.made) else { return #expect(Bool(false)) }
        #expect(results == [.version(3)])
        guard case .answer(.refused(let refusal)) = reply(409, Self.refused) else { return #expect(Bool(false)) }
        #expect(refusal.reason == .stale && refusal.operation == 0 && refusal.current == 4)
    }

    @Test("a refusal to a token that may only read is an answer; any other 401 is about the token")
    func readOnly() throws {
        guard case .answer(.refused(let refusal)) = reply(401, #"{"error":401}"#) else { return #expect(Bool(false)) }
        #expect(refusal.code == .unauthorized && refusal.operation == nil)
        #expect(reply(401, #"{"code":"unauthorized","message":"","hint":""}"#) == .unauthorized)
    }

    @Test("whatever else arrives leaves open whether the batch was made, and is sent again after the asked pause")
    func unknown() {
        #expect(reply(401, "") == .unauthorized)
        #expect(pause(reply(429, Self.refused, retryAfter: "7")) == 7_000)
        #expect(pause(reply(503, Self.refused)) == 0)
        #expect(pause(reply(503, "", retryAfter: "99999999")) == 600_000)
        #expect(pause(reply(503, "", retryAfter: "-5")) == 0)
        #expect(pause(reply(503, "", retryAfter: "9223372036854775807")) == 600_000)
        #expect(pause(reply(200, "<html>")) == 0)
        #expect(pause(reply(200, Self.refused.dropLast() + "")) == 0)
        #expect(pause(reply(409, Self.made)) == 0)
    }
}
