import Testing
import ThicketCrypto

@Suite("Padding hides lengths and gives back exactly what was padded")
struct PaddingTests {
    @Test(
        "Padmé sizes are those of the definition",
        arguments: [
            (0, 0), (1, 1), (2, 2), (3, 3), (8, 8), (9, 10), (15, 16), (100, 104), (1_000, 1_024), (1_025, 1_088),
            (65_537, 67_584), (1_000_000, 1_015_808), ((1 << 30) + 1, 1_107_296_256),
        ])
    func padme(count: Int, size: Int) { #expect(Padding.padme.size(of: count) == size) }

    @Test("Padmé adds 12 % at most, never shrinks, and gives few sizes")
    func overhead() {
        var sizes = Set<Int>()
        for count in 1...40_000 {
            let size = Padding.padme.size(of: count)
            #expect(size >= count && Double(size - count) <= 0.12 * Double(count))
            #expect(Padding.padme.size(of: size) == size)
            sizes.insert(size)
        }
        #expect(sizes.count < 250)
    }

    @Test("a padded text comes back, whatever its length", arguments: [Padding.none, .multiple(of: 64), .padme])
    func back(rule: Padding) throws {
        for count in Array(0...200) + [1_000, 70_000] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let padded = try #require(rule.pad(bytes))
            #expect(rule.unpad(padded) == bytes && padded.count == rule.size(of: 4 + count))
            if count < 1 << 16 {
                let short = try #require(rule.pad(bytes, lengthBytes: 2))
                #expect(rule.unpad(short, lengthBytes: 2) == bytes)
            }
        }
        #expect(rule.pad(.init(repeating: 0, count: 1 << 16), lengthBytes: 2) == nil)
    }

    @Test("padding writes the length, the bytes, then zeros")
    func layout() {
        #expect(Padding.multiple(of: 8).pad([1, 2, 3]) == [0, 0, 0, 3, 1, 2, 3, 0])
        #expect(Padding.multiple(of: 8).pad([]) == [0, 0, 0, 0, 0, 0, 0, 0])
    }

    @Test("a filling that is not zero, a length beyond the end and another size are refused")
    func refusals() {
        let rule: Padding = .multiple(of: 8)
        for bytes: [UInt8] in [
            [], [0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 3, 1, 2, 3, 1], [0, 0, 0, 5, 1, 2, 3, 4], [0, 0, 0, 1, 1, 0, 0],
            [255, 255, 255, 255, 0, 0, 0, 0], [0, 0, 0, 1, 1] + .init(repeating: 0, count: 11),
            [128, 0, 0, 0, 0, 0, 0, 0],
        ] { #expect(rule.unpad(bytes) == nil, "\(bytes)") }
        #expect(rule.unpad([0, 0, 0, 1, 1, 0, 0, 0]) == [1])
    }
}
