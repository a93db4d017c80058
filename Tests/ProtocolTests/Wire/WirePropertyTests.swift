import Testing
import ThicketFuzz
import ThicketProtocol
import ThicketTestSupport

@Suite struct WirePropertyTests {
    static let seed: UInt64 = 0x57_49_52_45

    @Test("random changes come back as they were sent, their diffs byte by byte")
    func changes() throws {
        var source = RandomJSON(seed: Self.seed)
        for round in 0..<150 {
            let change = ChangeRequest(
                key: source.text(), ccid: source.text(), operation: .init(source.text()),
                sv: Bool.random(using: &source.random) ? .random(in: 0...(1 << 40), using: &source.random) : nil,
                diff: .value(.object(source.object())),
                object: Bool.random(using: &source.random) ? .value(source.value()) : nil)
            let message = ClientMessage.channel(.random(in: 0...999_999, using: &source.random), .change(change))
            let bytes = message.encoded()
            #expect(!bytes.contains(0x0A), "seed \(Self.seed), round \(round)")
            guard case .channel(_, .change(var read)) = try ClientMessage(parsing: bytes) else {
                Issue.record("seed \(Self.seed), round \(round)")
                continue
            }
            #expect(read.diff?.bytes == change.diff?.bytes, "seed \(Self.seed), round \(round)")
            if read.object == nil, change.object?.value.isNull == true { read.object = .value(.null) }
            #expect(read == change, "seed \(Self.seed), round \(round)")
        }
    }

    @Test("random messages, whole, cut and damaged, never trap either side")
    func damage() {
        var source = RandomJSON(seed: Self.seed)
        let commands = ["init", "i", "e", "cv", "c", "index", "auth", "o", "?", "x", ""]
        for _ in 0..<1_500 {
            let command = commands.randomElement(using: &source.random) ?? ""
            var bytes: [UInt8] = Array("\(Int.random(in: 0...3, using: &source.random)):\(command):".utf8)
            bytes += source.value(depth: 2).serialized()
            if Bool.random(using: &source.random) {
                bytes.removeLast(.random(in: 0...bytes.count, using: &source.random))
            }
            if !bytes.isEmpty, Bool.random(using: &source.random) {
                bytes[.random(in: 0..<bytes.count, using: &source.random)] = .random(in: 0...255, using: &source.random)
            }
            // The targets trap on any broken rule.
            fuzzWireClient(bytes)
            fuzzWireServer(bytes)
        }
    }
}
