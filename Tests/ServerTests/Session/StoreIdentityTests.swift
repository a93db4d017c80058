import Testing
import ThicketProtocol

@testable import ThicketServer

/// How a client of Thicket's library recognises a bucket (docs/decisions/0083).
@Suite("The identity of a bucket")
struct StoreIdentityTests {
    private static func opening(_ library: String?, mode: String? = nil) -> String {
        let extra = (library.map { #","library":"\#($0)""# } ?? "") + (mode.map { #","mode":"\#($0)""# } ?? "")
        return #"0:init:{"clientid":"c","api":"1.1","token":"ann-token","app_id":"app","name":"notes"\#(extra)}"#
    }

    @Test("Thicket's client gets the identity after auth, once the bucket has a change; other libraries get none")
    func reported() throws {
        let harness = try HubHarness()
        let (ours, other) = (harness.connect(), harness.connect())
        #expect(ours.ask(Self.opening("thicket")) == ["0:auth:ann@example.com"], "no row, no identity")
        #expect(other.ask(Self.opening("node-simperium")) == ["0:auth:ann@example.com"])
        other.send(#"0:c:{"id":"a","o":"M","ccid":"1","v":{"t":{"o":"+","v":1}}}"#)
        harness.settle()
        let reported = ours.take()
        #expect(reported.count == 1 && reported[0].hasPrefix(#"0:o:{"store":""#), "\(reported)")
        #expect(!other.take().contains { $0.hasPrefix("0:o:") })
        let next = harness.connect()
        #expect(next.ask(Self.opening("thicket")) == ["0:auth:ann@example.com"] + reported)
        for library in ["node-simperium", "ios", "android", nil] {
            #expect(harness.connect().ask(Self.opening(library)) == ["0:auth:ann@example.com"], "\(library ?? "none")")
        }
        let asks = harness.connect()
        let both = reported[0].replacing(#"{"store""#, with: #"{"mode":"open","store""#)
        #expect(asks.ask(Self.opening("thicket", mode: "sealed")) == ["0:auth:ann@example.com", both])
    }

    @Test("the identity differs after a restore, for another row, user, app or name, and under another key")
    func differs() throws {
        func bucket(_ app: String, _ user: String, _ name: String) throws -> BucketID {
            BucketID(app: try AppID(app), user: try UserID(user), name: try BucketName(name))
        }
        let key = [UInt8](repeating: 7, count: 16)
        let codec = ChangeVersionCodec(key: key, epoch: 1)
        let ours = try bucket("app", "ann", "notes")
        let all = [
            codec.identity(of: ours, row: 1), codec.identity(of: ours, row: 2),
            ChangeVersionCodec(key: key, epoch: 2).identity(of: ours, row: 1),
            ChangeVersionCodec(key: [UInt8](repeating: 8, count: 16), epoch: 1).identity(of: ours, row: 1),
            codec.identity(of: try bucket("app", "bob", "notes"), row: 1),
            codec.identity(of: try bucket("appa", "nn", "notes"), row: 1),
            codec.identity(of: try bucket("app", "ann", "diary"), row: 1),
        ]
        #expect(Set(all).count == all.count && all.allSatisfy { $0.utf8.count == 16 })
        #expect(codec.identity(of: ours, row: 1) == all[0])
    }
}
