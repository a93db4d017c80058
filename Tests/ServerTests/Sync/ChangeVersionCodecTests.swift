import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestSupport

@Suite("ChangeVersionCodec")
struct ChangeVersionCodecTests {
    let codec = ChangeVersionCodec(key: Array(1...16), epoch: 7)

    func bucket(_ app: String, _ user: String, _ name: String) throws -> BucketID {
        try BucketID(app: AppID(app), user: UserID(user), name: BucketName(name))
    }

    @Test("every position decodes to itself, and no two positions have the same text")
    func roundTrip() throws {
        let tag: UInt32 = codec.tag(of: try bucket("app", "ann", "notes"))
        var seen: Set<String> = []
        var random = SeededRandom(seed: 11)
        let edges: [GlobalID] = [0, 1, 2, 255, 256, 1 << 32, .max]
        for gid in edges + (0..<200).map({ _ in GlobalID.random(in: 3...GlobalID.max - 1, using: &random) }) {
            let text: String = codec.text(gid, tag: tag)
            #expect(text.utf8.count == 32)
            #expect(text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
            #expect(codec.decode(text, tag: tag) == gid)
            #expect(codec.decode(text.uppercased(), tag: tag) == gid)
            #expect(seen.insert(text).inserted)
        }
    }

    @Test("the cv of an empty bucket is not an empty text")
    func emptyBucket() throws {
        let tag: UInt32 = codec.tag(of: try bucket("app", "ann", "notes"))
        #expect(codec.text(0, tag: tag).isEmpty == false)
        #expect(codec.decode(codec.text(0, tag: tag), tag: tag) == 0)
    }

    @Test("the cv of another bucket, user, app, epoch or key decodes to nothing")
    func foreign() throws {
        let home: BucketID = try bucket("app", "ann", "notes")
        let tag: UInt32 = codec.tag(of: home)
        let text: String = codec.text(5, tag: tag)
        for other: BucketID in [
            try bucket("app", "ann", "note"), try bucket("app", "an", "notes"), try bucket("ap", "pann", "notes"),
            try bucket("app", "bob", "notes"),
        ] {
            #expect(codec.decode(text, tag: codec.tag(of: other)) == nil)
        }
        let restored = ChangeVersionCodec(key: Array(1...16), epoch: 8)
        #expect(restored.tag(of: home) == tag)
        #expect(restored.decode(text, tag: tag) == nil)
        let outsider = ChangeVersionCodec(key: Array(2...17), epoch: 7)
        #expect(outsider.decode(text, tag: outsider.tag(of: home)) == nil)
    }

    @Test(
        "garbage decodes to nothing",
        arguments: [
            "", "0", "?", "5119dafb37a401031d47c0f7", String(repeating: "0", count: 32),
            String(repeating: "g", count: 32), String(repeating: "a", count: 31), String(repeating: "a", count: 64),
            "é" + String(repeating: "a", count: 30),
        ])
    func garbage(_ text: String) throws {
        #expect(codec.decode(text, tag: codec.tag(of: try bucket("app", "ann", "notes"))) == nil)
    }
}
