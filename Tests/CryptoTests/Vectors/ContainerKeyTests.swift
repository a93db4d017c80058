import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

/// Keys of nodes and their wraps, compared with the published bytes.
@Suite("Container vectors: node keys and key wraps")
struct ContainerKeyTests {
    @Test("node keys give their subkeys and commitments", .enabled(if: Vectors.has("container/node-keys.json")))
    func nodeKeys() throws {
        let cases = try #require(try VectorFile("container/node-keys.json").root["cases"])
        var count = 0
        for node in cases.elements {
            let each = VectorCase(node: node, group: node)
            let key = try NodeKey(each.secret("node_key"))
            for use in NodeKey.Use.allCases {
                #expect(try key.subkey(use) == (try each.secret(use.rawValue)))
            }
            #expect(try key.commitment() == (try each.bytes("commit")))
            #expect(try key.isCommitted(by: each.bytes("commit")))
            // A commitment cut in half is not a commitment.
            #expect(try !key.isCommitted(by: Array(each.bytes("commit").prefix(16))))
            count += 1
        }
        #expect(count == 4)
    }

    @Test("wraps are sealed to the same bytes and opened", .enabled(if: Vectors.has("container/key-wraps.json")))
    func wraps() throws {
        var count = 0
        try SealRecorder.$current.withValue(SealRecorder()) {
            for node in try VectorFile("container/key-wraps.json").root.elements {
                let each = VectorCase(node: node, group: node)
                let place = try Self.place(node)
                #expect(try place.info == (try each.bytes("info")))
                let receiver = try X25519.PrivateKey(each.secret("recipient_secret"))
                #expect(receiver.publicKey.octets == (try each.bytes("recipient_public")))
                let wrap = try each.bytes("wrap")
                #expect(wrap.count == KeyWrap.bytesCount && KeyWrap.bytesCount == 81)
                let key = try each.secret("node_key")
                let made = try place.seal(
                    key, AEADSuite(number: wrap[0]), to: receiver.publicKey,
                    ephemeral: X25519.PrivateKey(each.secret("ephemeral_secret")))
                #expect(made == wrap)
                #expect(try place.open(wrap, with: receiver) == key)
                count += 1
            }
        }
        #expect(count == 6)
    }

    private static func place(_ node: JSONNode) throws -> KeyWrap {
        KeyWrap(
            owner: try #require(node["owner"]?.string), app: try #require(node["app"]?.string),
            node: try #require(node["node_id"]?.string), epoch: UInt32(try #require(node["epoch"]?.int64)),
            recipient: try #require(node["recipient"]?.string),
            recipientKey: try #require(node["recipient_key_id"]?.string))
    }
}
