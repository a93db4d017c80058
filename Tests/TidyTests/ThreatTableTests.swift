import Testing

/// Documents that name tests: docs/THREATS.md names the tests against each threat, docs/SECURITY-MODEL.md those of each
/// claim, both by the ids of docs/TEST-INDEX.md; docs/SOCKJS.md names those that repeat a published test of SockJS.
@Suite("Tables of tests")
struct ThreatTableTests {
    private static let tests = TestIndex.Tests(paths: SwiftText.paths("Tests"))

    private static let index = TestIndex(lines: Repository.lines(TestIndex.path))

    /// The rows of a document's table whose first cell is the number of a threat or a claim.
    private static func rows(_ path: String, _ isNumber: (Substring) -> Bool) -> [(number: String, cells: [Substring])]
    {
        Repository.lines(path).compactMap { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map(TestIndex.trimmed)
            guard line.hasPrefix("|"), let number = cells.first, isNumber(number) else { return nil }
            return (String(number), cells)
        }
    }

    /// The ids that a cell of a document names; each has to be in the index.
    private static func ids(_ path: String, _ number: String, _ cell: Substring) -> Set<TestIndex.ID> {
        let (ids, unread) = TestIndex.ids(in: cell)
        #expect(unread.isEmpty, "\(path), \(number): these are not ids of tests: \(unread)")
        let names = index.names
        for id in ids { #expect(names[id] != nil, "\(path), \(number): \(TestIndex.path) has no \(id)") }
        return Set(ids)
    }

    @Test("the index is what ./dev test-index writes; its tests exist, and no numbered test is left out")
    func file() {
        var made = Self.index
        made.complete(with: Self.tests)
        #expect(
            Array(made.text(Self.tests).utf8) == Repository.bytes(TestIndex.path),
            "\(TestIndex.path) is out of date: run ./dev test-index")
        #expect(Self.tests.declared.count > 500, "\(Self.tests.declared.count) names were found")
        #expect(Set(made.entries.map(\.id)).count == made.entries.count, "an id is given twice")
        #expect(Set(made.entries.map(\.name)).count == made.entries.count, "a test has two ids")
        for entry in made.entries {
            #expect(
                Self.tests.file(of: entry.name) != nil,
                "\(TestIndex.path), \(entry.id): there is no test, suite or case '\(entry.name)'")
            let first = TestIndex.threats(of: entry.name).first
            #expect(
                first.map { $0 == entry.id.group } ?? entry.id.group.hasPrefix("SP"),
                "\(entry.id): '\(entry.name)' bears another number")
            #expect(!entry.name.contains("|"), "\(entry.id): a name with | cannot be read from the table")
        }
    }

    @Test("every threat has one row; it names all tests that bear its number, and no other")
    func threats() {
        let path = "docs/THREATS.md"
        let rows = Self.rows(path, TestIndex.ID.isThreat)
        #expect(rows.map(\.number) == (1...24).map { "T\($0)" })
        let names = Self.index.names
        for (number, cells) in rows where cells.count > 2 {
            let named = Self.ids(path, number, cells[2])
            let bearing = names.filter { TestIndex.threats(of: $0.value).contains(number) }
            #expect(!named.isEmpty, "\(path) names no test for \(number)")
            for id in named.subtracting(bearing.keys).sorted() {
                Issue.record("\(path): the test \(id) does not bear the number \(number)")
            }
            for id in Set(bearing.keys).subtracting(named).sorted() {
                Issue.record("\(path) does not name \(id) for \(number)")
            }
        }
    }

    @Test("every claim SP1 to SP12 names tests or says that it is not held yet; no test of a claim is unused")
    func claims() {
        let path = "docs/SECURITY-MODEL.md"
        let rows = Self.rows(path, TestIndex.ID.isClaim)
        #expect(rows.map(\.number) == (1...12).map { "SP\($0)" })
        var named = Set<TestIndex.ID>()
        for (number, cells) in rows {
            let ids = Self.ids(path, number, cells.last ?? "")
            #expect(!ids.isEmpty || (cells.last ?? "").contains("not held yet"), "\(number) names no test")
            named.formUnion(ids)
        }
        for entry in Self.index.entries where entry.id.group.hasPrefix("SP") {
            #expect(named.contains(entry.id), "\(path) does not name \(entry.id)")
        }
    }

    @Test("every attack has one row and tests that bear its number; the words that it quotes are ones that users see")
    func attacks() {
        let path = "docs/THREATS.md"
        let rows = Repository.lines(path).filter { $0.hasPrefix("| A") }.map {
            $0.split(separator: "|").map(TestIndex.trimmed)
        }
        #expect(rows.map { $0[0] } == (1...22).map { "A\($0)" })
        let numbers = Self.tests.declared.map { $0.prefix { $0 != ":" }.split(separator: ",").map(TestIndex.trimmed) }
        let sources = Repository.files("Sources", ending: ".swift").compactMap(Repository.text)
        for row in rows where row.count > 2 {
            #expect(numbers.contains { $0.contains(row[0]) }, "no test bears the number \(row[0])")
            let quoted = row[2].split(separator: "`", omittingEmptySubsequences: false)
            for place in quoted.indices where place % 2 == 1 && !quoted[place].hasPrefix("ALARM") {
                #expect(sources.contains { $0.contains(quoted[place]) }, "\(row[0]): no source has '\(quoted[place])'")
            }
        }
    }

    @Test(
        "the cells of these tables have at most 200 characters",
        arguments: ["docs/THREATS.md", "docs/SECURITY-MODEL.md", TestIndex.path])
    func cells(path: String) {
        for line in Repository.lines(path) where line.hasPrefix("|") {
            for cell in line.split(separator: "|").map(TestIndex.trimmed) where cell.count > 200 {
                Issue.record("\(path): a cell of \(cell.count) characters: \(cell)")
            }
        }
    }

    @Test("ids and ranges are read; a word that only looks like an id is reported")
    func reading() {
        let read = TestIndex.ids(in: "in private buckets: SP4.1, T9.2–T9.4; *planned*: T23.1")
        #expect(read.ids.map(\.description) == ["SP4.1", "T9.2", "T9.3", "T9.4", "T23.1"])
        #expect(read.unread.isEmpty)
        let wrong = TestIndex.ids(in: "T9.4–T9.2, T9.1–T8.2, T9.x, SP1.")
        #expect(wrong.ids.isEmpty && wrong.unread.count == 4)
    }

    @Test(
        "every test that these documents quote exists",
        arguments: [("docs/SOCKJS.md", 30), ("docs/TREE.md", 20)])
    func quoted(path: String, moreThan least: Int) {
        let names = Set(Self.tests.declared)
        var count = 0
        var isCode = false
        for line in Repository.lines(path) {
            if line.hasPrefix("```") { isCode.toggle() }
            if isCode || !line.contains("\"") { continue }
            let quoted = line.split(separator: "\"", omittingEmptySubsequences: false)
            for place in quoted.indices where place % 2 == 1 {
                #expect(names.contains(String(quoted[place])), "\(path): there is no test '\(quoted[place])'")
                count += 1
            }
        }
        #expect(count > least)
    }
}
