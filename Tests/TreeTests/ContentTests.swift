import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

@Suite("Content in sections", .nonceWatch)
struct ContentTests {
    private static func content(_ random: inout SeededRandom, _ most: UInt64) -> NodeContent {
        func bytes() -> [UInt8] { (0..<random.next() % most).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        return NodeContent(metadata: bytes(), thumbnail: bytes(), data: bytes())
    }

    @Test("sections are read back as they were written, with and without padding")
    func roundTrip() throws {
        var random = SeededRandom(seed: 41)
        for round in 0..<300 {
            let content = Self.content(&random, 400)
            let padding: ContentPadding = round % 2 == 0 ? .standard : .none
            let plan = try ContentSpool(content, padding: padding, random: TreeCase.random(seed: 41))
            let stream = content.stream(plan.header)
            #expect(UInt64(stream.count) == plan.map.layout.length)
            #expect(padding == .none ? plan.header.padding == 0 : stream.count % 64 == 0)
            #expect(try NodeContent(stream: stream, sizes: content.sizes) == content)
        }
    }

    @Test("the header has the bytes of its table")
    func header() throws {
        let content = NodeContent(metadata: [1], thumbnail: [2, 3], data: [4, 5, 6])
        let plan = try ContentSpool(content, random: TreeCase.random(seed: 42))
        let digest = Array(Hash.sha256([2, 3]).prefix(8))
        let expected =
            [1] + [UInt8](repeating: 0, count: 7) + UInt64(1).octets + UInt64(2).octets + UInt64(3).octets
            + UInt64(58).octets + digest + [UInt8](repeating: 0, count: 16)
        #expect(plan.header.octets == expected && content.stream(plan.header).count == 128)
        #expect(try ContentHeader(octets: expected) == plan.header)
        #expect(Array(content.stream(plan.header)[64..<70]) == [1, 2, 3, 4, 5, 6])
    }

    @Test("every other byte in the header, and anything but zeros as padding, is refused")
    func damaged() throws {
        let content = NodeContent(metadata: [1], thumbnail: [2, 3], data: [4, 5, 6])
        let plan = try ContentSpool(content, random: TreeCase.random(seed: 43))
        let (stream, sizes) = (content.stream(plan.header), try content.sizes)
        for place in Array(0..<64) + Array(70..<128) {
            for bit: UInt8 in 0..<8 {
                var changed = stream
                changed[place] ^= 1 << bit
                let fault: ContentFault = place == 0 && changed[0] > 1 ? .newerFormat : .damaged
                #expect(throws: fault, "byte \(place)") { try NodeContent(stream: changed, sizes: sizes) }
            }
        }
        for count in 0..<stream.count {
            #expect(throws: ContentFault.damaged) { try NodeContent(stream: Array(stream[..<count]), sizes: sizes) }
        }
        #expect(throws: ContentFault.damaged) { try NodeContent(stream: stream + [0], sizes: sizes) }
        #expect(throws: ContentFault.damaged) {
            try NodeContent(stream: stream, sizes: SectionSizes(metadata: 1, thumbnail: 2, data: 4))
        }
        var thumbless = [UInt8](repeating: 0, count: 64)
        (thumbless[0], thumbless[40]) = (1, 1)
        #expect(throws: ContentFault.damaged) { try ContentHeader(octets: thumbless) }
    }

    @Test("content belongs into the record up to 8 KiB of sealed bytes, on both sides of the bound")
    func inlineBound() throws {
        let random = TreeCase.random(seed: 44)
        for (padding, last): (ContentPadding, Int) in [(.standard, 8_128 - 64), (.none, 8_176 - 64)] {
            for (count, isInline) in [(last, true), (last + 1, false)] {
                let content = NodeContent(data: [UInt8](repeating: 1, count: count))
                let plan = try ContentSpool(content, padding: padding, random: random)
                #expect(plan.isInline == isInline)
                #expect(try plan.seal(content).count == Int(plan.map.layout.sealedLength))
                #expect((plan.map.layout.sealedLength <= 8_192) == isInline)
            }
        }
    }

    @Test("a plan that was kept, or is read from a record, seals no content: its key has sealed one")
    func usedPlan() throws {
        let content = NodeContent(data: [UInt8](repeating: 1, count: 20_000))
        let plan = try ContentSpool(content, random: TreeCase.random(seed: 46))
        let kept = try #require(ContentSpool(octets: plan.octets))
        #expect(kept.isSealed && kept.octets == plan.octets)
        #expect(throws: ContentFault.damaged) { try kept.seal(content) }
        #expect(try plan.seal(content).count == Int(kept.map.layout.sealedLength))
    }

    @Test("padding adds at most 12 % to a blob and 63 bytes to a record, and leaves few different sizes")
    func padding() throws {
        var random = SeededRandom(seed: 45)
        var sizes = Set<UInt64>()
        for _ in 0..<20_000 {
            let length = 64 + random.next() >> (random.next() % 40 + 20)
            let padded = ContentPadding.standard.length(length)
            let isInline = padded + 16 <= 8_192
            #expect(padded >= length && (isInline ? padded - length < 64 : Double(padded) <= Double(length) * 1.12))
            #expect(ContentPadding.none.length(length) == length)
            sizes.insert(padded)
        }
        #expect(sizes.count < 1_500, "\(sizes.count)")
        // No size between: what is padded beyond the bound is not inline.
        for length in UInt64(7_900)...8_300 {
            let padded = ContentPadding.standard.length(length)
            #expect(length <= 8_128 ? padded + 16 <= 8_192 : padded + 16 > 8_192)
        }
    }

    @Test("the ranges of a plan are those of the sections: the thumbnail is at most two chunks beyond the header")
    func ranges() throws {
        let sizes = try SectionSizes(metadata: 1_000, thumbnail: 60_000, data: 300_000)
        let plan = try ContentSpool(sizes, random: TreeCase.random(seed: 46))
        let chunk = UInt64(ContentLayout.sealedChunkBytes)
        #expect(plan.map.headerRange == 0..<chunk && plan.map.frontRange == 0..<chunk)
        #expect(plan.map.sealedRange(of: .metadata) == 0..<chunk && plan.map.sealedRange(of: .thumbnail) == 0..<chunk)
        #expect(plan.map.sealedRange(of: .data).lowerBound == 0)
        let wide = try SectionSizes(metadata: 60_000, thumbnail: 65_000, data: 1 << 30)
        let map = try SectionMap(wide, plainLength: ContentPadding.standard.length(wide.length))
        #expect(map.sealedRange(of: .thumbnail) == 0..<2 * chunk && map.frontRange == 0..<2 * chunk)
        #expect(map.sealedRange(of: .data).lowerBound == chunk)
        #expect(try SectionMap(SectionSizes(), plainLength: 64).sealedRange(of: .data).isEmpty)
        #expect(throws: ContentFault.damaged) { try SectionMap(wide, plainLength: 1_000) }
        #expect(throws: ContentFault.tooLarge) { try SectionSizes(data: .max) }
        #expect(throws: ContentFault.tooLarge) { try SectionSizes(data: ContentLayout.lengthMax) }
        #expect(try SectionSizes(data: ContentLayout.lengthMax - 64).length == ContentLayout.lengthMax)
    }

    @Test("a blob is sealed by its plan in pieces, named by the record, and read by ranges from the opened node")
    func blob() throws {
        let trees = try TreeCase(seed: 47)
        let content = NodeContent(
            metadata: [UInt8](repeating: 1, count: 100), thumbnail: [UInt8](repeating: 2, count: 70_000),
            data: [UInt8](repeating: 3, count: 150_000))
        let plan = try ContentSpool(content, random: trees.random)
        var sealer = try ContentSealer(plan.key, length: plan.map.layout.length)
        var stored = [UInt8]()
        for part in [
            plan.header.octets, content.metadata, content.thumbnail, content.data,
            [UInt8](repeating: 0, count: Int(plan.header.padding)),
        ] {
            try part.withUnsafeBytes { try sealer.seal($0) { stored += $0 } }
        }
        try sealer.finish { stored += $0 }
        let node = try trees.node("big", below: trees.home, content: .blob(plan, BlobID(9)))
        guard case .blob(_, let length, let blob)? = node.record.data else { return #expect(Bool(false)) }
        #expect(length == UInt64(stored.count) && blob == BlobID(9))
        #expect(throws: NodeFault.self) { try node.inlineContent() }
        let (key, map) = try #require(try node.contentMap())
        let opener = try ContentOpener(key, length: map.layout.length, storedLength: length)
        var (thumbnail, fetched) = ([UInt8](), 0)
        let range = map.sizes.range(of: .thumbnail)
        try opener.read(
            range,
            from: { offset, room in
                #expect(map.sealedRange(of: .thumbnail).contains(offset))
                room.copyBytes(from: stored[Int(offset)..<Int(offset) + room.count])
                fetched += room.count
                return room.count
            }, { thumbnail += $0 })
        #expect(thumbnail == content.thumbnail && fetched == map.sealedRange(of: .thumbnail).count)
    }

    @Test("each plan has its own id and key, so that no key seals two contents")
    func plans() throws {
        let random = TreeCase.random(seed: 48)
        let content = NodeContent(data: [1])
        let (first, second) = (try ContentSpool(content, random: random), try ContentSpool(content, random: random))
        #expect(first.id != second.id && first.access.key != second.access.key)
        #expect(throws: ContentFault.damaged) { try first.seal(NodeContent(data: [1, 2])) }
        #expect(throws: ContentFault.damaged) { try first.seal(NodeContent(thumbnail: [1])) }
    }
}
