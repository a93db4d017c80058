import Testing

/// Which module may be imported where: the arrows of `docs/ARCHITECTURE.md`, as a test.
@Suite("Import arrows")
struct ImportTests {
    /// The longest matching folder decides. Modules of the language itself are free, as is `ThicketPlatform`, which
    /// depends on nothing.
    private static let allowed: [(folder: String, modules: Set<String>)] = [
        ("Sources/Platform", ["Glibc", "Darwin"]),
        // The C library for its memory functions only; BannedCallTests keeps I/O and clocks out.
        ("Sources/Protocol", ["Glibc", "Darwin"]),
        // The C library for its mappings of memory only.
        ("Sources/Crypto", ["COpenSSL", "CUTF8Proc", "Glibc", "Darwin"]),
        ("Sources/Auth", ["ThicketKeyLog", "ThicketProtocol", "ThicketCrypto"]),
        ("Sources/SealedShape", ["ThicketProtocol", "ThicketCrypto"]),
        ("Sources/Sealed", ["ThicketSealedShape", "ThicketProtocol", "ThicketCrypto"]),
        ("Sources/KeyLog", ["ThicketProtocol", "ThicketCrypto"]),
        ("Sources/TreeShape", ["ThicketProtocol", "ThicketCrypto"]),
        ("Sources/Tree", ["ThicketTreeShape", "ThicketKeyLog", "ThicketProtocol", "ThicketCrypto"]),
        ("Sources/SQLite", ["CSQLite", "Glibc", "Darwin"]),
        ("Sources/CommandLine", ["Glibc", "Darwin"]),
        ("Sources/Release", ["ThicketProtocol", "ThicketCrypto"]),
        ("Sources/Scheduling", ["CThicketCores", "Glibc"]),
        (
            "Sources/Net",
            ["ThicketScheduling", "ThicketProtocol", "ThicketCrypto", "CThicketNet", "CThicketTLS", "Glibc"]
        ),
        (
            "Sources/Server",
            ["ThicketNet", "ThicketScheduling", "ThicketAuth", "ThicketProtocol", "ThicketCrypto", "Glibc"]
        ),
        (
            "Sources/Server/Access",
            [
                "ThicketNet", "ThicketScheduling", "ThicketAuth", "ThicketKeyLog", "ThicketSQLite", "ThicketProtocol",
                "ThicketCrypto", "Glibc",
            ]
        ),
        (
            "Sources/Server/Blobs",
            ["ThicketNet", "ThicketScheduling", "ThicketTreeShape", "ThicketProtocol", "ThicketCrypto"]
        ),
        ("Sources/Server/Mail", ["ThicketAuth", "CCurl", "Glibc"]),
        (
            "Sources/Server/Witness",
            ["ThicketKeyLog", "ThicketProtocol", "ThicketCrypto", "ThicketCommandLine", "CCurl", "Glibc"]
        ),
        (
            "Sources/Server/Session",
            ["ThicketNet", "ThicketScheduling", "ThicketAuth", "ThicketTreeShape", "ThicketProtocol", "ThicketCrypto"]
        ),
        (
            "Sources/Server/REST",
            [
                "ThicketNet", "ThicketScheduling", "ThicketAuth", "ThicketKeyLog", "ThicketTreeShape",
                "ThicketProtocol", "ThicketCrypto", "Glibc",
            ]
        ),
        (
            "Sources/Server/Sync",
            [
                "ThicketScheduling", "ThicketSealedShape", "ThicketTreeShape", "ThicketProtocol", "ThicketCrypto",
                "Glibc",
            ]
        ),
        (
            "Sources/Server/Storage",
            [
                "ThicketSealedShape", "ThicketTreeShape", "ThicketSQLite", "ThicketProtocol", "ThicketCrypto", "Glibc",
            ]
        ),
        ("Sources/Server/Config", ["ThicketNet", "ThicketProtocol", "ThicketCommandLine", "Glibc"]),
        (
            "Sources/Server/Ops",
            [
                "ThicketNet", "ThicketAuth", "ThicketKeyLog", "ThicketTreeShape", "ThicketProtocol", "ThicketCrypto",
                "ThicketCommandLine", "CThicketCores", "Glibc",
            ]
        ),
        ("Sources/thicketd", ["ThicketServer", "ThicketCommandLine", "Glibc"]),
        (
            "Sources/Client",
            [
                "ThicketSealed", "ThicketKeyLog", "ThicketSQLite", "ThicketProtocol", "ThicketCrypto",
                "FoundationEssentials", "Dispatch", "Foundation", "Glibc", "Darwin",
            ]
        ),
        ("Sources/Client/Transport", ["ThicketProtocol", "ThicketCrypto", "CCurl", "Foundation", "Glibc", "Darwin"]),
        (
            "Sources/Treesystem",
            [
                "ThicketClient", "ThicketTree", "ThicketTreeShape", "ThicketKeyLog", "ThicketSQLite",
                "ThicketProtocol", "ThicketCrypto", "Dispatch", "Glibc", "Darwin",
            ]
        ),
        ("Sources/Onions", ["ThicketClient", "ThicketProtocol", "ThicketCrypto", "Glibc", "Darwin"]),
        (
            "Sources/Replay",
            [
                "ThicketClient", "ThicketSealed", "ThicketProtocol", "ThicketCrypto", "CZlib", "FoundationEssentials",
                "Glibc", "Darwin",
            ]
        ),
        (
            "Sources/CLI",
            [
                "ThicketClient", "ThicketTreesystem", "ThicketTree", "ThicketTreeShape", "ThicketOnions",
                "ThicketRelease", "ThicketReplay", "ThicketKeyLog", "ThicketProtocol", "ThicketCrypto",
                "ThicketCommandLine", "CThicketFiles", "CThicketScreen", "CQRCode", "Glibc", "Darwin",
            ]
        ),
        ("Sources/thicket", ["ThicketCLI", "Glibc", "Darwin"]),
    ]
    private static let language: Set<String> = ["Swift", "Synchronization", "_Concurrency", "ThicketPlatform"]

    @Test("no source imports a module that its folder may not import")
    func arrows() {
        let sources = SwiftText.paths("Sources")
        #expect(sources.count > 50, "the sources were not found below \(Repository.root)")
        for path in sources {
            guard let rule = ImportTests.rule(for: path) else {
                Issue.record("\(path): its folder has no rule; add one to ImportTests and to docs/ARCHITECTURE.md")
                continue
            }
            for (number, line) in SwiftText.lines(path).enumerated()
            where line.contains("import ") {
                guard let module = ImportTests.imported(line), !ImportTests.language.contains(module) else {
                    continue
                }
                #expect(
                    rule.modules.contains(module),
                    "\(path):\(number + 1): \(rule.folder) may not import \(module); it may import \(rule.modules.sorted())"
                )
            }
        }
    }

    @Test("server and client do not depend on each other in Package.swift either")
    func package() throws {
        let package = try #require(Repository.text("Package.swift"))
        let server = try #require(package.firstRange(of: "\"ThicketServer\", \"Sources/Server\"")).after(
            package)
        #expect(!server.prefix { $0 != "]" }.contains("\"ThicketClient\""))
        let client: Substring = try #require(package.firstRange(of: "\"ThicketClient\", \"Sources/Client\"")).after(
            package)
        #expect(!client.prefix { $0 != "]" }.contains("\"ThicketServer\""))
        #expect(!package.contains(".package("), "no outside Swift package")
    }

    @Test(
        "an import is found in every form",
        arguments: [
            ("import Glibc", "Glibc"), ("@testable import A", "A"), ("internal import B", "B"),
            ("public import C.D", "C"),
            ("import struct E.F", "E"), ("let x = 1", nil), ("// import G", nil), ("#if canImport(H)", nil),
        ] as [(String, String?)])
    func forms(line: String, module: String?) {
        #expect(ImportTests.imported(line) == module)
    }

    private static func rule(for path: String) -> (folder: String, modules: Set<String>)? {
        allowed.filter { (rule: (folder: String, modules: Set<String>)) in path.hasPrefix(rule.folder + "/") }
            .max { (left, right) in left.folder.count < right.folder.count }
    }

    private static func imported(_ line: String) -> String? {
        var words: [Substring] = line.split(separator: " ")
        let kinds: Set<Substring> = ["struct", "class", "enum", "func", "protocol", "var", "let", "typealias"]
        guard let place = words.firstIndex(of: "import") else { return nil }
        guard words[..<place].allSatisfy({ $0.hasPrefix("@") || $0 == "internal" || $0 == "public" || $0 == "package" })
        else { return nil }
        words.removeSubrange(...place)
        if let first: Substring = words.first, kinds.contains(first) { words.removeFirst() }
        return words.first?.split(separator: ".").first.map(String.init)
    }
}

extension Range<String.Index> {
    /// The text from the range's end on.
    fileprivate func after(_ text: String) -> Substring { text[upperBound...] }
}
