import ThicketTreeShape

extension NodeName {
    /// Bytes of what counts as an extension at most, without its dot.
    private static let extensionBytesMax = 16
    /// Digits of what counts as a number at the end of a stem at most.
    private static let numberDigitsMax = 9

    /// A name like this one that no sibling has: this one if it is free, otherwise with the first free number from 2.
    ///
    /// The number is behind the stem and a blank; the extension stays: `a.txt` becomes `a 2.txt`, `42.pdf` becomes
    /// `42 2.pdf`. A number that is there already is counted on: `a 2.txt` becomes `a 3.txt`. If the result would be
    /// too long, the stem is shortened.
    ///
    /// - Parameter isTaken: whether a sibling has a name with this folded form. It may be called once more than there
    ///   are siblings.
    public func free(_ isTaken: (_ folded: [UInt8]) -> Bool) -> NodeName {
        if !isTaken(folded) { return self }
        let parts = numbered
        var number = parts.number + 1
        while true {
            let ending = " \(number)" + parts.ending
            let stem = Self.shortened(parts.stem, to: Self.bytesMax - ending.utf8.count)
            if let name = try? NodeName(stem + ending), !isTaken(name.folded) { return name }
            number += 1
        }
    }

    /// A name like this one that is not the same as any of these.
    public func free(among siblings: some Sequence<NodeName>) -> NodeName {
        let taken = Set(siblings.map(\.folded))
        return free(taken.contains)
    }

    /// Letters of the id in the name of a deposit.
    private static let markLetters = 8

    /// The name with the beginning of an id: `a.txt` becomes `a (0123abcd).txt`.
    func marked(_ id: NodeID) -> NodeName {
        let (stem, ending) = divided
        let mark = " (\(id.text.prefix(Self.markLetters)))" + ending
        let name = try? NodeName(Self.shortened(String(stem), to: Self.bytesMax - mark.utf8.count) + mark)
        return name ?? self
    }

    private var divided: (stem: Substring, ending: Substring) {
        let scalars = text.unicodeScalars
        guard let dot = scalars.lastIndex(of: "."), Self.isExtension(text[scalars.index(after: dot)...]),
            dot > scalars.startIndex
        else { return (text[...], text[text.endIndex...]) }
        return (text[..<dot], text[dot...])
    }

    /// Stem, number at its end (1 if it has none), and extension with its dot.
    private var numbered: (stem: String, number: Int, ending: String) {
        let (stem, ending) = divided
        guard let blank = stem.unicodeScalars.lastIndex(of: " "), blank > stem.startIndex,
            let number = Self.number(stem[stem.unicodeScalars.index(after: blank)...])
        else { return (String(stem), 1, String(ending)) }
        return (String(stem[..<blank]), number, String(ending))
    }

    private static func isExtension(_ text: Substring) -> Bool {
        (1...extensionBytesMax).contains(text.utf8.count) && !text.utf8.contains(0x20) && !text.utf8.contains(0x2F)
    }

    /// The number from 2 that a text is in plain digits.
    private static func number(_ text: Substring) -> Int? {
        guard text.utf8.count <= numberDigitsMax, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            text.utf8.first != 0x30, let number = Int(text), number >= 2
        else { return nil }
        return number
    }

    /// The longest beginning of at most this many bytes that ends between characters, or between scalars if the first
    /// character is longer.
    private static func shortened(_ text: String, to bytes: Int) -> String {
        if text.utf8.count <= bytes { return text }
        var (result, count) = ("", 0)
        for character in text {
            count += character.utf8.count
            if count > bytes { break }
            result.append(character)
        }
        guard result.isEmpty else { return result }
        count = 0
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            if count > bytes { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}
