import Testing

/// One word for one thing, and an English that a new reader understands at once.
@Suite("Words")
struct WordTests {
    /// Replaced names: a document or a source that uses one names something that no longer exists.
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
        "ToldChanges": "SentChanges", "WalkCache": "ReaderCache", "WalkPlace": "ScanPlace",
        "MirrorNote": "MirrorRemark", "settledJSON": "storedJSON", "owedMark": "requestedMark", "owesMark": "needsMark",
        "owesContinue": "mustSendContinue", "heardBuckets": "bucketsWithReaders", "walksStarted": "scansStarted",
        "walkObjectsMax": "scanObjectsMax", "finishWalk": "finishScan", "beginWalk": "beginScan",
        "walkAgain": "scanAgain", "costlyRestFactor": "costlyThrottleFactor", "takesClear": "acceptsClear",
        "thicket_pacer": "thicket_preemption_timer", "makeRoom": "evict",
        "Flights": "InFlightChanges", "DoorHouse": "AccountAPIFixture", "isTold": "isReported", "heir": "adopter",
    ]

    /// Words of this project's earlier texts that its readers do not use.
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

    /// Words of the wire are in code spans, and may be any.
    private static func withoutCode(_ line: Substring) -> Substring { Substring(line.replacing(#/`[^`]*`/#, with: "")) }

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
                    // An address in a string is not a comment.
                    if mark.lowerBound > line.startIndex, line[line.index(before: mark.lowerBound)] == ":" { continue }
                    text = line[mark.upperBound...]
                }
                for word in Self.words(Self.withoutCode(text)) where Self.foreign.contains(word.lowercased()) {
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

    // MARK: Verbs

    /// A function as it is declared: from `func` to its body, in one line.
    private struct Declared {
        let place: String
        /// `FILE FUNCTION`, as `allowed` has it.
        let name: String
        let verb: Substring
        let signature: String

        var parameters: Substring { signature.drop { $0 != "(" }.dropFirst() }
    }

    /// Functions that begin with a verb that has more than one sense in English.
    private static func declared(_ folder: String) -> [Declared] {
        var found = [Declared]()
        for path in SwiftText.paths(folder) {
            let lines = SwiftText.lines(path)
            for (number, line) in lines.enumerated() {
                guard let match = line.firstMatch(of: /\bfunc ([a-z]+)([A-Z]\w*)?\b/), let verb = verbs[match.1]
                else { continue }
                var signature = line[match.range.lowerBound...]
                for next in lines[(number + 1)...].prefix(6) where !signature.contains("{") { signature += next }
                let file = path.split(separator: "/").last ?? ""
                found.append(
                    Declared(
                        place: "\(path):\(number + 1)", name: "\(file) \(match.1)\(match.2 ?? "")", verb: verb,
                        signature: String(signature.prefix { $0 != "{" })))
            }
        }
        return found
    }

    private static let verbs: [Substring: Substring] = [
        "take": "take", "takes": "take", "taken": "take", "use": "use", "uses": "use", "settle": "settle",
        "settles": "settle", "settled": "settle", "rest": "rest", "rests": "rest", "note": "note", "notes": "note",
        "noted": "note", "noting": "note", "tell": "tell", "tells": "tell", "told": "tell", "telling": "tell",
    ]

    /// Settle: wait, or go on, until nothing is in progress. Note: an encrypted note. Rest: what is left of something.
    /// `takeServers` is the user's choice *take the server's*.
    private static let allowed: [Substring: Set<String>] = [
        "settle": [
            "NoteWorkers.swift settle", "Replay.swift settle", "Rest.swift settle", "CrashTest.swift settle",
            "Sealed.swift settle", "Endurance.swift settle", "SessionMember.swift settle", "WireMember.swift settle",
        ],
        "note": [
            "Vault.swift note", "AuditCommand.swift noteKeys", "OnionCall.swift notes", "Account.swift notes",
            "AccountStore+Notes.swift notes", "StoreAdmin+AppKeys.swift notes",
            "Store.swift noteRule", "SQLiteWriter.swift noteRule", "ShardCore+Notes.swift noteCount",
        ],
        "rest": ["ShardRunner.swift rest"],
        "use": ["Session.swift useKeys", "ClientSession.swift useKeys"],
    ]

    /// What `use` puts into effect.
    private static let settings: Set<Substring> = ["settings", "limits", "rules", "config", "context", "perSecond"]

    private static func isRight(_ function: Declared) -> Bool {
        if allowed[function.verb]?.contains(function.name) == true { return true }
        switch function.verb {
        case "take":
            // Removes something and returns it; what reads its input from the front is called `consume`.
            return function.signature.contains("->") && !function.parameters.contains("inout Unsafe")
                && function.name.split(separator: " ")[1].hasPrefix("take")
                && !function.name.hasSuffix(" takes") && !function.name.hasSuffix(" taken")
        case "use":
            let first = words(function.parameters).first { $0 != "_" }
            return function.name.hasSuffix(" use") && first.map(settings.contains) == true
        default: return false
        }
    }

    @Test("take, use, settle, rest, note and tell: a function has the verb in its one sense")
    func oneSense() {
        let all = ["Sources", "Tools"].flatMap(Self.declared)
        for function in all where !Self.isRight(function) {
            Issue.record("\(function.place): \(function.signature): \(function.verb) has another sense here")
        }
        let names = Set(all.map(\.name))
        for name in Self.allowed.values.joined() { #expect(names.contains(name), "\(name) does not exist any more") }
    }

    @Test(
        "the check finds the other senses of each verb",
        arguments: [
            "func take(_ event: AccountEvent) {", "func takes(_ method: String) -> Bool {",
            "func take(_ input: inout UnsafeRawBufferPointer) -> Bool {", "func use(code: String) -> Bool {",
            "func settle() {", "func tellAll() {", "func told() -> Int {", "func noteChanged() {", "func rest() {",
        ])
    func otherSenses(declaration: String) throws {
        let match = try #require(declaration.firstMatch(of: /func ([a-z]+)([A-Z]\w*)?/))
        let function = Declared(
            place: "", name: "Some.swift \(match.1)\(match.2 ?? "")", verb: try #require(Self.verbs[match.1]),
            signature: String(declaration.prefix { $0 != "{" }))
        #expect(!Self.isRight(function))
    }
}
