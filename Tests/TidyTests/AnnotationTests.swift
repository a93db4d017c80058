import Testing

/// A type that the right side states is not repeated, and comments keep to the width of the code.
@Suite("Annotations and width")
struct AnnotationTests {
    private static let folders = ["Sources", "Tools", "Tests", "Snippets"]

    /// Whether a line has `let`, `var` or `for` and a colon behind it. Regular expressions are slow in debug builds.
    private static func mayStateType(_ line: String) -> Bool {
        var (last, hasKeyword) = (UInt32(0), false)
        for byte in line.utf8 {
            if hasKeyword, byte == UInt8(ascii: ":") { return true }
            last = last << 8 | UInt32(byte)
            hasKeyword = hasKeyword || keywords.contains(last)
        }
        return false
    }

    private static let keywords = Set(
        ["let ", "var ", "for "].map { word in word.utf8.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } })

    private static func redundancy(in line: String) -> String? {
        guard mayStateType(line) else { return nil }
        let line = Substring(line)
        // The elements of a literal have no type of their own.
        if line.contains(#/\bfor (?:let |var )?(?:\w+|\([\w, ]+\)): .+ in [^\[\d]/#) {
            return "the type of a loop's variable"
        }
        if line.contains(#/\b(?:if|guard|while|,) ?(?:let|var) (\w+): [^=,{>]+(?: \{|,| else)/#) {
            return "the type of a shorthand binding"
        }
        let declaration = #/\b(?:let|var) \w+: ([\w.<>\[\]: ]+?) = (?:try )?(.+)/#
        guard let match = line.firstMatch(of: declaration) else { return nil }
        let (type, value) = (match.1, match.2)
        if value.hasPrefix(".init(") { return "a type in front of .init(…): write \(type)(…)" }
        // Only where the call is certainly the whole value.
        if value.hasPrefix(type + "("), value.hasSuffix(")"), value.count(where: { $0 == "(" }) == 1 {
            return "the type of \(type)(…)"
        }
        // Numbers of public types keep their annotations: they are read where the value is not shown.
        let isPublic = line.contains("public ") || line.contains("package ")
        switch type {
        case "Int" where isPublic, "Double" where isPublic: return nil
        case "String": return value == #""""# ? "the type of a text" : nil
        case "Bool": return value == "true" || value == "false" ? "the type of true or false" : nil
        case "Int": return value.wholeMatch(of: #/[0-9_]+/#) != nil ? "the type of a number" : nil
        case "Double": return value.wholeMatch(of: #/[0-9_]+\.[0-9_]+/#) != nil ? "the type of a number" : nil
        default: return nil
        }
    }

    @Test("no annotation repeats the type of its value")
    func annotations() {
        for path in Self.folders.flatMap(SwiftText.paths) {
            for (number, line) in SwiftText.lines(path).enumerated() {
                guard let what = Self.redundancy(in: line) else { continue }
                Issue.record("\(path):\(number + 1): \(what) is said twice: leave it out")
            }
        }
    }

    @Test(
        "the check finds redundant annotations and nothing else",
        arguments: [
            (#"let text: String = """#, true), ("var isOpen: Bool = false", true), ("for key: String in keys {", true),
            ("for (key, value): (String, Int) in all {", true), ("if let port: Int { return port }", true),
            ("guard let found: Row else { return }", true), ("let all: [Int] = .init(repeating: 0, count: 3)", true),
            ("let lock: Lock = Lock()", true), ("let lock: Lock = try Lock()", true), ("let count: Int = 20", true),
            ("let count: Int64 = 20", false), ("var all: [Int] = []", false), ("if let port: Int = read() {", false),
            ("let share: Double = 2", false), ("let lock: any Lock = Lock()", false), ("for key in keys {", false),
            ("let length: Int = Text(bytes).count", false), ("var row: Row? = Row()", false),
            ("public var count: Int = 20", false), ("public var isOpen: Bool = false", true),
            (#"public let count: Counter = .init("thicket_count", "Things.")"#, true),
        ])
    func check(line: String, isRedundant: Bool) {
        #expect((Self.redundancy(in: line) != nil) == isRedundant)
    }

    @Test("comments keep to 120 columns")
    func comments() {
        for path in Self.folders.flatMap(SwiftText.paths) {
            for (number, line) in Repository.lines(path).enumerated() where line.count > 120 {
                guard line.drop(while: { $0 == " " }).hasPrefix("//") else { continue }
                Issue.record("\(path):\(number + 1): a comment of \(line.count) columns")
            }
        }
    }
}
