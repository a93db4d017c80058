/// Makes a typing session of several people from given texts: bursts, typos and their correction, jumps into another's
/// paragraph, cut and paste, times offline. The same seed, texts and number of people make the same session.
///
/// No person inserts where another has made an unseen insertion or deletion, so every correct merge ends in the same
/// text.
public struct TraceGenerator {
    private typealias Character = CharacterOrder.Character

    /// The present activity of one person.
    private struct Person {
        /// How many transactions of each person this one has seen, or made.
        var clock: [Int]
        var lastTransaction: Int?
        /// Left neighbour of the caret in the person's part of the document.
        var home: Character?
        /// Left neighbour of the caret during a jump elsewhere.
        var away: Character?
        /// Letters still to type at the caret, next one last.
        var toType = [Unicode.Scalar]()
        var backspaces = 0
        var isAway = false
        var clipboard = ""
        /// Steps until this person sees the others' edits again; 0: online.
        var offlineSteps = 0

        init(among count: Int) { clock = [Int](repeating: 0, count: count) }
    }

    private enum Step {
        case insert(Character)
        case delete(Character)
    }

    /// How many people a session may have.
    public static let authors: ClosedRange<Int> = 2...5
    private static let numbers = ["two", "three", "four", "five"]

    private var random: SplitMix
    private let paragraphs: [[Unicode.Scalar]]
    private var nextParagraph = 0
    private var order: CharacterOrder
    private var people: [Person]
    private var transactions = [Trace.Transaction]()
    private var steps: [[[Step]]]
    private var rows: [[Int]]
    /// The author of each character, and the number of the transaction that made it.
    private var origin = [(person: Int, ordinal: Int)]()

    /// - Parameters:
    ///   - texts: the typed texts, split into paragraphs at empty lines and used in turn as often as needed.
    ///   - authors: the number of people, in `Self.authors`.
    public init(seed: UInt64, texts: [String], authors: Int = 2) {
        precondition(Self.authors.contains(authors))
        random = SplitMix(state: seed)
        order = CharacterOrder(countsUTF16: [Bool](repeating: false, count: authors))
        people = (0..<authors).map { _ in Person(among: authors) }
        steps = [[[Step]]](repeating: [], count: authors)
        rows = [[Int]](repeating: [], count: authors)
        var found = [[Unicode.Scalar]]()
        for text in texts {
            var paragraph = [Unicode.Scalar]()
            for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
                if line.allSatisfy({ $0 == " " }) {
                    if !paragraph.isEmpty { found.append(paragraph) }
                    paragraph = []
                } else {
                    if !paragraph.isEmpty { paragraph.append("\n") }
                    paragraph += line.unicodeScalars
                }
            }
            if !paragraph.isEmpty { found.append(paragraph) }
        }
        paragraphs = found.isEmpty ? [Array("nothing to type".unicodeScalars)] : found
    }

    /// Makes the session, with at least `editsMin` transactions.
    public mutating func make(editsMin: Int) -> Trace {
        typeTitle()
        while transactions.count < editsMin || people.contains(where: { !$0.toType.isEmpty || $0.isAway }) {
            let who = random.below(people.count)
            // Bursts: one person types for a while.
            for _ in 0..<(1 + random.below(12)) { step(who, isEnding: transactions.count >= editsMin) }
        }
        for who in people.indices { sync(who) }
        return Trace(
            isConcurrent: true, startContent: "", endContent: order.text(of: 0), agentCount: people.count,
            transactions: transactions)
    }

    /// A title, and a separator line between the parts of the persons; then all persons see them.
    private mutating func typeTitle() {
        var left: Character?
        let title = "A page by \(Self.numbers[people.count - Self.authors.lowerBound]) people\n\n"
        for scalar in title.unicodeScalars { left = insert([scalar], after: left, by: 0) }
        people[0].home = left
        for who in 1..<people.count {
            for scalar in "\n\n--------\n\n".unicodeScalars {
                left = insert([scalar], after: left, by: 0)
            }
            people[who].home = left
        }
        for who in 1..<people.count { sync(who) }
    }

    private mutating func step(_ who: Int, isEnding: Bool) {
        if people[who].offlineSteps > 0 {
            people[who].offlineSteps -= 1
        } else if random.below(6) == 0, isTogether {
            sync(who)
            if random.below(60) == 0, !isEnding { people[who].offlineSteps = 100 + random.below(400) }
        }
        if people[who].backspaces > 0 { return backspace(who) }
        if people[who].toType.isEmpty { return decide(who, isEnding: isEnding) }
        typeLetter(who)
    }

    /// Whether all are online: while one person is offline, none sees the others' edits.
    private var isTogether: Bool { people.allSatisfy { $0.offlineSteps == 0 } }

    private mutating func typeLetter(_ who: Int) {
        guard let scalar = people[who].toType.last else { return }
        let left = people[who].isAway ? people[who].away : people[who].home
        guard isSafe(left, for: who) else { return makeSafe(who) }
        if scalar.properties.isAlphabetic, random.below(40) == 0 {
            let wrong = Unicode.Scalar(UInt8(ascii: "a") + UInt8(random.below(26)))
            place(who, insert([wrong], after: left, by: who))
            people[who].backspaces = 1
            return
        }
        people[who].toType.removeLast()
        place(who, insert([scalar], after: left, by: who))
    }

    private mutating func place(_ who: Int, _ caret: Character?) {
        if people[who].isAway { people[who].away = caret } else { people[who].home = caret }
    }

    private mutating func backspace(_ who: Int) {
        people[who].backspaces -= 1
        guard let caret = people[who].isAway ? people[who].away : people[who].home,
            order.isShown(caret, in: who)
        else { return }
        let position = order.position(of: caret, in: who)
        let left: Character? = position == 0 ? nil : order.character(at: position - 1, in: who)
        delete(from: position, count: 1, by: who)
        place(who, left)
    }

    /// Chooses the next activity of an idle person.
    private mutating func decide(_ who: Int, isEnding: Bool) {
        if people[who].isAway {
            people[who].isAway = false
            return
        }
        if isEnding { return }
        switch random.below(10) {
        case 0...5: startParagraph(who)
        case 6: cut(who)
        case 7 where !people[who].clipboard.isEmpty: jump(who, text: people[who].clipboard, pasting: true)
        default: jump(who, text: " \(word())", pasting: false)
        }
    }

    private mutating func startParagraph(_ who: Int) {
        let text = paragraphs[nextParagraph % paragraphs.count]
        nextParagraph += 1
        people[who].toType = Array((text + ["\n", "\n"]).reversed())
    }

    /// Moves the caret to a random position in the whole document, often in another's part.
    private mutating func jump(_ who: Int, text: String, pasting: Bool) {
        let length = order.length(of: who)
        guard length > 1, let target = order.character(at: random.below(length), in: who),
            isSafe(target, for: who)
        else { return }
        people[who].isAway = true
        people[who].away = target
        if pasting {
            people[who].away = insert(Array(text.unicodeScalars), after: target, by: who)
            people[who].clipboard = ""
        } else {
            people[who].toType = text.unicodeScalars.reversed()
        }
    }

    private mutating func cut(_ who: Int) {
        let length = order.length(of: who)
        let count = 5 + random.below(50)
        guard length > count * 4 else { return }
        let position = random.below(length - count)
        var text = ""
        for offset in 0..<count {
            guard let character = order.character(at: position + offset, in: who) else { return }
            // The carets' neighbours stay, otherwise each affected person would need a new position.
            if people.contains(where: { $0.home == character || $0.away == character }) { return }
            text.unicodeScalars.append(order.scalars[Int(character)])
        }
        delete(from: position, count: count, by: who)
        people[who].clipboard = text
    }

    private mutating func word() -> String {
        let paragraph = paragraphs[random.below(paragraphs.count)]
        let words = paragraph.split(whereSeparator: { $0 == " " || $0 == "\n" })
        var text = ""
        for scalar in words.isEmpty ? [] : words[random.below(words.count)] {
            text.unicodeScalars.append(scalar)
        }
        return text
    }

    // MARK: Safety

    /// Whether `who` may insert after `left`: the neighbourhood contains no unseen change by another person.
    private func isSafe(_ left: Character?, for who: Int) -> Bool {
        if let left, !order.isShown(left, in: who) { return false }
        let line = order.neighbourhood(after: left, reach: 8)
        return line.allSatisfy { knows(who, $0) && !isDeletedByOthers($0, unseenBy: who) }
    }

    private func knows(_ who: Int, _ character: Character) -> Bool {
        let made = origin[Int(character)]
        return made.person == who || made.ordinal < people[who].clock[made.person]
    }

    private func isDeletedByOthers(_ character: Character, unseenBy who: Int) -> Bool {
        guard order.isShown(character, in: who) else { return false }
        return people.indices.contains { $0 != who && knows($0, character) && !order.isShown(character, in: $0) }
    }

    /// The caret's position is not safe: take over the others' edits if online, and find a new position if it is gone.
    private mutating func makeSafe(_ who: Int) {
        if isTogether { sync(who) }
        guard let caret = people[who].isAway ? people[who].away : people[who].home else { return }
        guard !order.isShown(caret, in: who) else { return }
        let position = order.position(of: caret, in: who)
        place(who, position == 0 ? nil : order.character(at: position - 1, in: who))
    }

    // MARK: Edits

    private mutating func insert(_ scalars: [Unicode.Scalar], after left: Character?, by who: Int) -> Character? {
        let position = left.map { order.position(of: $0, in: who) + 1 } ?? 0
        var caret = left
        var made = [Step]()
        for scalar in scalars {
            let character: Character = order.insert(scalar, after: caret, by: who, in: who)
            origin.append((who, rows[who].count))
            order.show(character, in: who)
            made.append(.insert(character))
            caret = character
        }
        var text = ""
        text.unicodeScalars.append(contentsOf: scalars)
        record(who, Trace.Patch(position: position, deleted: 0, inserted: text), made)
        return caret
    }

    private mutating func delete(from position: Int, count: Int, by who: Int) {
        var made = [Step]()
        for _ in 0..<count {
            guard let character = order.character(at: position, in: who) else { break }
            order.hide(character, in: who)
            made.append(.delete(character))
        }
        record(who, Trace.Patch(position: position, deleted: made.count, inserted: ""), made)
    }

    private mutating func record(_ who: Int, _ patch: Trace.Patch, _ made: [Step]) {
        var parents = [Int]()
        if let own = people[who].lastTransaction { parents.append(own) }
        for (other, seen) in people[who].clock.enumerated() where other != who && seen > 0 {
            parents.append(rows[other][seen - 1])
        }
        people[who].lastTransaction = transactions.count
        people[who].clock[who] += 1
        rows[who].append(transactions.count)
        steps[who].append(made)
        transactions.append(Trace.Transaction(agent: who, parents: parents.sorted(), patches: [patch]))
    }

    /// `who` takes over all edits of the others.
    private mutating func sync(_ who: Int) {
        for other in people.indices where other != who {
            for made in steps[other][people[who].clock[other]...] {
                for step in made {
                    switch step {
                    case .insert(let character): order.show(character, in: who)
                    case .delete(let character): order.hide(character, in: who)
                    }
                }
            }
            people[who].clock[other] = steps[other].count
        }
    }
}

/// SplitMix64: small, and with the same numbers on every machine.
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number in 0 ..< bound.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
