import Testing

/// A file has the name of what it declares, and Package.swift shows which folder is which module.
@Suite("Names of files and modules")
struct FileNameTests {
    /// Names of types that a file declares or extends, outside of other types, or inside an `#if`.
    private static func declared(_ path: String) -> Set<String> {
        let kinds: Set<Substring> = ["struct", "class", "enum", "actor", "protocol", "typealias", "extension"]
        var names = Set<String>()
        for line in SwiftText.lines(path) where line.prefix(5).contains(where: { $0 != " " }) {
            let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "." }
            guard let kind = words.firstIndex(where: kinds.contains), kind + 1 < words.count else { continue }
            if let name = words[kind + 1].split(separator: ".").last { names.insert(String(name)) }
        }
        return names
    }

    @Test("a file of Sources is named after a type that it declares, an extension Type+Aspect")
    func names() {
        let paths = SwiftText.paths("Sources")
        #expect(paths.count > 500)
        for path in paths where !path.hasSuffix("/main.swift") {
            let names = Self.declared(path)
            let file = path.split(separator: "/").last?.dropLast(".swift".count) ?? ""
            let type = file.prefix { $0 != "+" }
            #expect(names.isEmpty || names.contains(String(type)), "\(path) declares \(names.sorted())")
        }
    }

    @Test(
        "the scanner finds the types that a file declares",
        arguments: [
            ("Sources/Scheduling/CPUBudget.swift", "CPUBudget"), ("Sources/Server/Session/Hub+Reads.swift", "Hub"),
            ("Sources/CLI/Folder/Mirror/InotifySignal.swift", "InotifySignal"),
        ])
    func finds(path: String, name: String) { #expect(Self.declared(path).contains(name)) }

    @Test("Sources/Server has no loose file, and no target is inside another")
    func folders() throws {
        let loose = SwiftText.paths("Sources/Server").filter { $0.split(separator: "/").count == 3 }
        #expect(loose.isEmpty, "\(loose)")
        let package = try #require(Repository.text("Package.swift"))
        let targets = package.split(separator: "\"").filter { $0.hasPrefix("Sources/") || $0.hasPrefix("Tools/") }
        #expect(targets.count > 25)
        for outer in targets {
            let inner = targets.filter { $0.hasPrefix(outer + "/") }
            #expect(inner.isEmpty, "\(outer) has \(inner) inside")
        }
    }

    @Test("every library of Sources has a caller that is not a test")
    func callers() throws {
        let package = try #require(Repository.text("Package.swift"))
        let shipped = try #require(package.firstRange(of: "let libraries")).upperBound
        let ends = try #require(package.firstRange(of: "let shipped")).lowerBound
        let words = package[shipped..<ends].split(separator: "\"")
        let libraries = zip(words, words.dropFirst(2)).filter { $1.hasPrefix("Sources/") && !$1.contains("CLibs") }
        #expect(libraries.count > 12)
        let programs = SwiftText.paths("Sources") + SwiftText.paths("Tools").filter { !$0.contains("/Fuzz/") }
        for (module, folder) in libraries {
            let isUsed = programs.contains { path in
                !path.hasPrefix(folder + "/") && SwiftText.lines(path).contains { $0.hasSuffix("import \(module)") }
            }
            #expect(isUsed, "\(module) has no caller but tests")
        }
    }
}
