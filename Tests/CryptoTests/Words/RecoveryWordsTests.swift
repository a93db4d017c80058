import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@Suite("Recovery words")
struct RecoveryWordsTests {
    private static let isAtHand = Vectors.has("container/bip39-english.json")

    private static func entropy(_ text: String) throws(RecoveryWords.Failure) -> [UInt8] {
        let outcome = Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(RecoveryWords.Failure) in
                var room = [UInt8](repeating: 0, count: 32)
                var count = 0
                var failure: RecoveryWords.Failure?
                room.withUnsafeMutableBytes { room in
                    do throws(RecoveryWords.Failure) { count = try RecoveryWords.read(bytes, to: room) } catch {
                        failure = error
                    }
                }
                if let failure { throw failure }
                return Array(room.prefix(count))
            }
        }
        return try outcome.get()
    }

    private static func words(_ entropy: [UInt8]) -> String? {
        var room = [UInt8](repeating: 0, count: RecoveryWords.writtenBytesMax)
        let count = entropy.withUnsafeBytes { entropy in
            room.withUnsafeMutableBytes { RecoveryWords.write(entropy, to: $0) }
        }
        return count.map { String(decoding: room.prefix($0), as: UTF8.self) }
    }

    @Test(
        "every published phrase is its entropy, in both directions",
        .enabled(if: isAtHand, "needs the container vectors"))
    func published() throws {
        let cases = try #require(Vectors.json("container/bip39-english.json").arrayValue)
        #expect(cases.count == 24)
        for each in cases {
            #expect(try Self.entropy(each.text("mnemonic")) == each.hex("entropy"))
            #expect(Self.words(try each.hex("entropy")) == (try each.text("mnemonic")))
        }
    }

    @Test("entropy of every length gives its words, and the words give it back")
    func lengths() throws {
        var random = SeededRandom(seed: 39)
        for count in RecoveryWords.entropyCounts {
            for _ in 0..<20 {
                let entropy = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
                let text = try #require(Self.words(entropy))
                #expect(text.split(separator: " ").count == count * 3 / 4)
                #expect(try Self.entropy(text) == entropy)
            }
        }
        for count in [0, 1, 15, 17, 31, 33, 64] { #expect(Self.words(.init(repeating: 1, count: count)) == nil) }
    }

    @Test("capitals, any white space and words cut to four letters are accepted")
    func entry() throws {
        let zeros = [UInt8](repeating: 0, count: 16)
        let eleven = String(repeating: "abandon ", count: 11)
        for text in [
            eleven + "about", eleven.uppercased() + "About", "\n\t " + eleven + "  about\r\n",
            eleven.replacing(" ", with: "\u{3000}") + "about", eleven.replacing(" ", with: "\u{A0}\u{2003}") + "about",
            eleven.replacing("abandon", with: "aban") + "abou", eleven.replacing("abandon", with: "Abando") + "about",
        ] { #expect(try Self.entropy(text) == zeros, "\(text)") }
    }

    @Test("a word of three letters is read as itself, and four letters are enough for a longer word")
    func prefixes() throws {
        // Phrases whose first words are neighbours: each of the first begins one of the second.
        for (word, cut) in [
            ("act", "act"), ("action", "acti"), ("actor", "acto"), ("add", "add"), ("addict", "addi"), ("zoo", "zoo"),
        ] {
            let number = try #require((0..<2_048).first { Self.phrase($0).prefix { $0 != " " } == word })
            let phrase = Self.phrase(number)
            #expect(try Self.entropy(cut + phrase.dropFirst(word.count)) == Self.entropy(phrase))
        }
        #expect(Self.place(of: "aba") == 12 && Self.place(of: "ab") == 12 && Self.place(of: "zooo") == 12)
    }

    /// A phrase of twelve words, the first of which has this number in the list.
    private static func phrase(_ number: Int) -> String {
        words([UInt8(number >> 3), UInt8(number & 7) << 5] + .init(repeating: 0, count: 14)) ?? ""
    }

    /// nil: the word is known; otherwise the place of the unknown word, which is the last of twelve.
    private static func place(of word: String) -> Int? {
        do {
            _ = try entropy(String(repeating: "abandon ", count: 11) + word)
            return nil
        } catch {
            guard case .unknownWord(let place) = error else { return nil }
            return place
        }
    }

    @Test("other counts, other letters and too long a text are refused, with the place")
    func refusals() {
        let eleven = String(repeating: "abandon ", count: 11)
        for text in [
            "", " ", "abandon", eleven, eleven + "about abandon", eleven + eleven + "about about about",
        ] {
            #expect(throws: RecoveryWords.Failure.count) { try Self.entropy(text) }
        }
        for (text, place) in [
            ("abandon abandonx", 2), ("x", 1), ("abandon zebraz", 2), ("abandon abandon ábout", 3),
            // Punctuation separates words, and "don" is not a word.
            ("aban-don", 2), ("abandonabandon", 1), ("\u{212A}ing", 1),
        ] {
            #expect(throws: RecoveryWords.Failure.unknownWord(place)) { try Self.entropy(text + " " + eleven) }
        }
        let long = eleven + "about" + .init(repeating: " ", count: RecoveryWords.textBytesMax)
        #expect(throws: RecoveryWords.Failure.count) { try Self.entropy(long) }
    }

    @Test("a wrong checksum is reported without a place")
    func checksum() {
        let eleven = String(repeating: "abandon ", count: 11)
        #expect(throws: RecoveryWords.Failure.checksum) { try Self.entropy(eleven + "abandon") }
        #expect(throws: RecoveryWords.Failure.checksum) { try Self.entropy("zoo " + eleven) }
    }

    @Test("bytes that are not UTF-8 are an unknown word")
    func notUTF8() {
        let bytes: [UInt8] = [0xFF, 0x20, 0xC3]
        var room = [UInt8](repeating: 7, count: 32)
        #expect(throws: RecoveryWords.Failure.unknownWord(1)) {
            try bytes.withUnsafeBytes { bytes in
                try room.withUnsafeMutableBytes { try RecoveryWords.read(bytes, to: $0) }
            }
        }
        #expect(room == .init(repeating: 7, count: 32))
    }

    @Test("T24: phrases with one word changed, 24 each of 1,000, pass the checksum as often as expected: 1 in 256")
    func oneWordChanged() throws {
        var random = SeededRandom(seed: 24)
        // All words, from phrases themselves: each word is the first of some phrase.
        let list = try (0..<2_048).map { number in
            let entropy = [UInt8(number >> 3), UInt8(number & 7) << 5] + .init(repeating: 0, count: 30)
            return String(try #require(Self.words(entropy)).prefix { $0 != " " })
        }
        #expect(Set(list).count == 2_048)
        var (tried, taken) = (0, 0)
        for _ in 0..<1_000 {
            let entropy = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
            var phrase = try #require(Self.words(entropy)).split(separator: " ").map(String.init)
            for place in 0..<24 {
                let right = phrase[place]
                repeat { phrase[place] = list[Int.random(in: 0..<2_048, using: &random)] } while phrase[place] == right
                if let found = try? Self.entropy(phrase.joined(separator: " ")) {
                    taken += 1
                    #expect(found != entropy)
                }
                tried += 1
                phrase[place] = right
            }
        }
        // 93.75 are expected of 24,000; the standard deviation is 9.7. Both bounds are five of them away.
        #expect(tried == 24_000 && (45...143).contains(taken), "\(taken) of \(tried)")
    }

    @Test("the word list is the published one, by its SHA-256, a word a line")
    func list() throws {
        var text = [UInt8]()
        for number in 0..<2_048 {
            let entropy = [UInt8(number >> 3), UInt8(number & 7) << 5] + .init(repeating: 0, count: 14)
            text += try #require(Self.words(entropy)).utf8.prefix { $0 != UInt8(ascii: " ") } + [0x0A]
        }
        #expect(
            Hex.encode(Hash.sha256(text)) == "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda")
    }
}
