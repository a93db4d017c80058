import Testing
import ThicketProtocol
import ThicketTestSupport

@Suite struct JSONPropertyTests {
    static let seed: UInt64 = 0x4A53_4F4E

    @Test("a written value reads back equal, is written again byte for byte, and has the predicted size")
    func rounds() throws {
        var source = RandomJSON(seed: Self.seed)
        for round in 0..<400 {
            let value = source.value()
            let bytes = value.serialized()
            let again = try JSONValue(parsing: bytes)
            #expect(again == value, "seed \(Self.seed), round \(round)")
            #expect(again.hashValue == value.hashValue, "seed \(Self.seed), round \(round)")
            #expect(again.serialized() == bytes, "seed \(Self.seed), round \(round)")
            #expect(value.serializedSize == bytes.count, "seed \(Self.seed), round \(round)")
            #expect(!bytes.contains { $0 < 0x20 }, "seed \(Self.seed), round \(round)")
        }
    }

    @Test("no prefix of an object is an object: each ends in an error, never in a trap")
    func prefixes() {
        var source = RandomJSON(seed: Self.seed)
        for round in 0..<60 {
            let bytes = JSONValue.object(source.object()).serialized()
            for length in 0..<bytes.count {
                #expect(throws: JSONError(.unexpectedEnd, at: length), "seed \(Self.seed), round \(round)") {
                    try JSONDocument(parsing: bytes[..<length])
                }
            }
        }
    }

    @Test("a damaged text is refused, or read as another value that writes and reads the same")
    func damage() throws {
        var source = RandomJSON(seed: Self.seed)
        for round in 0..<1_500 {
            var bytes: [UInt8] = source.value().serialized()
            for _ in 0...Int.random(in: 0...2, using: &source.random) {
                let place = Int.random(in: 0..<bytes.count, using: &source.random)
                bytes[place] =
                    Bool.random(using: &source.random)
                    ? Array("\"\\[]{}:,0-.eu ".utf8).randomElement(using: &source.random) ?? 0
                    : UInt8.random(in: 0...255, using: &source.random)
            }
            guard let document: JSONDocument = try? .init(parsing: bytes) else { continue }
            let value = document.root.value
            #expect(try JSONValue(parsing: value.serialized()) == value, "seed \(Self.seed), round \(round)")
        }
    }

    @Test("every node's raw bytes are the very bytes of the text, and parsed alone give the same value")
    func raw() throws {
        var source = RandomJSON(seed: Self.seed)
        for round in 0..<60 {
            // White space between tokens, so that the raw bytes are not simply compact.
            let spaced = Self.spaced(source.value().serialized(), &source.random)
            var nodes = [try JSONDocument(parsing: spaced).root]
            while let node = nodes.popLast() {
                #expect(
                    try JSONDocument(parsing: node.rawBytes).root.value == node.value,
                    "seed \(Self.seed), round \(round)")
                #expect(node.rawBytes == spaced[node.rawBytes.startIndex..<node.rawBytes.endIndex])
                var writer = JSONWriter()
                writer.write(node)
                #expect(!writer.bytes.contains { $0 == 0x0A || $0 == 0x0D })
                #expect(try JSONValue(parsing: writer.bytes) == node.value)
                nodes.append(contentsOf: node.elements)
                nodes.append(contentsOf: node.pairs.map(\.value))
                for (key, value) in node.pairs { #expect(node[key]?.rawBytes.startIndex == value.rawBytes.startIndex) }
            }
        }
    }

    private static func spaced(_ compact: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        var bytes: [UInt8] = []
        var isInString = false
        var isEscaped = false
        for byte in compact {
            let isPunctuation = Array("[]{}:,".utf8).contains(byte)
            func space() {
                let spaces: [[UInt8]] = [[], [0x20], [0x0A], [0x0D, 0x0A, 0x09]]
                bytes.append(contentsOf: spaces.randomElement(using: &random) ?? [])
            }
            if !isInString, isPunctuation { space() }
            bytes.append(byte)
            if !isInString, isPunctuation { space() }
            if byte == 0x22, !isEscaped { isInString.toggle() }
            isEscaped = byte == 0x5C && !isEscaped
        }
        return bytes
    }
}
