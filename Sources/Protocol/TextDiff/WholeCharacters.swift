/// Names for characters outside of the basic plane, one unit each, so that texts are compared by characters.
///
/// Compared by halves, a pair may be found in the halves of two others: of "𠀀𠀁" before and "𠀁" after, the first half of
/// one and the second half of the other stay. Made whole again (`TextDiff.keepPairsWhole`) that is a character taken
/// out and put back, over which somebody's deletion of it would be undone.
struct WholeCharacters {
    private var names = [UInt32: UInt16]()
    private var characters = [UInt16: [UInt16]]()

    /// - Returns: nil when there are no pairs, half of one stands alone, or there are more than there are unused units:
    ///   then the texts are compared as they are.
    init?(_ texts: [UInt16]...) {
        guard texts.contains(where: { $0.contains(where: UTF16Text.isSurrogate) }), texts.allSatisfy(UTF16Text.isWhole)
        else { return nil }
        var isUsed = Array(repeating: false, count: 1 << 16)
        for text in texts { for unit in text { isUsed[Int(unit)] = true } }
        // From above: line breaks, by which long texts are compared first, are never among these.
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

    /// The text with a name in place of each pair.
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

    /// The pairs again in place of their names.
    func spelled(_ text: [UInt16]) -> [UInt16] {
        var spelled = [UInt16]()
        spelled.reserveCapacity(text.count + text.count / 2)
        for unit in text {
            if let pair = characters[unit] { spelled += pair } else { spelled.append(unit) }
        }
        return spelled
    }
}
