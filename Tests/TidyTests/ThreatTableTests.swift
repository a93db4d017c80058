import Testing

/// Documents that name tests: docs/THREATS.md says which stands against which threat, docs/SOCKJS.md which does what a
/// published test of SockJS does.
@Suite("Tables of tests")
struct ThreatTableTests {
    /// The numbers of the threats that this part of the house has to do with.
    private static let wanted: Set<String> = [
        "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13", "T14", "T15", "T16", "T17",
        "T18",
        "T19", "T20",
        "T21",
        "T22",
        "T23", "T24",
    ]

    @Test("every threat has a row with tests that exist and bear its number; no numbered test is left out")
    func table() throws {
        var rows: [String: Set<String>] = [:]
        for line: Substring in Repository.lines("docs/THREATS.md") where line.hasPrefix("| T") {
            let cells: [Substring] = line.split(separator: "|")
            let number: String = .init(cells[0].filter { $0 != " " })
            #expect(rows[number] == nil, "docs/THREATS.md has two rows for \(number)")
            let quoted: [Substring] = (cells.dropFirst(2).first ?? "").split(
                separator: "\"", omittingEmptySubsequences: false)
            rows[number] = Set(quoted.indices.filter { $0 % 2 == 1 }.map { String(quoted[$0]) })
        }
        #expect(Set(rows.keys) == Self.wanted)
        let names: Set<String> = Set(SwiftText.paths("Tests").flatMap(Self.names))
        #expect(names.count > 500, "\(names.count) names were found")
        for (number, tests): (String, Set<String>) in rows {
            #expect(!tests.isEmpty, "docs/THREATS.md names no test for \(number)")
            for test: String in tests {
                #expect(names.contains(test), "docs/THREATS.md, \(number): there is no test or suite '\(test)'")
                #expect(Self.numbers(of: test).contains(number), "'\(test)' does not bear the number \(number)")
            }
        }
        for name: String in names {
            for number: String in Self.numbers(of: name) {
                #expect(rows[number]?.contains(name) == true, "docs/THREATS.md does not name '\(name)' for \(number)")
            }
        }
    }

    @Test("every claim SP1 to SP12 has a row with tests that exist, or says that it is not held yet")
    func claims() throws {
        let names: Set<String> = Set(SwiftText.paths("Tests").flatMap(Self.strings))
        var claimed: [String] = []
        for line: Substring in Repository.lines("docs/SECURITY-MODEL.md") where line.hasPrefix("| SP") {
            let cells: [Substring] = line.split(separator: "|")
            claimed.append(String(cells[0].filter { $0 != " " }))
            let quoted: [Substring] = try #require(cells.dropFirst(2).first).split(
                separator: "\"", omittingEmptySubsequences: false)
            let tests: [String] = quoted.indices.filter { $0 % 2 == 1 }.map { String(quoted[$0]) }
            #expect(!tests.isEmpty, "\(claimed.last ?? "") names no test")
            for test: String in tests { #expect(names.contains(test), "there is no test '\(test)'") }
        }
        #expect(claimed == (1...12).map { "SP\($0)" })
    }

    /// Every text in a file: names of tests, and of the cases of those that are tables.
    private static func strings(_ path: String) -> [String] {
        (Repository.text(path) ?? "").split(separator: "\n").flatMap { (line: Substring) in
            let parts: [Substring] = line.split(separator: "\"", omittingEmptySubsequences: false)
            return parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
        }
    }

    @Test("every published test of SockJS has one of ours that exists")
    func published() throws {
        let names: Set<String> = Set(SwiftText.paths("Tests").flatMap(Self.names))
        var count: Int = 0
        for line: Substring in Repository.lines("docs/SOCKJS.md") where line.contains("\"") {
            let quoted: [Substring] = line.split(separator: "\"", omittingEmptySubsequences: false)
            for place: Int in quoted.indices where place % 2 == 1 {
                #expect(names.contains(String(quoted[place])), "docs/SOCKJS.md: there is no test '\(quoted[place])'")
                count += 1
            }
        }
        #expect(count > 30)
    }

    /// What `@Test` and `@Suite` call themselves in a file.
    private static func names(_ path: String) -> [String] {
        let text: String = Repository.text(path) ?? ""
        return ["@Test(", "@Suite("].flatMap { (mark: String) in
            text.ranges(of: mark).compactMap { (range: Range<String.Index>) -> String? in
                let rest: Substring = text[range.upperBound...].drop { $0 == " " || $0 == "\n" }
                return rest.first == "\"" ? String(rest.dropFirst().prefix { $0 != "\"" }) : nil
            }
        }
    }

    /// The threats that a name begins with, before its colon: `T10, T11: …`; or, as in `…; T11: nobody else's`, further in.
    private static func numbers(of name: String) -> Set<String> {
        Set(
            name.split { " ,;:".contains($0) }.map(String.init).filter { (word: String) in
                word.first == "T" && word.count > 1 && word.dropFirst().allSatisfy(\.isNumber)
            })
    }
}
