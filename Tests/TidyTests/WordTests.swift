import Testing

/// One word for one thing, and an English that a stranger to this project reads at once.
@Suite("Words")
struct WordTests {
    /// Names that other words have replaced: a document or a source that uses one names something that no longer exists.
    private static let replaced = [
        "FairRow": "RoundRobinQueue", "WaitingLine": "Deque", "WaitingRow": "BlockingQueue",
        "ConnectionRow": "ReadyQueue",
        "SockJSDoor": "SockJSHandler", "RESTDoor": "RESTHandler", "AccountDoor": "AccountAPIClient",
        "ShareAccount": "CPUBudget", "restsUntil": "throttledUntil", "CostlyUsers": "PenaltyBox",
        "AnswerWatch": "BusyPollWindow", "Pacer": "PreemptionTimer", "ServerDecider": "SlowChangeWorker",
        "LongDecision": "DeferredChange", "givenOut": "offloaded", "LateHeads": "WriteBehindHeads",
        "ServerKeeper": "MaintenanceWorker", "StoreKeeper": "StoreMaintenance", "IndexWalk": "IndexScan",
        "isGlancing": "isHeadProbe", "KnownBodies": "BodyCache", "EmptyJob": "ClearBucketJob",
        "BucketRoom": "BucketCapacity", "UnreadMessage": "UnparsedMessage", "ChangeSalvage": "LenientChangeParser",
        "ChangeTicket": "QuotaReservation", "LeftTenants": "RecentlyDisconnected", "KeyHeritage": "KeyHistory",
        "Meeting": "TransformOrder", "UntoldEvents": "UndeliveredEvents", "goesAnew": "rebaseAndResend",
        "sendAnew": "rebaseAndResend", "LoopGroup": "LoopTenant", "SettledChangeIDs": "ArchivedChangeIDs",
    ]

    /// Words in which this project once wrote and its readers did not.
    private static let foreign: Set<String> = [
        "nobody", "somebody", "anybody", "everybody", "whoever", "whomever", "anew", "hears", "theirselves",
    ]

    private static func words(_ line: some StringProtocol) -> [Substring] {
        Substring(line).split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    }

    /// Documents, without the generated list of the tests' names.
    private static func texts() -> [String] {
        Repository.files("docs", ending: ".md").filter { $0 != "docs/TEST-INDEX.md" } + ["README.md", "CHANGELOG.md"]
    }

    /// A line without what it quotes: names of tests are in double quotes.
    private static func unquoted(_ line: Substring) -> Substring { Substring(line.replacing(#/"[^"]*"/#, with: "")) }

    @Test("no name that was replaced is left in sources, tests or documents")
    func names() {
        let sources = ["Sources", "Tools", "Tests", "Snippets", "Examples"].flatMap(SwiftText.paths)
        for path in sources + Self.texts() where !path.hasSuffix("TidyTests/WordTests.swift") {
            for (number, line) in Repository.lines(path).enumerated() {
                for word in Self.words(line) {
                    guard let better = Self.replaced[String(word)] else { continue }
                    Issue.record("\(path):\(number + 1): \(word) is called \(better)")
                }
            }
        }
    }

    @Test("comments and documents name the component that acts")
    func english() {
        for path in SwiftText.paths("Sources") + Self.texts() {
            let isSource = path.hasSuffix(".swift")
            for (number, line) in Repository.lines(path).enumerated() {
                var text = isSource ? line : Self.unquoted(line)
                if isSource {
                    guard let mark = line.firstRange(of: "//") else { continue }
                    // An address in a string is no comment.
                    if mark.lowerBound > line.startIndex, line[line.index(before: mark.lowerBound)] == ":" { continue }
                    text = line[mark.upperBound...]
                }
                for word in Self.words(text) where Self.foreign.contains(word.lowercased()) {
                    Issue.record("\(path):\(number + 1): '\(word)': name the component (docs/GLOSSARY.md)")
                }
            }
        }
    }

    @Test("the glossary has at most 40 entries, and none twice")
    func glossary() throws {
        let rows = Repository.lines("docs/GLOSSARY.md").filter { $0.hasPrefix("| ") }.dropFirst(2)
        #expect(!rows.isEmpty && rows.count <= 40, "\(rows.count) entries")
        var terms = [String]()
        for row in rows {
            for term in (row.split(separator: "|").first ?? "").split(separator: ",") {
                terms.append(term.filter { $0 != " " && $0 != "`" })
            }
        }
        #expect(Set(terms).count == terms.count)
    }
}
