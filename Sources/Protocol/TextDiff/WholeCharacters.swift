/// Replaces characters outside the basic plane by names of one unit each, so that texts are compared by characters.
///
/// If halves are compared, a pair may be found in the halves of two others: from "𠀀𠀁" to "𠀁", the first half of one and
/// the second half of the other are kept. When such pairs are completed (`TextDiff.keepPairsWhole`), a character is
/// deleted and inserted again, and another client's deletion of it would be undone.
struct WholeCharacters {
    private var names = [UInt32: UInt16]()
    private var characters = [UInt16: [UInt16]]()

    /// - Returns: nil when the texts contain no pairs, when they contain half of a pair, or when they contain more
    ///   different pairs than there are unused units; the texts are then compared as they are.
    init?(_ texts: [UInt16]...) {
        guard texts.contains(where: { $0.contains(where: UTF16Text.isSurrogate) }), texts.allSatisfy(UTF16Text.isWhole)
        else { return nil }
        var isUsed = Array(repeating: false, count: 1 << 16)
        for text in texts { for unit in text { isUsed[Int(unit)] = true } }
        // Searches from the highest unit down, so that a name is never a line break, by which long texts are compared
        // first.
        var next = 0xFFFF
        for text in texts {
            for place in text.indices where UTF16Text.isHigh(text[place]) {
                let pair = UInt32(text[place]) << 16 | UInt32(text[place + 1])
                guard names[pair] == nil else { continue }
                while next > 0, isUsed[next] || UTF16Text.isSurrogate(UInt16(next)) { next -= 1 }
                guard next > 0x20 else { return nil }
                names[pair] = UInt16(next)
                characters[UInt16(next)] = [text[place], text[place + 1]]
                next -= 1
            }
        }
    }

    /// The text with each pair replaced by its name.
    func named(_ text: [UInt16]) -> [UInt16] {
        var named = [UInt16]()
        named.reserveCapacity(text.count)
        var place = 0
        while place < text.count {
            let isPair = UTF16Text.isHigh(text[place])
            if isPair, let name = names[UInt32(text[place]) << 16 | UInt32(text[place + 1])] {
                named.append(name)
            } else {
                named.append(text[place])
            }
            place += isPair ? 2 : 1
        }
        return named
    }

    /// The text with each name replaced by its pair.
    func spelled(_ text: [UInt16]) -> [UInt16] {
        var spelled = [UInt16]()
        spelled.reserveCapacity(text.count + text.count / 2)
        for unit in text {
            if let pair = characters[unit] { spelled += pair } else { spelled.append(unit) }
        }
        return spelled
    }
}
