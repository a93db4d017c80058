import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

/// RFC 9180's own values, the accumulated ones, and ours for AES-256-GCM in the other modes.
@Suite("HPKE: published vectors")
struct HPKEVectorTests {
    /// One exchange with everything that a file says of it.
    private struct Setup {
        let each: VectorCase
        let cipher: HPKE.Cipher
        let receiver: X25519.PrivateKey
        let info: [UInt8]
        let sender: X25519.PrivateKey?
        let psk: HPKE.PresharedSecret?
        let ephemeral: X25519.PrivateKey

        init(_ node: JSONNode) throws {
            each = VectorCase(node: node, group: node)
            #expect(try each.number("kem_id") == 0x20 && each.number("kdf_id") == 1)
            cipher = try #require(HPKE.Cipher(rawValue: UInt16(try each.number("aead_id"))))
            info = try each.bytes("info")
            // The keys, derived from their material and as published.
            receiver = try .derived(from: each.secret("ikmR"))
            #expect(receiver.secret == (try each.secret("skRm")))
            #expect(receiver.publicKey.octets == (try each.bytes("pkRm")))
            ephemeral = try .derived(from: each.secret("ikmE"))
            sender = node["ikmS"] == nil ? nil : try .derived(from: each.secret("ikmS"))
            psk = node["psk"] == nil ? nil : try .init(each.secret("psk"), id: each.bytes("psk_id"))
        }

        func makeSender() throws -> HPKE.Sender {
            try HPKE.Sender(
                cipher, to: receiver.publicKey, info: info, sender: sender, psk: psk, ephemeral: ephemeral)
        }

        func makeReceiver() throws -> HPKE.Receiver {
            try HPKE.Receiver(
                cipher, encapsulated: each.bytes("enc"), with: receiver, info: info, sender: sender?.publicKey, psk: psk
            )
        }

        func list(_ name: String) -> [VectorCase] {
            (each.node[name]?.elements.map { $0 } ?? []).map { VectorCase(node: $0, group: $0) }
        }
    }

    @Test(
        "every setup, message and export, in all four modes and with every cipher of the files, is as published",
        .enabled(if: Vectors.has("hpke/x25519-aes256gcm-generated.json")),
        arguments: [("rfc9180-appendix-a-x25519", 12, 48, 36), ("x25519-aes256gcm-generated", 4, 24, 12)])
    func published(name: String, setupCount: Int, messageCount: Int, exportCount: Int) throws {
        var count: (setups: Int, messages: Int, exports: Int) = (0, 0, 0)
        try SealRecorder.$current.withValue(SealRecorder()) {
            for node in try VectorFile("hpke/\(name).json").root.elements {
                let setup = try Setup(node)
                count.setups += 1
                try intermediate(setup)
                count.messages += try messages(of: setup)
                count.exports += try exports(of: setup)
            }
        }
        #expect(count == (setupCount, messageCount, exportCount))
    }

    private func intermediate(_ setup: Setup) throws {
        let sender = try setup.makeSender()
        let values = sender.intermediate
        let each = setup.each
        #expect(sender.encapsulated == (try each.bytes("enc")))
        #expect(values.context == (try each.bytes("key_schedule_context")))
        #expect(values.secret == (try each.secret("secret")))
        #expect(values.nonce == (try each.bytes("base_nonce")))
        #expect((values.key ?? SecureBytes(copying: [])) == (try each.secret("key")))
    }

    private func messages(of setup: Setup) throws -> Int {
        var sender = try setup.makeSender()
        var receiver = try setup.makeReceiver()
        let all = setup.list("encryptions")
        for each in all {
            let number = UInt64(try each.number("seq"))
            sender.skip(to: number)
            receiver.skip(to: number)
            let (clear, data, sealed) = (
                try each.bytes("pt"), try each.bytes("aad"), try each.bytes("ct")
            )
            #expect(try sender.seal(clear, data: data) == sealed)
            expectFailure("message \(number) with other data") { _ = try receiver.open(sealed, data: data + [0]) }
            #expect(try receiver.open(sealed, data: data) == clear)
            // Its number has passed.
            expectFailure("message \(number) again") { _ = try receiver.open(sealed, data: data) }
        }
        return all.count
    }

    private func exports(of setup: Setup) throws -> Int {
        let sender = try setup.makeSender()
        let receiver = try setup.makeReceiver()
        let all = setup.list("exports")
        for each in all {
            let (context, count): ([UInt8], Int) = (try each.bytes("exporter_context"), try each.number("L"))
            let wanted = try each.secret("exported_value")
            #expect(try sender.export(context, count: count) == wanted)
            #expect(try receiver.export(context, count: count) == wanted)
        }
        return all.count
    }

    @Test(
        "1,000 random messages and 1,000 exports of each cipher come to the published sums",
        .enabled(if: Vectors.has("hpke/rfc9180-accumulated-x25519.json")))
    func accumulated() throws {
        var count: (messages: Int, exports: Int) = (0, 0)
        try SealRecorder.$current.withValue(SealRecorder()) {
            for node in try VectorFile("hpke/rfc9180-accumulated-x25519.json").root.elements {
                let setup = try Setup(node)
                if let wanted = node["encryptions_accumulated"]?.string {
                    #expect(Hex.encode(try accumulatedMessages(setup)) == wanted)
                    count.messages += 1_000
                }
                #expect(Hex.encode(try accumulatedExports(setup)) == node["exports_accumulated"]?.string)
                count.exports += 1_000
            }
        }
        #expect(count == (3_000, 4_000))
    }

    private func accumulatedMessages(_ setup: Setup) throws -> [UInt8] {
        var source = RandomSource()
        var sender = try setup.makeSender()
        var receiver = try setup.makeReceiver()
        var all = [UInt8]()
        for _ in 0..<1_000 {
            let (data, clear) = (source.draw(), source.draw())
            let sealed = try sender.seal(clear, data: data)
            #expect(try receiver.open(sealed, data: data) == clear)
            all += sealed
        }
        return Hash.shake128(all, count: 16)
    }

    private func accumulatedExports(_ setup: Setup) throws -> [UInt8] {
        var source = RandomSource()
        let sender = try setup.makeSender()
        let receiver = try setup.makeReceiver()
        var all = [UInt8]()
        for length in 0..<1_000 {
            let context = source.draw()
            // The published sum counts a length of 0, which is refused here.
            guard length > 0 else { continue }
            let secret = try sender.export(context, count: length)
            #expect(try receiver.export(context, count: length) == secret)
            secret.withUnsafeBytes { all += $0 }
        }
        return Hash.shake128(all, count: 16)
    }

    /// SHAKE128 of the empty text, from which lengths and bytes are drawn.
    private struct RandomSource {
        private var bytes = Hash.shake128([], count: 600_000)[...]

        mutating func draw() -> [UInt8] {
            let count = Int(bytes.removeFirst())
            defer { bytes = bytes.dropFirst(count) }
            return Array(bytes.prefix(count))
        }
    }
}
