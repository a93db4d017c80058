/// Every character that a trace ever inserts, in one total order, with deleted ones kept as tombstones.
///
/// Concurrent insertions of several authors into one gap are ordered as in YATA, by both neighbours
/// (docs/decisions/0088): the order does not depend on which of them is played first.
///
/// Views share the order and differ in what they show, so a position in one view can be mapped to another exactly: by
/// the identity of the characters around it, not by counting. Chunks of at most `chunkMax` characters with a width per
/// view make finding a position and finding a character cost the square root of the length.
struct CharacterOrder {
    typealias Character = Int32
    static let chunkMax = 256

    private struct Chunk {
        var characters: [Character]
        /// Width of what each view shows of this chunk.
        var widths: [Int]
    }

    private struct Origin {
        let left: Character?
        let right: Character?
        let author: Int
    }

    private var chunks: [Chunk]
    /// Chunks in document order, as indexes into `chunks`.
    private var sequence: [Int]
    private var chunkOf = [Int32]()
    private var shown: [[Bool]]
    /// Deleted in a view, perhaps before the view has shown the character: authors are caught up with one after the
    /// other, and a deletion by one may be played before another's insertion. The character is never shown then.
    private var gone: [[Bool]]
    private(set) var scalars = [Unicode.Scalar]()
    /// For each character: its neighbours when it was typed, as its author knew them, and its author.
    private var origins = [Origin]()
    /// The unit of a view: UTF-16 units, or code points.
    private let countsUTF16: [Bool]

    /// - Parameter countsUTF16: one entry per view: whether it counts UTF-16 units (else code points).
    init(countsUTF16: [Bool]) {
        self.countsUTF16 = countsUTF16
        chunks = [Chunk(characters: [], widths: countsUTF16.map { _ in 0 })]
        sequence = [0]
        shown = countsUTF16.map { _ in [] }
        gone = shown
    }

    var viewCount: Int { countsUTF16.count }

    func isShown(_ character: Character, in view: Int) -> Bool { shown[view][Int(character)] }

    private func width(_ character: Character, in view: Int) -> Int {
        countsUTF16[view] && scalars[Int(character)].value > 0xFFFF ? 2 : 1
    }

    /// Makes a character after `left` (nil: at the very start) that no view shows yet.
    ///
    /// - Parameters:
    ///   - author: decides between characters of one gap that have the same neighbours: the smaller number comes first.
    ///   - view: shows everything that the author knew, and nothing else.
    mutating func insert(_ scalar: Unicode.Scalar, after left: Character?, by author: Int, in view: Int) -> Character {
        let right = self.right(of: left, in: view)
        let place = place(between: left, right, author)
        origins.append(Origin(left: left, right: right, author: author))
        return insert(scalar, rightBehind: place)
    }

    private mutating func insert(_ scalar: Unicode.Scalar, rightBehind left: Character?) -> Character {
        let made = Character(scalars.count)
        scalars.append(scalar)
        for view in shown.indices {
            shown[view].append(false)
            gone[view].append(false)
        }
        guard let left else {
            chunks[sequence[0]].characters.insert(made, at: 0)
            chunkOf.append(Int32(sequence[0]))
            splitIfLarge(sequence[0])
            return made
        }
        let chunk = Int(chunkOf[Int(left)])
        let place = offset(of: left, in: chunk)
        chunks[chunk].characters.insert(made, at: place + 1)
        chunkOf.append(Int32(chunk))
        splitIfLarge(chunk)
        return made
    }

    // MARK: Gaps into which several authors insert

    /// The next character after `left` that the view knows, deleted or not.
    private func right(of left: Character?, in view: Int) -> Character? {
        var next = following(left)
        while let character = next, !shown[view][Int(character)], !gone[view][Int(character)] {
            next = following(character)
        }
        return next
    }

    /// The character after which one with these neighbours belongs: its author knows none of those in between.
    private func place(between left: Character?, _ right: Character?, _ author: Int) -> Character? {
        var place = left
        var isPassing = false
        var next = following(left)
        while let other = next, other != right {
            let origin = origins[Int(other)]
            if origin.left == left {
                if origin.right == right, author < origin.author { break }
                isPassing = precedes(origin.right, right)
            } else if left != nil, origin.left.map({ precedes($0, left) }) ?? true {
                break
            }
            if !isPassing { place = other }
            next = following(other)
        }
        return place
    }

    /// The character directly after another one (nil: the first of all).
    private func following(_ character: Character?) -> Character? {
        guard let character else { return sequence.lazy.compactMap { chunks[$0].characters.first }.first }
        let home = Int(chunkOf[Int(character)])
        let next = offset(of: character, in: home) + 1
        if next < chunks[home].characters.count { return chunks[home].characters[next] }
        guard let at = sequence.firstIndex(of: home) else { return nil }
        return sequence[(at + 1)...].lazy.compactMap { chunks[$0].characters.first }.first
    }

    /// Whether one precedes the other; nil is the end.
    private func precedes(_ one: Character?, _ other: Character?) -> Bool {
        guard let one, one != other else { return false }
        guard let other else { return true }
        let (first, second) = (Int(chunkOf[Int(one)]), Int(chunkOf[Int(other)]))
        if first == second { return offset(of: one, in: first) < offset(of: other, in: second) }
        return sequence.first { $0 == first || $0 == second } == first
    }

    // MARK: Views

    mutating func show(_ character: Character, in view: Int) {
        guard !shown[view][Int(character)], !gone[view][Int(character)] else { return }
        shown[view][Int(character)] = true
        chunks[Int(chunkOf[Int(character)])].widths[view] += width(character, in: view)
    }

    mutating func hide(_ character: Character, in view: Int) {
        gone[view][Int(character)] = true
        guard shown[view][Int(character)] else { return }
        shown[view][Int(character)] = false
        chunks[Int(chunkOf[Int(character)])].widths[view] -= width(character, in: view)
    }

    /// The position of `character` in `view`: the width of all that the view shows before it.
    func position(of character: Character, in view: Int) -> Int {
        let home = Int(chunkOf[Int(character)])
        var position = 0
        for chunk in sequence {
            if chunk == home { break }
            position += chunks[chunk].widths[view]
        }
        for other in chunks[home].characters {
            if other == character { break }
            if shown[view][Int(other)] { position += width(other, in: view) }
        }
        return position
    }

    /// The character that starts at `position` of `view`; nil at or after the end.
    func character(at position: Int, in view: Int) -> Character? {
        var rest = position
        for chunk in sequence {
            let width = chunks[chunk].widths[view]
            if rest >= width {
                rest -= width
                continue
            }
            for character in chunks[chunk].characters where shown[view][Int(character)] {
                if rest <= 0 { return character }
                rest -= self.width(character, in: view)
            }
        }
        return nil
    }

    /// Length of what `view` shows.
    func length(of view: Int) -> Int {
        var length = 0
        for chunk in sequence { length += chunks[chunk].widths[view] }
        return length
    }

    func text(of view: Int) -> String {
        var text = ""
        for chunk in sequence {
            for character in chunks[chunk].characters where shown[view][Int(character)] {
                text.unicodeScalars.append(scalars[Int(character)])
            }
        }
        return text
    }

    /// Characters around the gap after `left`, at most `reach` to each side, including tombstones and characters that a
    /// view does not know.
    func neighbourhood(after left: Character?, reach: Int) -> [Character] {
        let home = left.map { Int(chunkOf[Int($0)]) } ?? sequence[0]
        guard let at = sequence.firstIndex(of: home) else { return [] }
        var line = [Character]()
        for index in max(0, at - 1)...min(sequence.count - 1, at + 1) {
            line += chunks[sequence[index]].characters
        }
        let place = left.flatMap { line.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
        return Array(line[max(0, place - reach)..<min(line.count, place + reach)])
    }

    private func offset(of character: Character, in chunk: Int) -> Int {
        guard let offset = chunks[chunk].characters.firstIndex(of: character) else {
            preconditionFailure("a character is not in the chunk that it names")
        }
        return offset
    }

    private mutating func splitIfLarge(_ chunk: Int) {
        let characters = chunks[chunk].characters
        guard characters.count > Self.chunkMax, let at = sequence.firstIndex(of: chunk) else { return }
        let tail = Array(characters[(characters.count / 2)...])
        chunks[chunk].characters.removeLast(tail.count)
        var widths = chunks[chunk].widths
        for view in widths.indices {
            widths[view] = tail.reduce(0) { $0 + (shown[view][Int($1)] ? width($1, in: view) : 0) }
            chunks[chunk].widths[view] -= widths[view]
        }
        for character in tail { chunkOf[Int(character)] = Int32(chunks.count) }
        sequence.insert(chunks.count, at: at + 1)
        chunks.append(Chunk(characters: tail, widths: widths))
    }
}
