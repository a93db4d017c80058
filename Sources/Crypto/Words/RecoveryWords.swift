// Linux only: OpenSSL; on Apple platforms: CryptoKit's SHA256 and memset_s.
internal import COpenSSL

/// Recovery words: encodes bytes as English words (BIP-39), and decodes them. The seed derivation of BIP-39 is not
/// used.
///
/// The entropy is a secret, and so are the words. Both stay in the caller's buffers, which the caller wipes; no copy is
/// kept here, and errors contain no words. The time of a word lookup depends on the word, which is acceptable because
/// users type their own words on their own device.
public enum RecoveryWords {
    /// Why words are refused.
    public enum Failure: Error, Sendable, Hashable {
        /// The number of words is not 12, 15, 18, 21 or 24.
        case count
        /// The word at this place, counted from 1, is not in the list.
        case unknownWord(Int)
        /// All words are in the list, but the checksum does not match. It does not reveal which word is wrong.
        case checksum
    }

    /// Words of an account's recovery text: 32 bytes.
    public static let wordCount = 24
    /// Bytes of entropy that can be encoded as words: 128 to 256 bits in steps of 32.
    public static let entropyCounts: [Int] = [16, 20, 24, 28, 32]
    /// Bytes of text that `read` accepts at most.
    public static let textBytesMax = 4_096
    /// Bytes that any words need at most: 24 words of eight letters, each with a space.
    public static let writtenBytesMax = 24 * 9

    private static let bitsOfWord = 11

    /// Encodes bytes as words, in lower case, separated by one space.
    ///
    /// - Parameters:
    ///   - entropy: 16, 20, 24, 28 or 32 bytes.
    ///   - text: memory of at least `writtenBytesMax` bytes.
    /// - Returns: the number of bytes written; nil for another number of bytes of entropy, or too little memory.
    public static func write(_ entropy: UnsafeRawBufferPointer, to text: UnsafeMutableRawBufferPointer) -> Int? {
        guard entropyCounts.contains(entropy.count), text.count >= writtenBytesMax else { return nil }
        var check = checksum(entropy)
        defer { OPENSSL_cleanse(&check, 1) }
        var written = 0
        var (bits, width): (UInt32, Int) = (0, 0)
        for place in 0...entropy.count {
            // All of the entropy, then as many bits of the checksum as fill the last word.
            let isCheck = place == entropy.count
            let length = isCheck ? entropy.count / 4 : 8
            bits = bits << UInt32(length) | UInt32(isCheck ? check >> UInt8(8 - length) : entropy[place])
            width += length
            while width >= bitsOfWord {
                width -= bitsOfWord
                append(EnglishWords.packed[Int(bits >> UInt32(width) & 2_047)], to: text, &written)
            }
            bits &= (1 << UInt32(width)) - 1
        }
        return written
    }

    /// Decodes typed words. It ignores case, and white space, digits and punctuation between words; the first four
    /// letters of a word, or more of them, may replace it.
    ///
    /// - Parameters:
    ///   - text: UTF-8.
    ///   - entropy: memory of at least 32 bytes; an error leaves it unchanged.
    /// - Returns: the number of bytes of entropy.
    /// - Throws: `Failure` when they are not valid recovery words.
    public static func read(
        _ text: UnsafeRawBufferPointer, to entropy: UnsafeMutableRawBufferPointer
    ) throws(Failure) -> Int {
        guard text.count <= textBytesMax, entropy.count >= 32 else { throw .count }
        // 24 words are 33 bytes: 32 and the checksum.
        var packed: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
        let outcome = withUnsafeMutableBytes(of: &packed) { room in
            defer { OPENSSL_cleanse(room.baseAddress, room.count) }
            return Result { () throws(Failure) in try read(text, through: room, to: entropy) }
        }
        return try outcome.get()
    }

    private static func read(
        _ text: UnsafeRawBufferPointer, through room: UnsafeMutableRawBufferPointer,
        to entropy: UnsafeMutableRawBufferPointer
    ) throws(Failure) -> Int {
        var words = WordReader(text)
        var (count, bits, width, place): (Int, UInt32, Int, Int) = (0, 0, 0, 0)
        while let word = words.next() {
            count += 1
            guard count <= wordCount else { throw .count }
            guard let index: Int = index(of: word) else { throw .unknownWord(count) }
            bits = bits << UInt32(bitsOfWord) | UInt32(index)
            width += bitsOfWord
            while width >= 8 {
                width -= 8
                room[place] = UInt8(truncatingIfNeeded: bits >> UInt32(width))
                place += 1
            }
            bits &= (1 << UInt32(width)) - 1
        }
        // One in 33 bits is checksum: 12 words are 16 bytes and 4 bits, 24 words are 32 bytes and 8 bits.
        let size = count * 4 / 3
        guard count % 3 == 0, entropyCounts.contains(size) else { throw .count }
        let length = size / 4
        let given = length == 8 ? room[size] : UInt8(bits)
        let known = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<size])
        guard checksum(known) >> UInt8(8 - length) == given else { throw .checksum }
        entropy.copyMemory(from: known)
        return size
    }

    /// The first byte of SHA-256(entropy).
    private static func checksum(_ entropy: UnsafeRawBufferPointer) -> UInt8 {
        var state = SHA256_CTX()
        var digest: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        defer {
            OPENSSL_cleanse(&state, MemoryLayout<SHA256_CTX>.size)
            OPENSSL_cleanse(&digest, 32)
        }
        thicket_sha256_init(&state)
        thicket_sha256_update(&state, entropy.baseAddress, entropy.count)
        return withUnsafeMutableBytes(of: &digest) { bytes in
            thicket_sha256_final(bytes.baseAddress, &state)
            return bytes[0]
        }
    }

    private static func append(_ word: UInt64, to text: UnsafeMutableRawBufferPointer, _ written: inout Int) {
        if written > 0 {
            text[written] = UInt8(ascii: " ")
            written += 1
        }
        var rest = word
        while rest != 0 {
            text[written] = UInt8(rest >> 56)
            written += 1
            rest <<= 8
        }
    }

    /// The index of the word, or for four letters or more, of the only word that begins with them.
    private static func index(of word: WordReader.Word) -> Int? {
        guard (1...8).contains(word.count) else { return nil }
        let list = EnglishWords.packed
        // The first word that is not before it in order. Zeros after its letters make it the first of all words that
        // begin with them.
        var (low, high) = (0, list.count)
        while low < high {
            let middle = (low + high) / 2
            if list[middle] < word.letters { low = middle + 1 } else { high = middle }
        }
        guard low < list.count else { return nil }
        if list[low] == word.letters { return low }
        let mask = UInt64.max << UInt64(8 * (8 - word.count))
        return word.count >= 4 && list[low] & mask == word.letters ? low : nil
    }
}

/// Splits text into words at white space, digits and punctuation, as in a numbered list.
private struct WordReader: ~Copyable {
    struct Word {
        /// In the form of `EnglishWords.packed`; 0 when the word contains other characters than the letters a to z.
        var letters: UInt64 = 0
        /// Number of characters; 9 for more than eight, or for other characters than letters.
        var count = 0

        mutating func append(_ scalar: Unicode.Scalar) {
            let letter = scalar.value | 0x20
            guard count < 8, scalar.isASCII, (0x61...0x7A).contains(letter) else {
                (letters, count) = (0, 9)
                return
            }
            count += 1
            letters |= UInt64(letter) << UInt64(8 * (8 - count))
        }
    }

    private var bytes: UnsafeRawBufferPointer.Iterator
    private var decoder = Unicode.UTF8()

    init(_ text: UnsafeRawBufferPointer) { bytes = text.makeIterator() }

    private static func isBetweenWords(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return !(0x61...0x7A).contains(scalar.value | 0x20) || scalar.value < 0x41 }
        switch scalar.properties.generalCategory {
        case .decimalNumber, .otherNumber, .letterNumber, .connectorPunctuation, .dashPunctuation, .openPunctuation,
            .closePunctuation, .initialPunctuation, .finalPunctuation, .otherPunctuation, .mathSymbol, .otherSymbol:
            return true
        default: return scalar.properties.isWhitespace
        }
    }

    mutating func next() -> Word? {
        var word = Word()
        while true {
            switch decoder.decode(&bytes) {
            case .scalarValue(let scalar) where Self.isBetweenWords(scalar):
                if word.count > 0 { return word }
            case .scalarValue(let scalar): word.append(scalar)
            case .error: word = Word(letters: 0, count: 9)
            case .emptyInput: return word.count > 0 ? word : nil
            }
        }
    }
}
