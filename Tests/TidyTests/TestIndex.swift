import Glibc

/// The short ids by which docs/SECURITY-MODEL.md and docs/THREATS.md name tests. The file docs/TEST-INDEX.md assigns
/// them: an id keeps its test, a new test of a threat gets the next number. `./dev test-index` compiles this file with
/// `Repository` and `SwiftText` alone and calls `write()`.
struct TestIndex {
    static let path = "docs/TEST-INDEX.md"

    /// `T9.2`: the second test of T9. Threats (`T`) and claims (`SP`) have tests of their own.
    struct ID: Hashable, Comparable, CustomStringConvertible {
        let group: String
        let number: Int

        init(group: String, number: Int) { (self.group, self.number) = (group, number) }

        init?(_ text: Substring) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 2, let number = Int(parts[1]), Self.isThreat(parts[0]) || Self.isClaim(parts[0]) else {
                return nil
            }
            self.init(group: String(parts[0]), number: number)
        }

        static func isThreat(_ word: Substring) -> Bool { word.first == "T" && isNumbered(word.dropFirst()) }

        static func isClaim(_ word: Substring) -> Bool { word.hasPrefix("SP") && isNumbered(word.dropFirst(2)) }

        private static func isNumbered(_ rest: Substring) -> Bool { !rest.isEmpty && rest.allSatisfy(\.isNumber) }

        /// Claims first, then threats, each by number.
        private var order: (Int, Int, Int) {
            (group.hasPrefix("SP") ? 0 : 1, Int(group.drop { $0.isLetter }) ?? 0, number)
        }

        static func < (one: Self, other: Self) -> Bool { one.order < other.order }

        var description: String { "\(group).\(number)" }
    }

    struct Entry: Equatable {
        let id: ID
        let name: String
    }

    /// In the order of the file.
    private(set) var entries: [Entry]

    var names: [ID: String] { Dictionary(entries.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first }) }

    /// Reads the rows of the file: id, file, name.
    init(lines: [Substring]) {
        entries = lines.compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false)
            guard line.hasPrefix("|"), cells.count == 5, let id = ID(Self.trimmed(cells[1])) else { return nil }
            return Entry(id: id, name: String(Self.trimmed(cells[3])))
        }
    }

    /// Gives an id to each test that has a threat's number and no id yet, and sorts the entries.
    mutating func complete(with tests: Tests) {
        let known = Set(entries.map(\.name))
        var last = [String: Int]()
        for entry in entries { last[entry.id.group] = max(last[entry.id.group] ?? 0, entry.id.number) }
        for name in tests.declared where !known.contains(name) {
            guard let group = Self.threats(of: name).first else { continue }
            last[group, default: 0] += 1
            entries.append(Entry(id: ID(group: group, number: last[group] ?? 1), name: name))
        }
        entries.sort { $0.id < $1.id }
    }

    /// The whole file.
    func text(_ tests: Tests) -> String {
        var text = """
            # Test index

            The tests that [SECURITY-MODEL.md](SECURITY-MODEL.md) and [THREATS.md](THREATS.md) name by an id.
            `./dev test-index` writes this file, and a tidy test compares it byte for byte. A test keeps its id: when
            a test is renamed, change its name here; when it is removed, delete its row. The command gives an id to
            each new test of a threat; a test of several threats gets one for the first. For a test of a claim, add
            the row `| SP1.9 | | name |` with the claim's next id and the name of the test, or of a case of a table,
            and run the command.

            | id | file | test |
            | --- | --- | --- |

            """
        for entry in entries {
            text += "| \(entry.id) | \(tests.file(of: entry.name) ?? "not found") | \(entry.name) |\n"
        }
        return text
    }

    /// Writes the file from its entries and the tests; false when that fails.
    static func write() -> Bool {
        let tests = Tests(paths: SwiftText.paths("Tests"))
        var index = Self(lines: Repository.lines(path))
        index.complete(with: tests)
        let bytes = Array(index.text(tests).utf8)
        let file = open(Repository.root + "/" + path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        guard file >= 0 else { return false }
        defer { close(file) }
        return Glibc.write(file, bytes, bytes.count) == bytes.count
    }

    /// The threats whose numbers a test has: `T10, T11: …`, or further in: `…; T11: …`.
    static func threats(of name: String) -> [String] {
        name.split { " ,;:".contains($0) }.filter(ID.isThreat).map(String.init)
    }

    /// The ids in a cell, ranges (`T9.1–T9.4`) written out; `unread` has the words that look like ids and are not.
    static func ids(in cell: Substring) -> (ids: [ID], unread: [String]) {
        var (ids, unread): ([ID], [String]) = ([], [])
        for word in cell.split(whereSeparator: { " ,;:()".contains($0) }) {
            let isMeant = word.contains(".") && (word.hasPrefix("T") || word.hasPrefix("SP"))
            let ends = word.split(separator: "–").map(ID.init)
            if ends.count == 1, let id = ends[0] {
                ids.append(id)
            } else if ends.count == 2, let first = ends[0], let last = ends[1], first.group == last.group,
                first.number < last.number
            {
                ids += (first.number...last.number).map { ID(group: first.group, number: $0) }
            } else if isMeant {
                unread.append(String(word))
            }
        }
        return (ids, unread)
    }

    static func trimmed(_ cell: Substring) -> Substring {
        var cell = cell.drop { $0 == " " }
        while cell.last == " " { cell.removeLast() }
        return cell
    }

    /// The tests below a folder: the names of `@Test` and `@Suite`, and every other text, for cases of tables.
    struct Tests {
        /// Names of tests and suites, by file and by place in it.
        private(set) var declared: [String] = []
        private var files = [String: String]()
        private var filesOfTexts = [String: String]()

        init(paths: [String]) {
            for path in paths {
                let text = Repository.text(path) ?? ""
                for name in Self.names(text) {
                    declared.append(name)
                    files[name] = files[name] ?? path
                }
                for line in text.split(separator: "\n") {
                    for (place, part) in line.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
                    where place % 2 == 1 {
                        filesOfTexts[String(part)] = filesOfTexts[String(part)] ?? path
                    }
                }
            }
        }

        /// Nil when neither a test, a suite nor a case has this name.
        func file(of name: String) -> String? { files[name] ?? filesOfTexts[name] }

        private static func names(_ text: String) -> [String] {
            let marks = ["@Test(", "@Suite("].flatMap { text.ranges(of: $0) }
            return marks.map(\.upperBound).sorted().compactMap { start in
                let rest = text[start...].drop { $0 == " " || $0 == "\n" }
                return rest.first == "\"" ? String(rest.dropFirst().prefix { $0 != "\"" }) : nil
            }
        }
    }
}
